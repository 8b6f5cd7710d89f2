import { Command, type CommandOptions, type ErrorOptions, type Help, Option, type OptionValues } from "commander";
import { EXIT, type Io, readValue, UsageError } from "./io.ts";
import { type ListColumn, type Page, printList, type Session, withSession } from "./session.ts";
import type { OutgateClient } from "../client/client.ts";
import type { PutDefaults } from "../client/openapi.ts";
import type { StatusPattern } from "../core/retry.ts";
import { HTTP_METHODS } from "../core/target.ts";
import { ATTEMPT_TIMEOUT_SET_MS_MAX, ATTEMPT_TIMEOUT_SET_MS_MIN } from "../core/limits.ts";

export const JSON_OPTION = ["--json", "print JSON also on a terminal"] as const;

/** What a command does with the service. Returns the exit code unless it is 0. */
type Work<Options> = (session: Session, options: Options, ...args: string[]) => Promise<number | void>;

type Read<Result, Options> = (client: OutgateClient, options: Options, ...args: string[]) => Promise<Result>;

/** An option that sets a member of the API: by default the one of its own name, with `_` for `-`. */
export class CliOption extends Option {
  readonly #member: string;

  constructor(flags: string, description?: string, member?: string) {
    super(flags, description);
    this.#member = member ?? this.name().replaceAll("-", "_");
  }

  override attributeName(): string {
    return this.#member;
  }
}

/** A command of `outgate`, with an exit code and its own error messages about arguments. */
export class CliCommand extends Command {
  readonly #io: Io;
  /** Shared by all commands of a program. */
  readonly result: { exitCode: number };
  /** Whether it runs if only its group is named. */
  isDefault = false;
  #expected: string | null = null;

  constructor(name: string | undefined, io: Io, result: { exitCode: number } = { exitCode: EXIT.ok }) {
    super(name);
    this.#io = io;
    this.result = result;
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name, this.#io, this.result);
  }

  override createOption(flags: string, description?: string): CliOption {
    return new CliOption(flags, description);
  }

  /** Shows for a group the usage of each command. */
  override createHelp(): Help {
    const help = super.createHelp();
    const usageOf = help.commandUsage.bind(help);
    return Object.assign(help, {
      commandUsage: (command: Command) =>
        command.parent === null || command.commands.length === 0
          ? usageOf(command)
          : `${command.parent.name()} ${command.commands.map(callOf).join(" | ")}`,
    });
  }

