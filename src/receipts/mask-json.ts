import type { MaskInner } from "./mask-pairs.ts";
import type { Masking } from "./mask-value.ts";
import { secretKind } from "./mask-words.ts";

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];

const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];

const SPACE = 0x20;

const MARKS = new Set([COLON, COMMA, OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST]);

/** A quoted name and a colon: the text may be JSON. */
export const HAS_MEMBERS = /"\s*:/;

/**
 * Masks the values of members with the name of a secret, and applies `inner` to every other string and name. In an object or
 * list with such a name each value is checked and the structure stays. Works on the text, so that numbers, escapes and white
 * space keep their spelling. Invalid or cut JSON is read as far as possible. One pass, without recursion.
 */
export function maskMembers(text: string, masking: Masking, inner: MaskInner): string {
  return new Members(text, masking, inner).masked();
}

class Members {
  readonly #text: string;
  readonly #masking: Masking;
  readonly #inner: MaskInner;
  #masked = "";
  #kept = 0;

  constructor(text: string, masking: Masking, inner: MaskInner) {
    this.#text = text;
    this.#masking = masking;
    this.#inner = inner;
  }

  masked(): string {
    const text = this.#text;
    let at = text.indexOf('"');
    while (at !== -1) {
      const end = endOfString(text, at);
      const kind = this.#string(at, end);
      const colon = skipSpace(text, end);
      const isSecret = kind !== null && text.charCodeAt(colon) === COLON;
      at = text.indexOf('"', isSecret ? this.#value(skipSpace(text, colon + 1), kind) : end);
    }
    return this.#kept === 0 ? text : this.#masked + text.slice(this.#kept);
  }

  /** Masks a name, or a value without a secret's name. Returns what kind of secret its value is if it is a name; else null. */
  #string(start: number, end: number): string | null {
    const name = stringOf(this.#text, start, end);
    const shown = this.#inner(name);
    if (shown === name) return secretKind(name);
    this.#put(start, end, shown);
    // Check the masked name too, so that masking a second time changes nothing.
    return secretKind(name) ?? secretKind(shown);
  }

  /** Masks the value of a secret's name; returns where to read on. */
  #value(start: number, kind: string): number {
    const text = this.#text;
    const first = text.charCodeAt(start);
    if (first === OPEN_OBJECT || first === OPEN_LIST) return this.#nest(start, kind);
    return first === QUOTE ? this.#secretString(start, kind) : this.#secretScalar(start, kind);
  }

  /** Masks everything in an object or list, without recursion. */
  #nest(start: number, outer: string): number {
    const text = this.#text;
    const end = endOfNest(text, start);
    let kind = outer;
    let at = start + 1;
    while (at < end) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        const stringEnd = endOfString(text, at);
        if (text.charCodeAt(skipSpace(text, stringEnd)) === COLON) {
          kind = this.#string(at, stringEnd) ?? outer;
          at = stringEnd;
        } else at = this.#secretString(at, kind);
      } else if (code <= SPACE || MARKS.has(code)) at += 1;
      else at = this.#secretScalar(at, kind);
    }
    return at;
  }

  #secretString(start: number, kind: string): number {
    const end = endOfString(this.#text, start);
    const value = stringOf(this.#text, start, end);
    const shown = this.#masking.hidesNamed(value) ? this.#masking.hide(value, kind) : this.#inner(value);
    if (shown !== value) this.#put(start, end, shown);
    return end;
  }

  /** A number, or any word in invalid JSON. Shown to deciders, since generated secrets are strings. */
  #secretScalar(start: number, kind: string): number {
    const end = endOfScalar(this.#text, start);
    const value = this.#text.slice(start, end);
    if (this.#masking.viewer === "public" && this.#masking.hidesNamed(value)) {
      this.#put(start, end, this.#masking.hide(value, kind));
    }
    return Math.max(end, start + 1);
  }

  #put(start: number, end: number, shown: string): void {
    this.#masked += this.#text.slice(this.#kept, start) + JSON.stringify(shown);
    this.#kept = end;
  }
}

/** The value of a quoted string. A cut or badly escaped one is taken as written. */
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

/** The index after the closing quote, or the end of the text. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

function endOfScalar(text: string, start: number): number {
  let at = start;
  while (at < text.length && !endsScalar(text.charCodeAt(at))) at += 1;
  while (at > start && text.charCodeAt(at - 1) <= SPACE) at -= 1;
  return at;
}

/** Where all brackets are closed; it does not check that the kinds match. */
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

/** A space does not end it: in invalid JSON a secret may contain one. */
function endsScalar(code: number): boolean {
  return code === COMMA || code === CLOSE_OBJECT || code === CLOSE_LIST || code === 0x0a || code === 0x0d;
}

function skipSpace(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) <= SPACE) at += 1;
  return at;
}
