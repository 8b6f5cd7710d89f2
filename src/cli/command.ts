import { Command, type ErrorOptions, Option, type OptionValues } from "commander";
import { EXIT, type Io, UsageError } from "./io.ts";

/** A command of `outgate`: it has an exit code, and tells in our words what is wrong with its arguments. */
export class CliCommand extends Command {
  readonly #io: Io;
  /** Shared by all commands of a program. */
  readonly result: { exitCode: number };
  #expected: string | null = null;

  constructor(name: string | undefined, io: Io, result: { exitCode: number } = { exitCode: EXIT.ok }) {
    super(name);
    this.#io = io;
    this.result = result;
  }

  override createCommand(name?: string): CliCommand {
    return new CliCommand(name, this.#io, this.result);
  }

  /** Every problem that commander finds in the arguments comes here. */
  override error(message: string, { code }: ErrorOptions = {}): never {
    throw new UsageError(this.#problem(message, code));
  }

  /** For a command without options: what it takes, as the end of the sentence that any wrong argument is answered with. */
  takes(expected: string): this {
    this.#expected = expected;
    return this.usage(this.usage().replace("[options]", "").trim());
  }

  /** Sets what the command does, with its options and those of the commands above it. Resolves with the exit code. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- commander doesn't type options: the handler does
  runs<Options extends OptionValues>(work: (io: Io, options: Options, ...args: string[]) => Promise<number>): this {
    return this.action(async () => {
      this.result.exitCode = await work(this.#io, this.optsWithGlobals<Options>(), ...this.args);
    });
  }

  /** An option whose words shells complete; `parse` decides what is accepted. */
  choice<Value>(flags: string, description: string, words: readonly string[], parse: OptionParser<Value>): this {
    return this.addOption(new Option(flags, description).choices(words).argParser(parse));
  }

  #problem(message: string, code: string | undefined): string {
    if (this.#expected !== null) return `${this.name()} takes ${this.#expected}`;
    const [extra] = this.args.slice(this.registeredArguments.length);
    const quoted = /'([^']*)'/.exec(message)?.[1] ?? "";
    if (this.parent === null) return `There is no command ${JSON.stringify(extra)}. \`outgate help\` lists them.`;
    if (code === "commander.missingArgument") return `<${quoted}> is missing.`;
    if (code === "commander.excessArguments")
      return this.#unknownVerb(extra) ?? `${JSON.stringify(extra)} is one argument too many.`;
    if (code === "commander.optionMissingArgument" && message.includes("--api-key-file"))
      return "--api-key-file takes a file, or - for standard input.";
    const sentence = message.replace(/^error: /, "");
    return `${sentence.charAt(0).toUpperCase()}${sentence.slice(1).replace(/\.$/, "")}.`;
  }

  /** For `keys frobnicate`, which commander takes for an argument of the default command `keys list`. */
  #unknownVerb(extra: string | undefined): string | null {
    if (this.parent === null || this.parent.args[0] !== extra) return null;
    const verbs = this.parent.commands.map((command) => command.name());
    const listed = `${verbs.slice(0, -1).join(", ")} or ${verbs.at(-1) ?? ""}`;
    return `${this.parent.name()} takes ${listed}, not ${JSON.stringify(extra)}.`;
  }
}

/** Turns the text of an option into its value; `earlier` where it was given before. Throws `UsageError`. */
type OptionParser<Value> = (text: string, earlier: Value | undefined) => Value;

/** Parses the whole number in an option, at least `min`. Throws `UsageError`. */
export function wholeNumber(name: string, min = 1): (text: string) => number {
  return (text) => {
    if (/^\d{1,9}$/.test(text) && Number(text) >= min) return Number(text);
    throw new UsageError(`--${name} takes a whole number of at least ${min}, not ${JSON.stringify(text)}.`);
  };
}

/** Collects an option that may be given several times. */
export function several(text: string, earlier: readonly string[] = []): readonly string[] {
  return [...earlier, text];
}

/** Accepts any text: the service checks it. */
export function anyText(text: string): string {
  return text;
}

/** Accepts one of the words, in any case. */
export function oneOf(name: string, words: readonly string[]): (text: string) => string {
  return (text) => {
    const word = words.find((one) => one.toLowerCase() === text.toLowerCase());
    if (word !== undefined) return word;
    throw new UsageError(`--${name} takes ${words.join(", ")}, not ${JSON.stringify(text)}.`);
  };
}
