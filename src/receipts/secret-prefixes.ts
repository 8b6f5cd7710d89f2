import { type Alphabet, SECRET_FORMATS, type SecretFormat } from "./secret-formats.ts";

/** The position of a secret in a text, and its kind. */
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

/** The prefixes as a tree, from character to character. Comparing with one after another took most of the time. */
interface Prefixes {
  readonly next: (Prefixes | undefined)[];
  /** The formats whose prefix ends here or on the way here, the longest first: `sk-ant-api03-` must not match as `sk-`. */
  readonly formats: readonly SecretFormat[];
}

const PREFIXES = prefixTree();

/** One lookup of the first three characters of a prefix rules out most positions of a text; what is left is compared. */
const STARTS = new Uint8Array(1 << 15);

for (const { prefix } of SECRET_FORMATS) {
  const start = Array.from(prefix.slice(0, 3)).reduce((hash, character) => hashWith(hash, character.charCodeAt(0)), 0);
  if (prefix.length >= 3) STARTS[start] = 1;
  else for (let third = 0; third < 128; third += 1) STARTS[hashWith(start, third)] = 1;
}

/** The formats of URLs, by the first three letters of the host. */
const URLS = Map.groupBy(
  SECRET_FORMATS.filter(({ isPlace, prefix }) => isPlace === true && prefix.includes("/")).map((format) => {
    const slash = format.prefix.indexOf("/");
    return { format, host: format.prefix.slice(0, slash), path: format.prefix.slice(slash) };
  }),
  ({ host }) => host.slice(0, 3),
);

// In hosts the case of letters makes no difference. Bit by bit: which of the three is a capital.
for (const start of URLS.keys()) {
  for (let capitals = 1; capitals < 8; capitals += 1) {
    const written = Array.from(start, (letter, at) => (capitals & (1 << at) ? letter.toUpperCase() : letter));
    STARTS[written.reduce((hash, letter) => hashWith(hash, letter.charCodeAt(0)), 0)] = 1;
  }
}

/** A hash of the last three characters: a fourth one is shifted out. */
function hashWith(before: number, code: number): number {
  return ((before << 5) ^ code) & 0x7fff;
}

function prefixTree(): Prefixes {
  const root: Prefixes = { next: [], formats: [] };
  for (const format of SECRET_FORMATS.toSorted((a, b) => a.prefix.length - b.prefix.length)) {
    let node = root;
    const last = format.prefix.length - 1;
    for (let at = 0; at <= last; at += 1) {
      const code = format.prefix.charCodeAt(at);
      const next = node.next[code] ?? { next: [], formats: at === last ? [format, ...node.formats] : node.formats };
      node.next[code] = next;
      node = next;
    }
  }
  return root;
}

/** Secrets with a prefix, in order and without overlap. Reads each character a bounded number of times. */
export function findPrefixed(text: string, runs: Runs): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) {
    hash = hashWith(hash, text.charCodeAt(at));
    if (STARTS[hash] !== 1) continue;
    const secret = secretAt(text, runs, at - 2);
    if (secret === null) continue;
    found.push(secret);
    at = secret.end - 1;
    hash = 0;
  }
  return found;
}

function secretAt(text: string, runs: Runs, start: number): FoundSecret | null {
  const formats = formatsAt(text, start);
  for (let at = 0; at < formats.length; at += 1) {
    const format = formats[at];
    const secret = format === undefined ? null : secretOf(format, text, runs, start);
    if (secret !== null) return secret;
  }
  return urlAt(text, runs, start);
}

/** What may stand between a host and its path: the dot of the root, a port. */
const AFTER_HOST = /\.?(?::\d{1,5})?(?=\/)/y;

/** So much of a path is read in its normal form: each repetition of a host in a text reads it again. */
const NORMAL_PATH_CHARS = 96;

/**
 * The secret of a URL that is written in another way than its format: with capitals or a port in the host, or with letters
 * of the path percent-encoded, dot segments or double slashes, where the whole path is hidden.
 */
function urlAt(text: string, runs: Runs, start: number): FoundSecret | null {
  // One host may have several paths, and reading one takes a while.
  let [readAt, readPath] = [-1, ""];
  for (const { format, host, path } of URLS.get(text.slice(start, start + 3).toLowerCase()) ?? NO_URLS) {
    if (text.slice(start, start + host.length).toLowerCase() !== host) continue;
    AFTER_HOST.lastIndex = start + host.length;
    const between = AFTER_HOST.exec(text)?.[0];
    if (between === undefined) continue;
    const at = start + host.length + between.length;
    const written = text.slice(at, at + NORMAL_PATH_CHARS);
    const isNormal = written.startsWith(path);
    if (!isNormal && readAt !== at) [readAt, readPath] = [at, normalPath(written)];
    const normal = isNormal ? written : readPath;
    if (!normal.startsWith(path)) continue;
    const from = at + (isNormal ? path.length : 1);
    const end = runs.endOf(from, format.alphabet);
    const looksRandom = isNormal ? runs.lookRandom(from, end) : new Runs(normal).lookRandom(path.length, normal.length);
    if (end - from >= format.min && looksRandom) return { start: from, end, name: format.name };
  }
  return null;
}

