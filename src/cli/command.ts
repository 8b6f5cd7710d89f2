import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { readFile } from "node:fs/promises";

/** What a command may touch of the process that runs it. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Standard output: what was asked for, and nothing else. */
  readonly out: (text: string) => void;
  /** Standard error: what went wrong, or is going on. */
  readonly err: (text: string) => void;
  /** Whether a person looks at the output. */
  readonly isTty: boolean;
  /** Characters of a line of that person's terminal; absent: nobody knows. */
  readonly columns?: number;
  /** Whether that person can answer at the standard input. */
  readonly canAnswer?: boolean;
  /** Standard input; absent: there is none. */
  readonly input?: AsyncIterable<Uint8Array>;
  /** Hears once that the person wants no more of it (Ctrl-C), and returns how to stop listening; absent: nobody can say so. */
  readonly onInterrupt?: (listener: () => void) => () => void;
}

/** How a command ends, for scripts. */
export const EXIT = { ok: 0, failed: 1, usage: 2, timeout: 3, awaitingApproval: 4 } as const;

/** One verb of the command line. Its file is loaded only when it is called, so that each costs only what it needs. */
export interface Command {
  /** How it is called, after `outgate`. */
  readonly usage: string;
  /** What its options mean, a line each; shown by `--help`. */
  readonly details?: string;
  /** Resolves with the exit code. What it throws is a sentence for whoever called. */
  run(args: readonly string[], io: Io): Promise<number>;
}

/** A command as the list shows it, before it is loaded. */
export interface Listed {
  readonly summary: string;
  load(): Promise<Command>;
}

/** Every command by its name, in the order of the help. */
export type Commands = Readonly<Record<string, Listed>>;

/** Thrown where a command was called in a way that it does not know; the caller is shown its usage. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The process as commands see it. It ends when nobody reads on: the other end of a pipe has had enough. */
export function processIo(env: Io["env"]): Io {
  process.stdout.on("error", () => process.exit(EXIT.ok));
  return {
    env,
    out: (text) => process.stdout.write(text),
    err: (text) => process.stderr.write(text),
    isTty: process.stdout.isTTY,
    canAnswer: process.stdout.isTTY && process.stdin.isTTY,
    columns: process.stdout.columns,
    input: process.stdin,
    onInterrupt(listener) {
      process.once("SIGINT", listener);
      return () => void process.off("SIGINT", listener);
    },
  };
}

/** What was written behind the name of a command: values by option, and the rest in order. */
export function readArguments<Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
  /** The names of what has to be there, as the usage has them; one in brackets may be left out. */
  names: readonly string[] = [],
) {
  const { values, positionals } = parse(args, options);
  const missing = names.find((name, at) => !name.startsWith("[") && positionals[at] === undefined);
  if (missing !== undefined) throw new UsageError(`${missing} is missing.`);
  const [odd] = positionals.slice(names.length);
  if (odd !== undefined) throw new UsageError(`${JSON.stringify(odd)} is one argument too many.`);
  return { values, positionals };
}

function parse<Options extends ParseArgsOptionsConfig>(args: readonly string[], options: Options) {
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    // The first sentence says which option it is; what follows speaks of positionals.
    const message = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${message.split(". ")[0]?.replace(/\.$/, "") ?? message}.`);
  }
}

/** A whole number of an option, from `min` on. */
export function wholeNumber(text: string | undefined, name: string, min = 1): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text) && Number(text) >= min) return Number(text);
  throw new UsageError(`--${name} takes a whole number from ${min} on, not ${JSON.stringify(text)}.`);
}

/** One of the words that an option knows. */
export function oneOf<Word extends string>(
  text: string | undefined,
  name: string,
  words: readonly Word[],
): Word | undefined {
  if (text === undefined) return undefined;
  const word = words.find((one) => one === text);
  if (word !== undefined) return word;
  throw new UsageError(`--${name} takes ${words.join(", ")}, not ${JSON.stringify(text)}.`);
}

/** Twice what the service takes: it is the one to say that a body is too large. */
const INPUT_BYTES_MAX = 2 * 1_048_576;

/** A value as curl has it: the text itself, `@file`, or `-` for standard input. */
export async function readValue(value: string, { input }: Io): Promise<string> {
  if (value === "-") return readAll(input);
  if (!value.startsWith("@")) return value;
  const path = value.slice(1);
  return readFile(path, "utf8").catch((cause: unknown) => {
    throw new Error(`The file ${path} can't be read.`, { cause });
  });
}

/** The line that a person types; null: they have closed the input. */
export async function readLine({ input }: Io): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of input ?? []) {
    text += decoder.decode(chunk, { stream: true });
    const end = text.indexOf("\n");
    if (end !== -1) return text.slice(0, end);
    if (text.length > LINE_CHARS_MAX) return null;
  }
  return null;
}

/** A terminal has no longer ones. */
const LINE_CHARS_MAX = 4_096;

async function readAll(input: Io["input"]): Promise<string> {
  if (input === undefined) throw new UsageError("There is nothing on standard input.");
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of input) {
    chunks.push(chunk);
    bytes += chunk.byteLength;
    if (bytes > INPUT_BYTES_MAX) throw new UsageError(`Standard input is longer than ${INPUT_BYTES_MAX} bytes.`);
  }
  return Buffer.concat(chunks).toString("utf8");
}
