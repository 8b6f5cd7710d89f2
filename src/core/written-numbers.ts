import { endOfString, skipSpace } from "./json-walk.ts";

/**
 * A JSON text without its white space, where it is what the engine prints of it but for white space and numbers: printed,
 * 1.0 and 12345678901234567890 would change. `printed` is what `JSON.stringify` makes of the parsed `written`. Null where the
 * two differ in more, which is rare: by a name that is given twice and printed once, by the order of names that are integers,
 * by an escape that is not needed. A copy token by token takes several times as long.
 */
export function withoutSpaceAsPrinted(written: string, printed: string): string | null {
  let text = "";
  /** What is before it in `written` is in `text` already, or is white space. */
  let copied = 0;
  let from = 0;
  /** Up to here `printed` is in a string. */
  let stringEnd = 0;
  for (let at = 0; at < printed.length;) {
    const code = printed.charCodeAt(at);
    if (at >= stringEnd && isSpace(written.charCodeAt(from))) {
      text += written.slice(copied, from);
      from = skipSpace(written, from);
      copied = from;
    }
    if (at >= stringEnd && isInNumber(code)) {
      const end = endOfNumber(written, from);
      if (end === from) return null;
      from = end;
      at = endOfNumber(printed, at);
      continue;
    }
    if (at >= stringEnd && code === QUOTE) stringEnd = endOfString(printed, at);
    if (code !== written.charCodeAt(from)) return null;
    from += 1;
    at += 1;
  }
  return skipSpace(written, from) === written.length ? text + written.slice(copied, from) : null;
}

const [QUOTE, MINUS, PLUS, DOT, ZERO, NINE] = [0x22, 0x2d, 0x2b, 0x2e, 0x30, 0x39];

/** Outside of strings: any other character would not have been parsed. */
function isSpace(code: number): boolean {
  return code <= 0x20;
}

function endOfNumber(text: string, start: number): number {
  let at = start;
  // `e` begins no other value, and follows none directly.
  while (isInNumber(text.charCodeAt(at)) || (at > start && isExponent(text.charCodeAt(at)))) at += 1;
  return at;
}

function isInNumber(code: number): boolean {
  return (code >= ZERO && code <= NINE) || code === MINUS || code === DOT || code === PLUS;
}

function isExponent(code: number): boolean {
  return code === 0x65 || code === 0x45;
}