  /** Gets every problem that commander finds in the arguments. */
  override error(message: string, { code }: ErrorOptions = {}): never {
    throw new UsageError(this.#problem(message, code));
  }

  /** Says what a command without options takes, for the message about any wrong argument. */
  takes(expected: string): this {
    this.#expected = expected;
    return this.usage(this.usage().replace("[options]", "").trim());
  }

  /** Adds example command lines to its help, each with what it does. */
  examples(lines: readonly (readonly [line: string, what: string])[]): this {
    return this.addHelpText(
      "after",
      `\nExamples:\n${lines.map(([line, what]) => `  # ${what}\n  ${line}\n`).join("")}`.trimEnd(),
    );
  }

  /** Sets what the command does, with its options and its parents'. `work` returns the exit code unless it is 0. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- commander doesn't type options: the handler does
  runs<Options extends OptionValues>(
    work: (io: Io, options: Options, ...args: string[]) => Promise<number | void>,
  ): this {
    return this.action(async () => {
      // An unset variable in `"$ID"` gives an empty argument.
      const empty = this.registeredArguments.find(({ variadic }, at) => !variadic && this.args[at] === "");
      if (empty !== undefined) throw new UsageError(`<${empty.name()}> is empty.`);
      this.result.exitCode = (await work(this.#io, this.optsWithGlobals<Options>(), ...this.args)) ?? EXIT.ok;
    });
  }

  service(usage: string, summary: string, options: CommandOptions = {}): this {
    // Safe: `createCommand` makes every command.
    const command = this.command(usage, options) as this;
    command.isDefault = options.isDefault === true;
    return command
      .description(summary)
      .helpCommand(false)
      .option("--api-key-file <file>", "read the API key from this file; - reads standard input");
  }

  /** Sets what the command does with a session; see `runs`. */
  calls<Options extends object>(work: Work<Options>): this {
    return this.runs(withSession(work, (field) => this.#givenName(field)));
  }

  /** Like `calls`, for a command that prints a result, as JSON with `--json`. */
  prints<Options extends object>(work: Work<Options>): this {
    return this.option(...JSON_OPTION).calls(work);
  }

  /** Like `prints`, for a command that prints what `read` returns. */
  shows<Result, Options extends object>(read: Read<Result, Options>, textOf: (result: Result) => string): this {
    return this.prints<Options>(async ({ client, print }, options, ...args) =>
      print(await read(client, options, ...args), textOf),
    );
  }

  /** Adds the options of a list with pages. */
  pages(): this {
    return this.option("--limit <n>", "1 to 100; default 20", wholeNumber("limit")).option(
      "--cursor <cursor>",
      "the next page, by the cursor that the last page printed",
    );
  }

  /** Adds the options for attempts and retries, which set the members of `PutDefaults`. */
  retries(): this {
    return this.option(
      "--timeout-ms <n>",
      `deadline of an attempt, ${ATTEMPT_TIMEOUT_SET_MS_MIN} to ${ATTEMPT_TIMEOUT_SET_MS_MAX}`,
      wholeNumber("timeout-ms"),
    )
      .option("--backoff <base:cap>", "milliseconds after the first failure, and at most: 1000:60000", backoffIn)
      .option(
        "--give-up-on <list>",
        "statuses after which no attempt follows: 401,422,5xx; none: an empty text",
        listIn,
      );
  }

  /** Like `shows`, as a table; see `printList`. */
  lists<Row, Options extends object>(
    read: Read<Page<Row>, Options>,
    columns: readonly ListColumn<Row>[],
    empty?: string,
  ): this {
    return this.prints<Options>(async (session, options, ...args) =>
      printList(session, await read(session.client, options, ...args), columns, empty),
    );
  }

  /** Like `shows`, for a short list: a line for each row, or `empty`. */
  lines<Row>(read: Read<Page<Row>, object>, lineOf: (row: Row) => string, empty: string): this {
    return this.prints(async ({ client, print, isJson, asksForJson, line }, options) => {
      const { data } = await read(client, options);
      if (isJson && !asksForJson) for (const row of data) line(row);
      else print({ data }, () => (data.length === 0 ? empty : data.map(lineOf).join("\n")));
    });
  }

  /** Adds an option whose words shells complete. `parse` decides what it accepts; by default any text, which the service checks. */
  choice<Value>(flags: string, description: string, words: readonly string[], parse?: OptionParser<Value>): this {
    const option = this.createOption(flags, description).choices(words);
    return this.addOption(parse === undefined ? option.argParser((text) => text) : option.argParser(parse));
  }

  /** Adds an option that sets a member with another name. */
  member<Value>(member: string, flags: string, description: string, parse?: OptionParser<Value>): this {
    const option = new CliOption(flags, description, member);
    return this.addOption(parse === undefined ? option : option.argParser(parse));
  }

  /** The name that a person typed for a refused field: `--after` for `created_after`, or the field's own name. */
  #givenName(field: string): string {
    const path = field.replace(/^filter\./, "");
    const [member = ""] = path.split(".");
    const option = this.options.find((one) => one.attributeName() === member);
    if (option === undefined || this.getOptionValue(member) === undefined) return field;
    return path === member ? `${option.long}` : `${option.long} (${path})`;
  }

  #problem(message: string, code: string | undefined): string {
    if (this.#expected !== null) return `${this.name()} takes ${this.#expected}`;
    const [extra] = this.args.slice(this.registeredArguments.length);
    // Leaves out the value after a `=`, which may be a secret.
    const quoted = /'([^'=]*)/.exec(message)?.[1] ?? "";
    if (this.parent === null && code === "commander.unknownOption")
      return `Unknown option '${quoted}'. Options go after the command, as in \`outgate list --json\`.`;
    if (this.parent === null) return unknownCommand(this, extra ?? "");
    if (code === "commander.missingArgument") return `<${quoted}> is missing.`;
    if (code === "commander.excessArguments" && this.name() === "send" && isMethod(this.args[0]))
      return `The method is an option: --method ${this.args[0]}.`;
    if (code === "commander.excessArguments")
      return this.#unknownVerb(extra) ?? `${JSON.stringify(extra)} is one argument too many.`;
    if (code === "commander.unknownOption") {
      const isKnown = this.options.some(({ long }) => long === quoted);
      if (isKnown) return `Option '${quoted}' does not take an argument.`;
      const options = this.options.flatMap(({ long, hidden }) => (long === undefined || hidden ? [] : [long]));
      return `Unknown option '${quoted}'.${suggestionFor(quoted, options)}`;
    }
    if (code === "commander.optionMissingArgument" && message.includes("--api-key-file"))
      return "--api-key-file takes a file, or - for standard input.";
    const sentence = message.replace(/^error: /, "");
    return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1).replace(/\.$/, "")}.`;
  }

  /** Names the mistake in `keys frobnicate`, which commander takes for an argument of the default command `keys list`. */
  #unknownVerb(extra: string | undefined): string | null {
    if (this.parent === null || this.parent.args[0] !== extra) return null;
    const verbs = this.parent.commands.map((command) => command.name());
    const listed = `${verbs.slice(0, -1).join(", ")} or ${verbs.at(-1) ?? ""}`;
    return `${this.parent.name()} takes ${listed}, not ${JSON.stringify(extra)}.${suggestionFor(this.parent.args[0] ?? "", verbs)}`;
  }
}

/** `keys create <name> [options]`, with a group's default command in brackets. */
function callOf(command: Command): string {
  const name = command instanceof CliCommand && command.isDefault ? `[${command.name()}]` : command.name();
  const rest = command.usage().replace("[options]", "").trim();
  const hasOptions = command.options.some(({ long }) => long !== "--api-key-file" && long !== "--json");
  return [command.parent?.name(), name, rest, hasOptions ? "[options]" : ""].filter(Boolean).join(" ");
}

function isMethod(word = ""): boolean {
  return HTTP_METHODS.some((method) => method === word.toUpperCase());
}

/** Whether a word is the name or alias of a command. */
export function isNamed(command: Command, word: string | undefined): boolean {
  return word !== undefined && (command.name() === word || command.aliases().includes(word));
}

/** What people type who want `serve`. */
const SERVICE_STARTS: ReadonlySet<string> = new Set(["start", "run", "up"]);

/** The commands of `server-commands.ts` that the npm package for plain Node does not have. */
export const SERVICE_COMMANDS: ReadonlySet<string> = new Set([
  "serve",
  "demo",
  "doctor",
  "health",
  "welcome-link",
  "reset-password",
  "new-owner-key",
  "backup",
  "rotate-secret-key",
  "migrate",
]);

/** Says that there is no such command, and which was probably meant. */
export function unknownCommand(program: Command, word: string): string {
  const names = program.commands.map((command) => command.name()).filter((name) => name !== "complete");
  if (program.parent === null && (SERVICE_STARTS.has(word) || SERVICE_COMMANDS.has(word))) {
    if (names.includes("serve")) return `Unknown command ${JSON.stringify(word)}. Did you mean serve?`;
    const start = SERVICE_COMMANDS.has(word) && word !== "serve" ? `npm run outgate -- ${word}` : "npm start";
    return `The service, and so "${word}", is not in this package. Run \`${start}\` in a copy of Outgate's repository.`;
  }
  const meant = suggestionFor(word, names);
  return `Unknown command ${JSON.stringify(word)}.${meant || " `outgate help` lists the commands."}`;
}

