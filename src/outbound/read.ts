import { scanJson } from "../domain/json.ts";
import { RESPONSE_BODY_BYTES_MAX } from "../domain/limits.ts";

/** What arrived of an answer's body, never decoded from any `Content-Encoding`. */
export interface ReadBody {
  /** At most `RESPONSE_BODY_BYTES_MAX`. */
  readonly bytes: Uint8Array;
  readonly truncated: boolean;
  /** The body ended by an error: closed, garbled, or cut by our own signal. */
  readonly isBroken: boolean;
}

/** Reads up to the cap and drops the rest with its connection: a body of 2 GB costs 3 MB. Never throws. */
export async function readBody(body: ReadableStream<Uint8Array> | null): Promise<ReadBody> {
  if (body === null) return EMPTY;
  const reader = body.getReader();
  let buffer = EMPTY.bytes;
  let length = 0;
  let isBroken = false;
  try {
    while (length <= RESPONSE_BODY_BYTES_MAX) {
      const { done, value } = await reader.read();
      if (done) break;
      buffer = appended(buffer, length, value);
      length += value.byteLength;
    }
  } catch {
    isBroken = true;
  }
  const isTooLong = length > RESPONSE_BODY_BYTES_MAX;
  if (isTooLong) await dropped(reader);
  const bytes = buffer.subarray(0, Math.min(length, RESPONSE_BODY_BYTES_MAX));
  return { bytes, truncated: isTooLong || isBroken, isBroken };
}

/** Closes the connection under an answer that nobody reads. */
export async function dropped(body: Pick<ReadableStream, "cancel"> | null): Promise<void> {
  try {
    await body?.cancel();
  } catch {
    // It was broken already: then no connection is left to close.
  }
}

/**
 * The JSON text that is shown as `response_body` (decisions 4): a JSON value as it was written, numbers too; other text
 * as a string; bytes as base64; null for nothing. A cut text is never taken for a value: 12 may have been 123.
 */
export function shownAs(bytes: Uint8Array, truncated: boolean): string | null {
  if (bytes.byteLength === 0) return null;
  const text = textOf(bytes, truncated);
  if (text === null) return JSON.stringify({ encoding: "base64", data: Buffer.from(bytes).toString("base64") });
  return !truncated && isJson(bytes, text) ? text : JSON.stringify(text);
}

/** Null when it is not UTF-8. Of a cut text the last character is left out if a part of it is missing. */
function textOf(bytes: Uint8Array, truncated: boolean): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: truncated });
  } catch {
    return null;
  }
}

/** How every JSON text begins; a parser that throws costs more than all the rest of a small answer. */
const JSON_START = /^\s*[{["\-0-9tfn]/;

/** Depth is looked at first: 100,000 levels would hold the event loop in the parser (hostile 1). */
function isJson(bytes: Uint8Array, text: string): boolean {
  if (!JSON_START.test(text) || scanJson(bytes, Infinity) === "too_deep") return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * A list of chunks would cost a hundred times its bytes when they come one by one, so there is one buffer, doubled when
 * it is full; the usual answer is a single chunk and never copied.
 */
function appended(buffer: Uint8Array, length: number, chunk: Uint8Array): Uint8Array {
  if (length === 0) return chunk;
  const needed = Math.min(length + chunk.byteLength, RESPONSE_BODY_BYTES_MAX);
  let target = buffer;
  if (needed > buffer.byteLength) {
    target = new Uint8Array(Math.min(2 * needed, RESPONSE_BODY_BYTES_MAX));
    target.set(buffer.subarray(0, length));
  }
  target.set(chunk.subarray(0, needed - length), length);
  return target;
}

const EMPTY: ReadBody = { bytes: new Uint8Array(0), truncated: false, isBroken: false };
