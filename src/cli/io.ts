import { spawn } from "node:child_process";
import { createReadStream } from "node:fs";
import type { ReadStream } from "node:tty";
import { REQUEST_BODY_BYTES_MAX } from "../core/limits.ts";

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Writes the result to standard output. */
  readonly out: (text: string) => void;
  /** Writes long results. Resolves when the reader has taken the text. Absent if it is taken at once. */
  readonly stream?: (text: string) => Promise<void>;
  /** Writes errors and progress to standard error. */
  readonly err: (text: string) => void;
  readonly isTty: boolean;
  /** The terminal's width; absent if unknown. */
  readonly columns?: number;
  /** Whether a person can answer questions: standard input is a terminal too. */
  readonly canAnswer?: boolean;
  /** Asks for a line without showing it; null if the person gave up. Absent if standard input is no terminal. */
  readonly askHidden?: (question: string) => Promise<string | null>;
  /** Opens a URL in this machine's browser. Returns false if there is none. */
  readonly openBrowser?: (url: string) => Promise<boolean>;
  readonly input?: AsyncIterable<Uint8Array>;
  /** Listens for the first Ctrl-C. Returns a function that stops listening. Absent without signals. */
  readonly onInterrupt?: (listener: () => void) => () => void;
  /** Writes a text to standard error if Ctrl-C or `timeout` ends the process. Absent without signals. */
  readonly sayIfInterrupted?: (text: string) => void;
}

/** Exit codes; docs/cli.md describes them. */
export const EXIT = { ok: 0, failed: 1, usage: 2, timeout: 3, awaitingApproval: 4 } as const;

/** Wrong arguments. The message is shown with the command's usage. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** The `Io` of this process. Ends the process if output can't be written: a pipe's reader has read enough, or a disk is full. */
export function processIo(env: Io["env"]): Io {
  process.stderr.on("error", () => {});
  process.stdout.on("error", ({ code }: NodeJS.ErrnoException) => {
    if (code === "EPIPE") process.exit(EXIT.ok);
    process.stderr.write(`The output can't be written (${code}).\n`);
    process.exit(EXIT.failed);
  });
  return {
    env,
    // `void`: a returned value would count as a command's exit code.
    out: (text) => void process.stdout.write(text),
    stream: (text) => new Promise((resolve) => process.stdout.write(text, () => resolve())),
    err: (text) => void process.stderr.write(text),
    isTty: process.stdout.isTTY,
    canAnswer: process.stdout.isTTY && process.stdin.isTTY,
    // A terminal with an unknown width says 0.
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
    sayIfInterrupted(text) {
      for (const signal of ["SIGINT", "SIGTERM"] as const) {
        process.once(signal, () => {
          process.stderr.write(text);
          // Ends as without a listener: a shell goes on with a loop if the process exits by itself.
          process.kill(process.pid, signal);
        });
      }
    },
  };
}

/** Twice the service's limit, so that the service reports a body that is too large. */
const INPUT_BYTES_MAX = 2 * REQUEST_BODY_BYTES_MAX;

const UTF_8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Reads a value as in curl: the text itself, `@file`, or `-` for standard input. Throws if it isn't text. */
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

/** Asks on standard error. Returns whether the next line of standard input says yes. */
export async function saysYes(question: string, io: Io): Promise<boolean> {
  io.err(`${question} [y/N] `);
  const answer = await readLine(io);
  if (answer === null) io.err("\n");
  return /^\s*y(?:es)?\s*$/i.test(answer ?? "");
}

/** Reads a line of standard input; null if it is closed or the line is too long. */
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

/** The longest line that terminals send. */
const LINE_CHARS_MAX = 4_096;

/** Longer than any key. */
const HIDDEN_CHARS_MAX = 1_024;

const CONTROL = { interrupt: "\u0003", end: "\u0004", backspace: "\u0008", clear: "\u0015", delete: "\u007f" } as const;

/** Collects a line that a person types without seeing it. */
export class HiddenLine {
  #text = "";

  /** Takes typed text. Returns the line once it ends, undefined before that, and null if the person gave up. */
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

/** The command that opens a URL; null without a screen. */
function browserCommand(
  platform: NodeJS.Platform,
  { DISPLAY = "", WAYLAND_DISPLAY = "", BROWSER = "" }: Io["env"],
): readonly string[] | null {
  if (platform === "darwin") return ["open"];
  // `cmd /c start` would read `&` in a URL as the end of the command.
  if (platform === "win32") return ["rundll32", "url.dll,FileProtocolHandler"];
  return DISPLAY === "" && WAYLAND_DISPLAY === "" && BROWSER === "" ? null : ["xdg-open"];
}

/** Opens a URL without a shell. Returns whether the program for it could be started. */
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