/** Turns an option's text into its value. `earlier`: the value so far, if it is given again. Throws `UsageError`. */
type OptionParser<Value> = (text: string, earlier: Value | undefined) => Value;

/** Parses the whole number in an option, at least `min`. Throws `UsageError`. */
export function wholeNumber(name: string, min = 1): (text: string) => number {
  return (text) => {
    if (/^\d{1,9}$/.test(text) && Number(text) >= min) return Number(text);
    throw new UsageError(`--${name} takes a whole number of at least ${min}, not ${JSON.stringify(text)}.`);
  };
}

function backoffIn(text: string): PutDefaults["backoff"] {
  const [, base, cap] = /^(\d{1,9}):(\d{1,9})$/.exec(text) ?? [];
  if (base !== undefined && cap !== undefined) return { base_ms: Number(base), cap_ms: Number(cap) };
  throw new UsageError(`--backoff takes two numbers of milliseconds, like 1000:60000, not ${JSON.stringify(text)}.`);
}

/** Reads a list. Keeps words that are no numbers, for which the service names the valid ones. */
function listIn(text: string): StatusPattern[] {
  const words = text.split(",").map((word) => word.trim());
  // Safe: the service checks each.
  return words
    .filter((word) => word !== "")
    .map((word) => (/^\d{1,9}$/.test(word) ? Number(word) : word) as StatusPattern);
}

