import type { MaskInner } from "./mask-pairs.ts";
import { MASK, maskSecret } from "./mask-secret.ts";
import { isSensitiveName } from "./mask-words.ts";

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];
const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];
const SPACE = 0x20;

/** A quoted name and its colon: then the text is worth reading as JSON. */
export const HAS_MEMBERS = /"\s*:/;

/**
 * Masks the values of members with a secret's name, and by `inner` every other string and name. Works on the text, so
 * that all else keeps its spelling: numbers, escapes, white space. A text that is no JSON, or was cut, is read as far as
 * it looks like it; one pass without recursion, whatever the depth.
 */
export function maskMembers(text: string, inner: MaskInner): string {
  let masked = "";
  let kept = 0;
  const put = (start: number, end: number, replacement: string) => {
    masked += text.slice(kept, start) + replacement;
    kept = end;
  };
  let at = text.indexOf('"');
  while (at !== -1) {
    const end = endOfString(text, at);
    const colon = skipSpace(text, end);
    const name = stringOf(text, at, end);
    const shown = inner(name);
    if (shown !== name) put(at, end, JSON.stringify(shown));
    let next = end;
    // A name that was masked is judged as it is shown too, so that masking twice is masking once.
    const isSensitive = isSensitiveName(name) || (shown !== name && isSensitiveName(shown));
    if (isSensitive && text.charCodeAt(colon) === COLON) {
      const start = skipSpace(text, colon + 1);
      next = endOfValue(text, start);
      put(start, next, valueMask(text, start, next));
    }
    at = text.indexOf('"', next);
  }
  return kept === 0 ? text : masked + text.slice(kept);
}

/** The mask of a value of any type, as JSON. An object or a list shows nothing of itself, not even an end. */
function valueMask(text: string, start: number, end: number): string {
  const first = text.charCodeAt(start);
  if (first === OPEN_OBJECT || first === OPEN_LIST) return MASKED;
  if (first !== QUOTE) return quoted(maskSecret(text.slice(start, end)));
  const value = stringOf(text, start, end);
  const masked = maskSecret(value);
  return masked === value ? text.slice(start, end) : quoted(masked);
}

const MASKED = JSON.stringify(MASK);

function quoted(masked: string): string {
  return masked === MASK ? MASKED : JSON.stringify(masked);
}

/** What a string with its quotes says. One that is cut or badly escaped is taken as it is written. */
function stringOf(text: string, start: number, end: number): string {
  const isClosed = end - start > 1 && text.charCodeAt(end - 1) === QUOTE;
  const written = text.slice(start + 1, isClosed ? end - 1 : end);
  if (!written.includes("\\")) return written;
  try {
    return String(JSON.parse(`"${written}"`));
  } catch {
    return written;
  }
}

/** Behind the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return endOfString(text, start);
  if (first === OPEN_OBJECT || first === OPEN_LIST) return endOfNest(text, start);
  let at = start;
  while (at < text.length && !endsScalar(text.charCodeAt(at))) at += 1;
  while (at > start && text.charCodeAt(at - 1) <= SPACE) at -= 1;
  return at;
}

/** Where as many are closed as were opened; of which kind is the parser's business. */
function endOfNest(text: string, start: number): number {
  let depth = 0;
  let at = start;
  while (at < text.length) {
    const code = text.charCodeAt(at);
    at = code === QUOTE ? endOfString(text, at) : at + 1;
    if (code === OPEN_OBJECT || code === OPEN_LIST) depth += 1;
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}

/** Not a space: in a text that is no JSON a secret may hold one. */
function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_OBJECT || code === CLOSE_LIST || code === 0x0a || code === 0x0d;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) <= SPACE) at += 1;
  return at;
}
