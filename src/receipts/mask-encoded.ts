import { BACKSLASH, MARKUP, means, PERCENT, PLUS, QUOTE, SLASH } from "./characters.ts";
import type { MaskInner } from "./mask-members.ts";
import { changedBetweenMasks, EditedText, parameterKind, secretKind } from "./mask-rules.ts";

/** `pin%3D1`; nothing shorter holds a secret. */
const ENCODED_CHARS_MIN = 7;

/** Masks secrets in percent-encoded parts of paths and values; the rest of each part stays encoded. `ends`: what ends a part. */
export function maskEncoded(text: string, ends: number, inner: MaskInner): string {
  if (!text.includes("%") && !text.includes("+")) return text;
  const masked = new EditedText(text);
  let start = 0;
  let isEncoded = false;
  for (let at = 0; at <= text.length; at += 1) {
    const code = at < text.length ? text.charCodeAt(at) : SLASH;
    if (code === PERCENT || code === PLUS) isEncoded = true;
    if (!means(code, ends)) continue;
    if (isEncoded && at - start >= ENCODED_CHARS_MIN) {
      const part = text.slice(start, at);
      // Decode only the text between masks: the words of a mask would be read as part of a value.
      const shown = changedBetweenMasks(part, (...piece) => maskDecoded(...piece, PERCENT_ENCODING, inner));
      if (shown !== part) masked.replace(start, at, shown);
    }
    start = at + 1;
    isEncoded = false;
  }
  return masked.toString();
}

/** How a part of a text is encoded. */
interface Encoding {
  readonly decode: (part: string) => string;
  readonly encode: (text: string) => string;
  /** How long the first `count` decoded characters are in the encoded text. */
  readonly writtenLength: (part: string, count: number) => number;
}

function maskDecoded(part: string, isBeforeMask: boolean, encoding: Encoding, inner: MaskInner): string {
  const decoded = encoding.decode(part);
  if (decoded === part) return part;
  let read = decoded.length;
  // A quote before a mask is open around it, and no value.
  while (isBeforeMask && means(decoded.charCodeAt(read - 1), QUOTE)) read -= 1;
  const shown = inner(decoded.slice(0, read)) + decoded.slice(read);
  if (shown === decoded) return part;
  const most = Math.min(decoded.length, shown.length);
  let same = 0;
  while (same < most && decoded.charCodeAt(same) === shown.charCodeAt(same)) same += 1;
  let [end, shownEnd] = [decoded.length, shown.length];
  while (Math.min(end, shownEnd) > same && decoded.charCodeAt(end - 1) === shown.charCodeAt(shownEnd - 1)) {
    end -= 1;
    shownEnd -= 1;
  }
  // Keep the spelling of unchanged text: encoded anew, it could form another secret with its surroundings.
  const kept = encoding.writtenLength(part, same);
  return (
    part.slice(0, kept) +
    changedBetweenMasks(shown.slice(same, shownEnd), encoding.encode) +
    part.slice(encoding.writtenLength(part, end))
  );
}

const PERCENT_ENCODING: Encoding = {
  decode,
  encode: percent,
  writtenLength(part, count) {
    let length = 0;
    for (let decoded = 0; decoded < count; decoded += 1) length += byteAt(part, length) === null ? 1 : 3;
    return length;
  },
};

/** The characters that `decode` may have produced from bytes. */
const TO_ENCODE = /[^A-Za-z0-9._~\u0100-\uffff-]/g;

function percent(text: string): string {
  return text.replace(TO_ENCODE, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
}

/** Decodes plus and percent signs byte by byte; the names and formats of secrets are ASCII. */
export function decode(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  let decoded = "";
  let kept = 0;
  for (let at = spaced.indexOf("%"); at !== -1 && at < spaced.length; at += 1) {
    const byte = byteAt(spaced, at);
    if (byte === null) continue;
    decoded += spaced.slice(kept, at) + String.fromCharCode(byte);
    kept = at + 3;
    at = kept - 1;
  }
  return kept === 0 ? spaced : decoded + spaced.slice(kept);
}

/** The byte that the percent sign here and the two characters after it encode. */
function byteAt(text: string, at: number): number | null {
  if (text.charCodeAt(at) !== PERCENT) return null;
  const [high, low] = [hexDigit(text.charCodeAt(at + 1)), hexDigit(text.charCodeAt(at + 2))];
  return high === -1 || low === -1 ? null : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const small = code | 0x20;
  return small >= 0x61 && small <= 0x66 && code < 0x80 ? small - 0x57 : -1;
}

/** The kind of secret that a name means, which may be percent-encoded; null: none. */
export function nameKind(name: string, isQuery: boolean): string | null {
  const decoded = name.includes("%") ? decode(name) : name;
  return isQuery ? parameterKind(decoded) : secretKind(decoded);
}

/** HTML and XML references: by name to the characters around names and values, and by code to any character. */
const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(quot|apos|amp|lt|gt|nbsp|colon|equals));/g;

const NAMED_ENTITIES: Readonly<Record<string, string>> = {
  quot: '"',
  apos: "'",
  amp: "&",
  lt: "<",
  gt: ">",
  nbsp: " ",
  colon: ":",
  equals: "=",
};

/** Masks secrets in HTML and XML in which characters are written as references, as in `{&quot;password&quot;:…}`. */
export function maskEntities(text: string, isQuoted: boolean, inner: MaskInner): string {
  if (!text.includes("&") || !text.includes(";")) return text;
  // A quote that is escaped in JSON must stay so.
  const isAround = (code: number) => means(code, MARKUP) || (isQuoted && code === BACKSLASH);
  const masked = new EditedText(text);
  let end = 0;
  for (const { index } of text.matchAll(ENTITY)) {
    if (index < end) continue;
    let start = index;
    while (start > end && !isAround(text.charCodeAt(start - 1))) start -= 1;
    end = index;
    while (end < text.length && !isAround(text.charCodeAt(end))) end += 1;
    const part = text.slice(start, end);
    const shown = changedBetweenMasks(part, (...piece) => maskDecoded(...piece, ENTITIES, inner));
    if (shown !== part) masked.replace(start, end, shown);
  }
  return masked.toString();
}

/** Each reference is one UTF-16 unit or two. */
const ENTITIES: Encoding = {
  decode: withoutEntities,
  encode: (text) => text.replaceAll(/[&<>"'\\]/g, (sign) => `&#${sign.charCodeAt(0)};`),
  writtenLength(part, count) {
    // By how much the references so far are longer than their characters.
    let longer = 0;
    for (const match of part.matchAll(ENTITY)) {
      if (match.index - longer >= count) break;
      longer += match[0].length - decodeCharacter(match).length;
    }
    return count + longer;
  },
};

export function withoutEntities(text: string): string {
  return text.includes("&") ? text.replaceAll(ENTITY, (...match) => decodeCharacter(match)) : text;
}

function decodeCharacter([written, decimal, hex, name]: readonly unknown[]): string {
  if (typeof name === "string") return NAMED_ENTITIES[name] ?? "";
  const code = typeof hex === "string" ? Number.parseInt(hex, 16) : Number(decimal);
  return code <= 0x10ffff ? String.fromCodePoint(code) : String(written);
}