type Given<Members> = { -readonly [Name in keyof Members]?: Exclude<Members[Name], undefined> };

/** The members without those that are undefined. */
export function given<Members extends object>(members: Members): Given<Members> {
  // Safe: leaves out only undefined members.
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as Given<Members>;
}

export function several(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

/** Collects methods, which people may write in lower case. The service checks each. */
export function severalMethods(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text.toUpperCase()];
}

/** Accepts one of the words in any case. */
export function oneOf(name: string, words: readonly string[]): (text: string) => string {
  return (text) => {
    const word = words.find((one) => one.toLowerCase() === text.toLowerCase());
    if (word !== undefined) return word;
    throw new UsageError(`--${name} takes ${words.join(", ")}, not ${JSON.stringify(text)}.`);
  };
}

/** Words for the same thing: the first that a program or group has is what people mean by the others. */
const SYNONYMS: readonly (readonly string[])[] = [
  ["add", "create", "set", "invite", "new", "put"],
  ["remove", "revoke", "end", "delete", "rm", "unset"],
  ["list", "ls", "actions"],
  ["get", "show"],
  ["send", "create", "new", "call", "request", "post", "curl"],
  ["watch", "events", "logs", "tail"],
];

/** A suggestion for a mistyped command or option, as ` Did you mean retry?`; empty if nothing is close. */
function suggestionFor(typed: string, words: readonly string[]): string {
  const same = SYNONYMS.filter((group) => group.includes(typed)).flatMap((group) => group);
  const synonym = same.find((word) => words.includes(word));
  if (synonym !== undefined) return ` Did you mean ${synonym}?`;
  // Mistyped words nearly always begin as what was meant: `events` is no attempt at `grants`.
  const initial = (word: string) => word.replace(/^-{1,2}/, "").charAt(0);
  // Commander doesn't export its comparison, so this lets it find the same mistake.
  const asked = new Command()
    .helpOption(false)
    .helpCommand(false)
    .exitOverride()
    .configureOutput({ writeErr() {} });
  for (const word of words.filter((one) => initial(one) === initial(typed))) {
    if (word.startsWith("--")) asked.option(word);
    else asked.command(word);
  }
  try {
    asked.parse([typed], { from: "user" });
    return "";
  } catch (error) {
    const [, meant] = /\n\((Did you mean [^\n]*)\)$/.exec(String(error)) ?? [];
    return meant === undefined ? "" : ` ${meant}`;
  }
}

/** Reads the headers of `--header`: lines, or as in curl files or standard input. Throws `UsageError`. */
export async function headersIn(values: readonly string[], io: Io): Promise<Readonly<Record<string, string>>> {
  const lines = values.map(async (value) => {
    if (value !== "-" && !value.startsWith("@")) return [value];
    return (await readValue(value, io)).split(/\r?\n/).filter((line) => line.trim() !== "");
  });
  const pairs = (await Promise.all(lines)).flat().map((line, index) => {
    const at = line.indexOf(":");
    // The message doesn't quote the header, which may be a secret.
    if (at < 1) throw new UsageError(`--header takes 'Name: value'; header ${index + 1} has another form.`);
    return [line.slice(0, at), line.slice(at + 1).trim()] as const;
  });
  const names = new Set(pairs.map(([name]) => name.toLowerCase()));
  if (names.size < pairs.length) throw new UsageError("A header is given twice. Each can be sent only once.");
  return Object.fromEntries(pairs);
}
