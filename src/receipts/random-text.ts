import type { Alphabet } from "./secret-formats.ts";

const LETTERS = "abcdefghijklmnopqrstuvwxyz";

const ALNUM = `0123456789${LETTERS}${LETTERS.toUpperCase()}`;

export const ALPHABETS: Readonly<Record<Alphabet, Uint8Array>> = {
  alnum: charTable(ALNUM),
  lower: charTable(`0123456789${LETTERS}`),
  upper: charTable(`0123456789${LETTERS.toUpperCase()}`),
  hex: charTable("0123456789abcdefABCDEF"),
  base64: charTable(`${ALNUM}+/=`),
  base64url: charTable(`${ALNUM}_-`),
  dotted: charTable(`${ALNUM}_-.=`),
  path: charTable(`${ALNUM}_-.=/:@%~`),
};

function charTable(chars: string): Uint8Array {
  const table = new Uint8Array(128);
  for (let at = 0; at < chars.length; at += 1) table[chars.charCodeAt(at)] = 1;
  return table;
}

/** A stretch of this many letters and digits looks random if it mixes two kinds (lower, upper, digit); words have one kind. */
const STRETCH_CHARS = 5;

/** Only this many characters are checked. */
const LOOKED_AT_CHARS = 64;

/**
 * Answers questions about what follows a prefix. It keeps the last answers, since otherwise a text of prefixes alone would take
 * quadratic time, or be read 64 times.
 */
export class Runs {
  readonly #text: string;
  /** The last run of each alphabet. */
  readonly #last = new Map<Alphabet, { from: number; end: number }>();
  /** Nothing between these positions looks random, wherever between them one begins to read. */
  #wordsFrom = 0;
  #wordsTo = -1;

  constructor(text: string) {
    this.#text = text;
  }

  /** The end of the run of an alphabet that begins at this position or contains it. */
  endOf(from: number, alphabet: Alphabet): number {
    const last = this.#last.get(alphabet);
    if (last !== undefined && from >= last.from && from < last.end) return last.end;
    const table = ALPHABETS[alphabet];
    const text = this.#text;
    let end = from;
    while (end < text.length && table[text.charCodeAt(end)] === 1) end += 1;
    if (last === undefined) this.#last.set(alphabet, { from, end });
    else {
      last.from = from;
      last.end = end;
    }
    return end;
  }

  /** Whether it looks random, as secrets of issuers do; `npm_please_delete_everything_from_the_database` is text. */
  lookRandom(from: number, end: number): boolean {
    const to = Math.min(end, from + LOOKED_AT_CHARS);
    const isKnown = from >= this.#wordsFrom && from <= this.#wordsTo;
    if (isKnown && to <= this.#wordsTo) return false;
    // A long stretch that doesn't look random has one kind, wherever in it one begins to read.
    let at = isKnown ? Math.max(from, this.#wordsTo - STRETCH_CHARS) : from;
    let stretch = 0;
    let kinds = 0;
    for (; at < to; at += 1) {
      const kind = charCase(this.#text.charCodeAt(at));
      stretch = kind === 0 ? 0 : stretch + 1;
      // A capital at the start of a word does not count.
      kinds = stretch <= 1 ? kind & ~UPPER : kinds | kind;
      if (stretch >= STRETCH_CHARS && kinds !== LOWER && kinds !== UPPER && kinds !== DIGIT) return true;
    }
    this.#wordsFrom = from;
    this.#wordsTo = to;
    return false;
  }
}

const [LOWER, UPPER] = [1, 2] as const;

export const DIGIT = 4;

/** The kind of a character, as a bit; 0: another one. */
export function charCase(code: number): number {
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  if (code >= 0x41 && code <= 0x5a) return UPPER;
  return code >= 0x61 && code <= 0x7a ? LOWER : 0;
}

/** Shorter texts may be words, so they never look generated. */
export const GENERATED_CHARS_MIN = 16;

const GENERATED_BITS_MIN = 3.5;

/** Random texts change between kinds of characters at least once in this many; names and words change less often. */
const CHARS_FOR_A_CHANGE = 6;

/**
 * Whether a text looks generated: at least `GENERATED_CHARS_MIN` characters without spaces, at least `bitsMin` bits of entropy
 * per character, and as many changes between digits, capitals and small letters as random text has. Length and entropy alone
 * would hide "production-database" and "deleteAllCustomersNow" from approvers.
 */
export function looksGenerated(text: string, bitsMin = GENERATED_BITS_MIN): boolean {
  if (text.length < GENERATED_CHARS_MIN || countChanges(text) * CHARS_FOR_A_CHANGE < text.length) return false;
  return !/\s/.test(text) && textEntropy(text) >= bitsMin;
}

/** Counts changes between kinds of characters. A small letter after a capital is none, since words begin like that. */
function countChanges(text: string): number {
  let changes = 0;
  let before = 0;
  for (let at = 0; at < text.length; at += 1) {
    const kind = charCase(text.charCodeAt(at));
    if (kind !== 0 && before !== 0 && kind !== before && !(before === UPPER && kind === LOWER)) changes += 1;
    before = kind;
  }
  return changes;
}

/** Only this many characters are counted. */
const ENTROPY_CHARS_MAX = 256;

/** Shannon entropy in bits per character, from the character frequencies. All non-ASCII characters count as one. */
export function textEntropy(text: string): number {
  const length = Math.min(text.length, ENTROPY_CHARS_MAX);
  const counts = new Uint16Array(129);
  for (let at = 0; at < length; at += 1) {
    const code = Math.min(128, text.charCodeAt(at));
    counts[code] = (counts[code] ?? 0) + 1;
  }
  let bits = 0;
  for (let at = 0; at < length; at += 1) bits -= Math.log2((counts[Math.min(128, text.charCodeAt(at))] ?? 1) / length);
  return length === 0 ? 0 : bits / length;
}
