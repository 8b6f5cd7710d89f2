import type { ParsedJson } from "../contract/json-text.ts";
import { DomainError } from "../domain/errors.ts";
import { scanJson } from "../domain/json.ts";
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX } from "../domain/limits.ts";

/** Fatal: a byte that is not UTF-8 is an error and not a replacement character. A byte-order mark is dropped. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });
/** From here on the steps are turns of their own: together they would hold the event loop for up to 50 ms a megabyte. */
const LARGE_BYTES = 131_072;

/** One JSON text from its bytes, bounded before it is parsed (hostile 1). Throws `invalid_request`. */
export async function parseJson(bytes: Uint8Array): Promise<ParsedJson> {
  const scan = scanJson(bytes);
  if (scan === "too_deep") throw invalid(`The JSON is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  if (scan === "too_many_members") throw invalid(`The JSON has more than ${JSON_MEMBERS_MAX} members.`);
  const text = decode(bytes);
  if (bytes.length > LARGE_BYTES) await nextTurn();
  const value = parse(text);
  if (bytes.length > LARGE_BYTES) await nextTurn();
  return { value, text, scan };
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw invalid("The body is not UTF-8.");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid("The body is not valid JSON.");
  }
}

function invalid(message: string): DomainError {
  return new DomainError("invalid_request", message);
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
