import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX } from "./limits.ts";

/** What one look at the bytes tells before anything is parsed. */
export type JsonScan = "too_deep" | "too_many_members" | "plain" | "exact";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];
/** Digits that a double holds exactly whatever they are. */
const SAFE_DIGITS = 15;

/**
 * Bounds a JSON text from its bytes, so that hostile depth or size never reaches the parser (hostile 1): 100,000 levels
 * cost 3 ms here and 700 ms there. `exact` says that a number in it may not survive plain parsing.
 */
export function scanJson(bytes: Uint8Array, membersMax = JSON_MEMBERS_MAX): JsonScan {
  let depth = 0;
  let members = 0;
  let digits = 0;
  let exact = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = endOfString(bytes, at);
      digits = 0;
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      depth += 1;
      if (depth > JSON_DEPTH_MAX) return "too_deep";
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth -= 1;
    else if (byte === COLON) {
      members += 1;
      if (members > membersMax) return "too_many_members";
    } else if (isDigit(byte)) {
      digits += 1;
      exact ||= digits > SAFE_DIGITS;
    } else exact ||= digits > 0 && isFractional(byte);
    if (!isDigit(byte)) digits = byte === 0x2d && isZero(bytes[at + 1]) ? 1 + SAFE_DIGITS : 0;
  }
  return exact ? "exact" : "plain";
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** `.`, `e` and `E`: 1.0 and 1e2 are numbers whose spelling parsing loses. */
function isFractional(byte: number | undefined): boolean {
  return byte === 0x2e || byte === 0x65 || byte === 0x45;
}

/** A minus before a zero: -0 would come back as 0. */
function isZero(byte: number | undefined): boolean {
  return byte === 0x30;
}

function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Makes a parsed value whose numbers print as they were written; `JSON.stringify` of it gives their spelling back. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_name: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined && String(value) !== source
      ? JSON_RAW.rawJSON(source)
      : value;
  });
}

/** Part of every engine that we run on, but not yet of the types. */
const JSON_RAW = JSON as typeof JSON & { rawJSON(text: string): object };

/** Whether text of ours can be stored and shown: no NUL, no half of a surrogate pair (libSQL breaks on both). */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}
