import { Command, type CommandOptions, type ErrorOptions, Option } from "commander";
import { ATTEMPT_TIMEOUT_SET_MS_MAX, ATTEMPT_TIMEOUT_SET_MS_MIN } from "../core/limits.ts";
import { EXIT, type Io, UsageError } from "./io.ts";
import { backoffIn, listIn, type OptionParser, wholeNumber } from "./option-values.ts";
import { type Session, type SessionOptions, withSession } from "./session.ts";
import { usageProblem } from "./wrong-usage.ts";

export const JSON_OPTION = ["--json", "print JSON also on a terminal"] as const;

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

/** What a handler returns; nothing for 0. */
type ExitCode = number | void;

/** Commander's command, with an exit code and our own messages about wrong arguments. */
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

  /** Gets every problem that commander finds in the arguments. */
  override error(message: string, { code }: ErrorOptions = {}): never {
    throw new UsageError(
      this.#expected === null ? usageProblem(this, message, code) : `${this.name()} takes ${this.#expected}`,
    );
  }

  /** Commander's `action`, whose handler may return an exit code. */
  override action(handler: (...args: never[]) => ExitCode | Promise<ExitCode>): this {
    return super.action(async (...args: unknown[]) => {
      // Safe: commander doesn't type arguments and options, the handler does.
      this.result.exitCode = (await handler(...(args as never[]))) ?? EXIT.ok;
    });
  }

  /** Commander's `command` and `description`, for a command that calls the service with an API key. */
  serviceCommand(usage: string, description: string, options: CommandOptions = {}): this {
    // Safe: `createCommand` makes every command.
    const command = this.command(usage, options) as this;
    command.isDefault = options.isDefault === true;
    return command
      .description(description)
      .helpCommand(false)
      .option("--api-key-file <file>", "read the API key from this file; - reads standard input");
  }

  /** Commander's `action` for a handler that takes a session first, then the arguments and the options. */
  sessionAction(handler: (session: Session, ...args: never[]) => Promise<ExitCode>): this {
    return this.action((...args) => {
      const given = this.optsWithGlobals<SessionOptions>();
      const { api_key_file: _keyFile, json: _json, ...options } = given;
      // Commander adds the options of this command alone, and the command.
      const own = args.slice(0, -2);
      return withSession(
        this.#io,
        given,
        (session) => handler(session, ...own, options as never),
        (field) => this.#givenName(field),
      );
    });
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

  /** The name that a person typed for a refused field: `--after` for `created_after`, or the field's own name. */
  #givenName(field: string): string {
    const path = field.replace(/^filter\./, "");
    const [member = ""] = path.split(".");
    const option = this.options.find((one) => one.attributeName() === member);
    if (option === undefined || this.getOptionValue(member) === undefined) return field;
    return path === member ? `${option.long}` : `${option.long} (${path})`;
  }
}

/** Whether a word is the name or alias of a command. */
export function isNamed(command: Command, word: string | undefined): boolean {
  return word !== undefined && (command.name() === word || command.aliases().includes(word));
}
