import { endOfString, endOfValue, skipSpace } from "../core/json-values.ts";
import { EditedText, isCardNumber, isNamedMember, isNamingMember, type Masking, secretKind } from "./mask-rules.ts";

/** Masks a text that was nested or encoded inside another one. */
export type MaskInner = (text: string) => string;

/** Whether the text may have JSON members. Without a quoted name and a colon, `maskMembers` only applies `inner` to strings. */
export function hasMembers(text: string): boolean {
  return text.includes('"') && MEMBER.test(text);
}

const MEMBER = /"\s*:/;

/**
 * Masks the values of members with the name of a secret, and applies `inner` to every other string and name. If such a value is
 * an object or list, its structure stays and each value in it is checked. Works on the text, so that numbers, escapes and white
 * space keep their spelling. Invalid or cut JSON is read as far as possible. One pass, without recursion.
 */
export function maskMembers(text: string, masking: Masking, inner: MaskInner): string {
  const masked = new EditedText(text);
  const named = NAMED_VALUE.test(text) ? namedValues(text) : null;
  const hasKey = text.includes('"kty"');

  /** Masks a string. If it is the name of a secret, returns the kind of the secret; else null. */
  function maskString(start: number, end: number): string | null {
    const name = readString(text, start, end);
    const shown = inner(name);
    if (shown === name) return secretKind(name) ?? (hasKey && PRIVATE_PARTS.has(name) ? "key" : null);
    masked.replace(start, end, quoted(shown));
    // Check the masked name, too, so that masking twice changes nothing more.
    return secretKind(name) ?? secretKind(shown);
  }

  /** A card number is often called just `number`, as in `{"card":{"number":…}}`. */
  function cardAt(start: number, end: number, value: number): string | null {
    if (end - start !== NUMBER.length || text.slice(start, end).toLowerCase() !== NUMBER) return null;
    const written = text.slice(value, value + CARD_CHARS_MAX).match(WRITTEN_NUMBER)?.[0] ?? "";
    return isCardNumber(written.replaceAll(/[" -]/g, "")) ? "card-number" : null;
  }

  /** Masks a value, or everything in an object or list. Returns where to read on. */
  function maskValue(start: number, outer: string): number {
    if (text[start] !== "{" && text[start] !== "[") return maskScalar(start, outer);
    const end = endOfValue(text, start);
    let kind = outer;
    let at = start + 1;
    while (at < end) {
      if (text.charCodeAt(at) === QUOTE) {
        const stringEnd = endOfString(text, at);
        const isName = text[skipSpace(text, stringEnd)] === ":";
        if (isName) kind = maskString(at, stringEnd) ?? outer;
        at = isName ? stringEnd : maskScalar(at, kind);
      } else at = isBetweenValues(text.charCodeAt(at)) ? at + 1 : maskScalar(at, kind);
    }
    return at;
  }

  function maskScalar(start: number, kind: string): number {
    if (text[start] === '"') {
      const end = endOfString(text, start);
      const value = readString(text, start, end);
      const shown = masking.hideNamed(value, kind, inner);
      if (shown !== value) masked.replace(start, end, quoted(shown));
      return end;
    }
    const end = endOfScalar(text, start);
    const value = text.slice(start, end);
    // A number, or any word in invalid JSON. Deciders see it, since generated secrets are strings.
    if (masking.viewer === "public" && masking.hidesNamed(value)) {
      masked.replace(start, end, quoted(masking.hide(value, kind)));
    }
    return Math.max(end, start + 1);
  }

  /** Masks a list in which each name is followed by its value. Returns where to read on. */
  function maskRawHeaders(start: number): number {
    let kind: string | null = null;
    let at = skipSpace(text, start + 1);
    for (let isName = true; text.charCodeAt(at) === QUOTE; isName = !isName) {
      const end = endOfString(text, at);
      if (!isName && kind !== null) maskScalar(at, kind);
      else kind = maskString(at, end);
      const comma = skipSpace(text, end);
      if (text.charCodeAt(comma) !== COMMA) return end;
      at = skipSpace(text, comma + 1);
    }
    return at;
  }

  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at)) {
    const end = endOfString(text, at);
    const kind = maskString(at, end);
    const colon = skipSpace(text, end);
    const value = text[colon] === ":" ? skipSpace(text, colon + 1) : -1;
    const meant = value === -1 ? null : (kind ?? named?.get(value) ?? cardAt(at, end, value));
    if (meant !== null) at = maskValue(value, meant);
    else if (text[value] === "[" && RAW_HEADERS.test(text.slice(at, end))) at = maskRawHeaders(value);
    else at = kind !== null && isFirstOfPair(text, at, end) ? maskScalar(skipSpace(text, colon + 1), kind) : end;
  }
  return masked.toString();
}

/** As in Node: `"rawHeaders":["Authorization","Bearer …"]`. */
const RAW_HEADERS = /^"raw[_-]?(?:headers|trailers)"$/i;

/** Whether a string is the name in a list of pairs, as in `[["authorization","Bearer …"],…]`. */
function isFirstOfPair(text: string, start: number, end: number): boolean {
  const comma = skipSpace(text, end);
  const value = skipSpace(text, comma + 1);
  if (text.charCodeAt(comma) !== COMMA || text.charCodeAt(value) !== QUOTE) return false;
  const open = beforeSpace(text, start);
  const before = text.charCodeAt(beforeSpace(text, open));
  const isInList = text.charCodeAt(open) === OPEN_BRACKET && (before === OPEN_BRACKET || before === COMMA);
  return isInList && text.charCodeAt(skipSpace(text, endOfString(text, value))) === BRACKET;
}

/** The position of the last character before this one that is no space. */
function beforeSpace(text: string, position: number): number {
  let at = position - 1;
  while (at > 0 && text.charCodeAt(at) <= SPACE) at -= 1;
  return at;
}

/** The private members of a JSON Web Key (RFC 7518, 6.2.2, 6.3.2 and 6.4.1). */
const PRIVATE_PARTS: ReadonlySet<string> = new Set(["d", "p", "q", "dp", "dq", "qi", "k"]);

const NUMBER = '"number"';

/** Room for nineteen digits, spaces between them, and quotes. */
const CARD_CHARS_MAX = 40;

const WRITTEN_NUMBER = /^(?:"[\d -]+"|\d+)/;

const NAMED_VALUE = /"(?:(?:string|parameter)?value|val|content)"\s*:/i;

/**
 * The positions and kinds of values that another member of their object names as secret, in any order:
 * `{"name":"password","value":…}`.
 */
function namedValues(text: string): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  const open: { kind: string | null; value: number }[] = [];
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === OPEN_BRACE) open.push({ kind: null, value: -1 });
    else if (code === BRACE) {
      const { kind, value } = open.pop() ?? { kind: null, value: -1 };
      if (kind !== null && value !== -1) found.set(value, kind);
    }
    if (code !== QUOTE) {
      at += 1;
      continue;
    }
    const end = endOfString(text, at);
    const colon = skipSpace(text, end);
    const object = open.at(-1);
    const name =
      object !== undefined && text[colon] === ":" && end - at < NAME_CHARS_MAX ? readString(text, at, end) : "";
    at = name === "" ? end : skipSpace(text, colon + 1);
    if (object === undefined || name === "") continue;
    if (isNamedMember(name)) object.value = at;
    else if (isNamingMember(name) && text.charCodeAt(at) === QUOTE) {
      const nameEnd = endOfString(text, at);
      object.kind ??= secretKind(readString(text, at, nameEnd));
      at = nameEnd;
    }
  }
  return found;
}

