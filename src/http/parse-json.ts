import type { ParsedJson } from "../contract/json-text.ts";
import { DomainError } from "../domain/errors.ts";
import { type JsonScan, scanJson } from "../domain/json.ts";
import { type CompactJson, compactJson } from "../domain/json-compact.ts";
import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX } from "../domain/limits.ts";

/** Fatal: a byte that is not UTF-8 is an error and not a replacement character. A byte-order mark is dropped. */
const UTF_8 = new TextDecoder("utf-8", { fatal: true });
/** From here on the steps are turns of their own: together they would hold the event loop for up to 50 ms a megabyte. */
const LARGE_BYTES = 131_072;

/** How a body becomes JSON. */
export type ParseJson = (bytes: Uint8Array) => Promise<ParsedJson>;

/** One JSON text from its bytes, bounded before it is parsed (hostile 1). Throws `invalid_request`. */
export async function parseJson(bytes: Uint8Array): Promise<ParsedJson> {
  const scan = bounded(bytes);
  const text = decode(bytes);
  if (bytes.length > LARGE_BYTES) await nextTurnOfLoop();
  const value = parseText(text);
  if (bytes.length > LARGE_BYTES) await nextTurnOfLoop();
  return { value, text, scan };
}

/**
 * The same for a body of which only fields of ours are looked at, none of them a list: in the value of a large one every
 * list is empty. Its text has them as they were written. A value of 340,000 lists takes 25 MB, this 4.
 */
export async function parseFields(bytes: Uint8Array): Promise<ParsedJson> {
  if (bytes.length <= LARGE_BYTES) return parseJson(bytes);
  bounded(bytes);
  await nextTurnOfLoop();
  const compact = compactJson(bytes);
  if (compact === null) throw invalid(NO_JSON);
  await nextTurnOfLoop();
  const value = parseText(decode(withoutLists(compact)));
  const text = decode(compact.bytes);
  await nextTurnOfLoop();
  // The value can't be printed again: whoever wants a member's text copies it.
  return { value, text, scan: "exact" };
}

function bounded(bytes: Uint8Array): Extract<JsonScan, "plain" | "exact"> {
  const scan = scanJson(bytes);
  if (scan === "too_deep") throw invalid(`The JSON is nested deeper than ${JSON_DEPTH_MAX} levels.`);
  if (scan === "too_many_members") throw invalid(`The JSON has more than ${JSON_MEMBERS_MAX} members.`);
  return scan;
}

function withoutLists({ bytes, lists }: CompactJson): Uint8Array {
  const parts: Uint8Array[] = [];
  let kept = 0;
  for (let at = 0; at + 1 < lists.length; at += 2) {
    const [start = 0, end = 0] = lists.slice(at, at + 2);
    parts.push(bytes.subarray(kept, start + 1));
    kept = end - 1;
  }
  return Buffer.concat([...parts, bytes.subarray(kept)]);
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw invalid("The body is not UTF-8.");
  }
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalid(NO_JSON);
  }
}

const NO_JSON = "The body is not valid JSON.";

function invalid(message: string): DomainError {
  return new DomainError("invalid_request", message);
}

function nextTurnOfLoop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
