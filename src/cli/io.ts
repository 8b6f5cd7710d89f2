import { readFile } from "node:fs/promises";

/** The process, as commands may use it. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes the result to standard output. */
  readonly out: (text: string) => void;
  /** Writes errors and progress to standard error. */
  readonly err: (text: string) => void;
  /** Whether standard output is a terminal. */
  readonly isTty: boolean;
  /** Width of the terminal; absent where it is unknown. */
  readonly columns?: number;
  /** Whether a person can answer questions: standard input is a terminal too. */
  readonly canAnswer?: boolean;
  /** Standard input, where there is one. */
  readonly input?: AsyncIterable<Uint8Array>;
  /** Listens for the first Ctrl-C; returns a function that stops listening. Absent where there are no signals. */
  readonly onInterrupt?: (listener: () => void) => () => void;
}

/** Exit codes; docs/cli.md describes them. */
export const EXIT = { ok: 0, failed: 1, usage: 2, timeout: 3, awaitingApproval: 4 } as const;

/** Wrong arguments: the command's usage is shown with the message. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The `Io` of this process. The process ends when the reader of its output closes the pipe. */
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

/** Twice the service's limit, so that it reports a too large body itself. */
const INPUT_BYTES_MAX = 2 * 1_048_576;

/** A value as in curl: the text itself, `@file`, or `-` for standard input. */
export async function readValue(value: string, { input }: Io): Promise<string> {
  if (value === "-") return readAll(input);
  if (!value.startsWith("@")) return value;
  const path = value.slice(1);
  return readFile(path, "utf8").catch((cause: unknown) => {
    throw new Error(`The file ${path} can't be read.`, { cause });
  });
}

/** One line of standard input; null where it is closed or the line is too long. */
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

/** The longest line of a terminal. */
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
