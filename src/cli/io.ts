import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import type { ReadStream } from "node:tty";
import { REQUEST_BODY_BYTES_MAX } from "../core/limits.ts";

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes the result to standard output. */
  readonly out: (text: string) => void;
  /** The same for what may be long: resolves when the reader has taken it. Absent: it is taken at once. */
  readonly stream?: (text: string) => Promise<void>;
  /** Writes errors and progress to standard error. */
  readonly err: (text: string) => void;
  readonly isTty: boolean;
  /** Width of the terminal; absent where it is unknown. */
  readonly columns?: number;
  /** Whether a person can answer questions: standard input is a terminal too. */
  readonly canAnswer?: boolean;
  /** Asks for a line that isn't shown; null: the person gave up. Absent if standard input is no terminal. */
  readonly askHidden?: (question: string) => Promise<string | null>;
  /** Opens a URL in the browser of this machine; false: there is none. */
  readonly openBrowser?: (url: string) => Promise<boolean>;
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

/** The `Io` of this process, which ends when its output can't be written: the reader of a pipe has read enough, or a disk is full. */
export function processIo(env: Io["env"]): Io {
  process.stderr.on("error", () => {});
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") process.exit(EXIT.ok);
    process.stderr.write(`The output can't be written (${code}).\n`);
    process.exit(EXIT.failed);
  });
  return {
    env,
    // What they return would be taken for the exit code of a command.
    out: (text) => void process.stdout.write(text),
    stream: (text) => new Promise((resolve) => process.stdout.write(text, () => resolve())),
    err: (text) => void process.stderr.write(text),
    isTty: process.stdout.isTTY,
    canAnswer: process.stdout.isTTY && process.stdin.isTTY,
    // A terminal that doesn't know its width says 0.
    ...(process.stdout.columns > 0 && { columns: process.stdout.columns }),
    ...(process.stdin.isTTY && {
      askHidden: (question: string) => askHidden(question, process.stdin, (text) => process.stderr.write(text)),
    }),
    openBrowser: (url) => openInBrowser(url, env),
    input: process.stdin,
    onInterrupt(listener) {
      process.once("SIGINT", listener);
      return () => void process.off("SIGINT", listener);
    },
  };
}

/** Twice the service's limit, so that it reports a too large body itself. */
const INPUT_BYTES_MAX = 2 * REQUEST_BODY_BYTES_MAX;

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** A value as in curl: the text itself, `@file`, or `-` for standard input. Throws where it isn't text, which it would alter. */
export async function readValue(value: string, { input }: Io): Promise<string> {
  const path = value.startsWith("@") ? value.slice(1) : null;
  if (path === null && value !== "-") return value;
  const source: AsyncIterable<Uint8Array> | undefined = path === null ? input : createReadStream(path);
  if (source === undefined) throw new UsageError("There is nothing on standard input.");
  const what = path === null ? "Standard input" : `The file ${path}`;
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const chunk of source) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > INPUT_BYTES_MAX) break;
    }
  } catch (cause) {
    throw new Error(`${what} can't be read.`, { cause });
  }
  if (bytes > INPUT_BYTES_MAX) throw new UsageError(`${what} is longer than ${INPUT_BYTES_MAX} bytes.`);
  try {
    return UTF_8.decode(Buffer.concat(chunks));
  } catch {
    throw new UsageError(`${what} is not text in UTF-8. For a body of other bytes use --base64.`);
  }
}

/** Asks on standard error; whether the next line of standard input says yes. */
export async function saysYes(question: string, io: Io): Promise<boolean> {
  io.err(`${question} [y/N] `);
  const answer = await readLine(io);
  if (answer === null) io.err("\n");
  return /^\s*y(?:es)?\s*$/i.test(answer ?? "");
}

/** One line of standard input; null where it is closed or the line is too long. */
async function readLine({ input }: Io): Promise<string | null> {
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

/** Longer than any key. */
const HIDDEN_CHARS_MAX = 1_024;

const CONTROL = { interrupt: "\u0003", end: "\u0004", backspace: "\u0008", clear: "\u0015", delete: "\u007f" } as const;

/** A line that a person types without seeing it. */
export class HiddenLine {
  #text = "";

  /** Takes what was typed. Undefined: the line goes on; null: it was given up. */
  type(typed: string): string | null | undefined {
    for (const character of typed) {
      if (character === "\r" || character === "\n") return this.#text;
      if (character === CONTROL.interrupt) return null;
      if (character === CONTROL.end) return this.#text === "" ? null : this.#text;
      if (character === CONTROL.backspace || character === CONTROL.delete) this.#text = this.#text.slice(0, -1);
      else if (character === CONTROL.clear) this.#text = "";
      else if (this.#text.length < HIDDEN_CHARS_MAX) this.#text += character;
    }
    return undefined;
  }
}

async function askHidden(question: string, input: ReadStream, write: (text: string) => void): Promise<string | null> {
  const line = new HiddenLine();
  const decoder = new TextDecoder();
  write(question);
  input.setRawMode(true);
  try {
    return await new Promise((resolve) => {
      const onData = (chunk: Uint8Array) => {
        const answer = line.type(decoder.decode(chunk, { stream: true }));
        if (answer === undefined) return;
        input.off("data", onData);
        resolve(answer);
      };
      input.on("data", onData);
      input.once("end", () => resolve(null));
    });
  } finally {
    input.setRawMode(false);
    input.pause();
    write("\n");
  }
}

/** The command that opens a URL; null: there is no screen to open it on. */
function browserCommand(
  platform: NodeJS.Platform,
  { DISPLAY = "", WAYLAND_DISPLAY = "", BROWSER = "" }: Io["env"],
): readonly string[] | null {
  if (platform === "darwin") return ["open"];
  // Not `cmd /c start`, which reads `&` in a URL as the end of the command.
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler"];
  return DISPLAY === "" && WAYLAND_DISPLAY === "" && BROWSER === "" ? null : ["xdg-open"];
}

/** Opens a URL, without a shell. Resolves with whether the program for it could be started. */
async function openInBrowser(url: string, env: Io["env"]): Promise<boolean> {
  const [program, ...args] = browserCommand(process.platform, env) ?? [];
  if (program === undefined) return false;
  return new Promise((resolve) => {
    const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
