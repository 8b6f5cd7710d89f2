import { type Alphabet, SECRET_FORMATS, type SecretFormat } from "./secret-formats.ts";

/** Where a secret stands in a text, and what it is. */
export interface FoundSecret {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const ALNUM = `0123456789${LETTERS}${LETTERS.toUpperCase()}`;

const ALPHABETS: Readonly<Record<Alphabet, Uint8Array>> = {
  alnum: tableOf(ALNUM),
  lower: tableOf(`0123456789${LETTERS}`),
  upper: tableOf(`0123456789${LETTERS.toUpperCase()}`),
  hex: tableOf("0123456789abcdefABCDEF"),
  base64: tableOf(`${ALNUM}+/=`),
  base64url: tableOf(`${ALNUM}_-`),
  dotted: tableOf(`${ALNUM}_-.=`),
  path: tableOf(`${ALNUM}_-.=/:@%~`),
};

function tableOf(chars: string): Uint8Array {
  const table = new Uint8Array(128);
  for (let at = 0; at < chars.length; at += 1) table[chars.charCodeAt(at)] = 1;
  return table;
}

/** Formats by the first two characters of their beginning: most places of a text are done with in one look. */
const PAIRS = new Uint8Array(1 << 14);
const BY_PAIR = new Map<number, readonly SecretFormat[]>();
for (const format of SECRET_FORMATS) {
  const pair = (format.prefix.charCodeAt(0) << 7) | format.prefix.charCodeAt(1);
  PAIRS[pair] = 1;
  const others = BY_PAIR.get(pair) ?? [];
  // The longest beginning first: `sk-ant-api03-` is no key of whoever begins with `sk-`.
  BY_PAIR.set(
    pair,
    [...others, format].toSorted((a, b) => b.prefix.length - a.prefix.length),
  );
}

/**
 * Every secret of a known format, in the order in which they stand and without overlap. Looks at each character a bounded
 * number of times, whatever the text is. Pure.
 */
export function findSecrets(text: string): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  const runs = new Runs(text);
  let before = 0x80;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const pair = code < 0x80 && before < 0x80 ? (before << 7) | code : -1;
    before = code;
    if (pair === -1 || PAIRS[pair] !== 1) continue;
    const secret = secretAt(text, runs, at - 1, BY_PAIR.get(pair) ?? []);
    if (secret === null) continue;
    found.push(secret);
    at = secret.end - 1;
    before = 0x80;
  }
  return found;
}

function secretAt(text: string, runs: Runs, start: number, formats: readonly SecretFormat[]): FoundSecret | null {
  for (const format of formats) {
    const from = start + format.prefix.length;
    // The last character first: nine beginnings share `sk-`, and comparing each whole took most of the time.
    if (text.charCodeAt(from - 1) !== format.prefix.charCodeAt(format.prefix.length - 1)) continue;
    if (!text.startsWith(format.prefix, start)) continue;
    const end = endOf(text, runs, from, format);
    if (end === null || !looksRandom(text, from, end, format)) continue;
    // Within a longer word: `task_test_1` has the letters of a key and is none. A long random run is no accident.
    if (isAlnum(text.charCodeAt(start - 1)) && isAlnum(text.charCodeAt(start)) && end - from < GLUED_CHARS_MIN)
      continue;
    return { start: format.isPlace === true ? from : start, end, name: format.name };
  }
  return null;
}

const GLUED_CHARS_MIN = 20;

/** Where the run of a format ends, or null when it is too short to be one. */
function endOf(text: string, runs: Runs, from: number, { alphabet, min, second }: SecretFormat): number | null {
  const end = runs.endOf(from, alphabet);
  if (second === undefined) return end - from >= min ? end : null;
  const sign = from + min;
  if (end < sign || !text.startsWith(second.sign, sign)) return null;
  const last = runs.endOf(sign + second.sign.length, second.alphabet);
  return last - sign - second.sign.length >= second.min ? last : null;
}

/**
 * Where runs of an alphabet end. Each remembers the last one: a text that is one beginning after the other, all of one
 * alphabet, would be walked over from each of them to its end otherwise.
 */
class Runs {
  readonly #text: string;
  readonly #last = new Map<Alphabet, { from: number; end: number }>();

  constructor(text: string) {
    this.#text = text;
  }

  endOf(from: number, alphabet: Alphabet): number {
    const last = this.#last.get(alphabet);
    if (last !== undefined && from >= last.from && from < last.end) return last.end;
    const table = ALPHABETS[alphabet];
    let end = from;
    while (end < this.#text.length && table[this.#text.charCodeAt(end)] === 1) end += 1;
    this.#last.set(alphabet, { from, end });
    return end;
  }
}

/** Characters in a row, without a hyphen or dot between them, of which two kinds are: words have one kind. */
const STRETCH_CHARS = 5;
/** Behind so many characters of one kind nobody looks on. */
const LOOKED_AT_CHARS = 64;
const [LOWER, UPPER, DIGIT] = [1, 2, 4];

/** An issuer draws its secrets at random; `npm_please_delete_everything_from_the_database` was written by somebody. */
function looksRandom(text: string, from: number, end: number, { alphabet }: SecretFormat): boolean {
  if (alphabet === "hex" || alphabet === "upper") return true;
  let kinds = 0;
  let stretch = 0;
  for (let at = from; at < Math.min(end, from + LOOKED_AT_CHARS); at += 1) {
    const kind = kindOf(text.charCodeAt(at));
    stretch = kind === 0 ? 0 : stretch + 1;
    // A word may begin with a capital.
    kinds = stretch <= 1 ? kind & ~UPPER : kinds | kind;
    if (stretch >= STRETCH_CHARS && kinds !== LOWER && kinds !== UPPER && kinds !== DIGIT) return true;
  }
  return false;
}

function kindOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  if (code >= 0x41 && code <= 0x5a) return UPPER;
  return code >= 0x61 && code <= 0x7a ? LOWER : 0;
}

function isAlnum(code: number): boolean {
  return kindOf(code) !== 0;
}
