import { readFile } from "node:fs/promises";
import { type Io, UsageError } from "./command.ts";

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