const NO_URLS: readonly never[] = [];

/** A path as servers read it: unescaped, without dot segments and empty ones. */
function normalPath(path: string): string {
  const unescaped = path.replaceAll(/%([2-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return URL.parse(`http://localhost${unescaped.replaceAll(/\/{2,}/g, "/")}`)?.pathname ?? "";
}

/** The formats whose prefix begins here, the longest first. */
function formatsAt(text: string, start: number): readonly SecretFormat[] {
  let node = PREFIXES;
  for (let at = start; at < text.length; at += 1) {
    const next = node.next[text.charCodeAt(at)];
    if (next === undefined) break;
    node = next;
  }
  return node.formats;
}

function secretOf(format: SecretFormat, text: string, runs: Runs, start: number): FoundSecret | null {
  const from = start + format.prefix.length;
  const end = endOf(text, runs, from, format);
  if (end === null) return null;
  // Inside a longer word, like `task_test_1`, it is no secret unless the random part is long.
  if (end - from < GLUED_CHARS_MIN && isAlnum(text.charCodeAt(start - 1)) && isAlnum(text.charCodeAt(start)))
    return null;
  // Hex and capitals alone make no words.
  const isRandom = format.alphabet === "hex" || format.alphabet === "upper" || runs.lookRandom(from, end);
  return isRandom ? { start: format.isPlace === true ? from : start, end, name: format.name } : null;
}

const GLUED_CHARS_MIN = 20;

/** The end of a secret of this format; null: too short. */
function endOf(text: string, runs: Runs, from: number, { alphabet, min, second }: SecretFormat): number | null {
  const end = runs.endOf(from, alphabet);
  if (second === undefined) return end - from >= min ? end : null;
  const sign = from + min;
  if (end < sign || !text.startsWith(second.sign, sign)) return null;
  const last = runs.endOf(sign + second.sign.length, second.alphabet);
  return last - sign - second.sign.length >= second.min ? last : null;
}

/** A stretch of this many letters and digits with two kinds (lower, upper, digit) looks random; words have one kind. */
const STRETCH_CHARS = 5;

/** Only this many characters are checked. */
const LOOKED_AT_CHARS = 64;

/**
 * Answers questions on what follows a prefix. It keeps the last answers, since a text of nothing but prefixes would otherwise
 * take quadratic time, or be read 64 times.
 */
export class Runs {
  readonly #text: string;
  /** The last run of each alphabet. */
  readonly #last = new Map<Alphabet, { from: number; end: number }>();
  /** Between these positions nothing looks random, if it is read from the first or from a later one. */
  #wordsFrom = 0;
  #wordsTo = -1;
  /** The stretch that ends at the last of them, and its kinds. */
  #stretchFrom = 0;
  #kinds = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The end of the run of an alphabet that begins at the position or holds it. */
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

  /** Issuers generate secrets at random; `npm_please_delete_everything_from_the_database` is text. */
  lookRandom(from: number, end: number): boolean {
    const to = Math.min(end, from + LOOKED_AT_CHARS);
    const isKnown = from >= this.#wordsFrom && from <= this.#wordsTo;
    if (isKnown && to <= this.#wordsTo) return false;
    // A long stretch that doesn't look random has one kind, wherever in it one begins to read.
    const known = isKnown ? Math.max(from, this.#stretchFrom) : from;
    const goesOn = isKnown && this.#wordsTo - known >= STRETCH_CHARS;
    let at = goesOn ? this.#wordsTo : known;
    let stretch = at - known;
    let kinds = goesOn ? this.#kinds : 0;
    for (; at < to; at += 1) {
      const kind = caseOf(this.#text.charCodeAt(at));
      stretch = kind === 0 ? 0 : stretch + 1;
      // A capital at the start of a word does not count.
      kinds = stretch <= 1 ? kind & ~UPPER : kinds | kind;
      if (stretch >= STRETCH_CHARS && kinds !== LOWER && kinds !== UPPER && kinds !== DIGIT) return true;
    }
    this.#wordsFrom = from;
    this.#wordsTo = to;
    this.#stretchFrom = to - stretch;
    this.#kinds = kinds;
    return false;
  }
}

function isAlnum(code: number): boolean {
  return caseOf(code) !== 0;
}

export const [LOWER, UPPER, DIGIT] = [1, 2, 4] as const;

/** The kind of a character, as a bit; 0: another one. */
export function caseOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  if (code >= 0x41 && code <= 0x5a) return UPPER;
  return code >= 0x61 && code <= 0x7a ? LOWER : 0;
}