/** The length with quotes. No naming or named member has a longer name. */
const NAME_CHARS_MAX = 17;

/** Like `JSON.stringify`, but several times as fast for masks and other texts in which nothing is escaped. */
function quoted(text: string): string {
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const isPlain = code >= SPACE && code !== QUOTE && code !== BACKSLASH && (code < 0xd800 || code > 0xdfff);
    if (!isPlain) return JSON.stringify(text);
  }
  return `"${text}"`;
}

/** The value of a quoted string. If it is cut or badly escaped, the text as written. */
function readString(text: string, start: number, end: number): string {
  const isClosed = end - start > 1 && text[end - 1] === '"';
  const written = text.slice(start + 1, isClosed ? end - 1 : end);
  if (!written.includes("\\")) return written;
  try {
    return String(JSON.parse(`"${written}"`));
  } catch {
    return written;
  }
}

/** Where a number or word ends. Not at a space, since a secret in invalid JSON may contain one. */
function endOfScalar(text: string, start: number): number {
  let end = start;
  while (end < text.length && !endsScalar(text.charCodeAt(end))) end += 1;
  while (end > start && text.charCodeAt(end - 1) <= SPACE) end -= 1;
  return end;
}

const [NEWLINE, RETURN, SPACE, QUOTE] = [0x0a, 0x0d, 0x20, 0x22];

const [COMMA, OPEN_BRACKET, BACKSLASH, BRACKET, OPEN_BRACE, BRACE] = [0x2c, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d];

function endsScalar(code: number): boolean {
  return code === COMMA || code === BRACE || code === BRACKET || code === NEWLINE || code === RETURN;
}

const PUNCTUATION = new Set(Buffer.from(":,{}[]"));

function isBetweenValues(code: number): boolean {
  return code <= SPACE || PUNCTUATION.has(code);
}
