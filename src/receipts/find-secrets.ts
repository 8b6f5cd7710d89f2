import { charCase, Runs } from "./random-text.ts";
import { SECRET_FORMATS, type SecretFormat } from "./secret-formats.ts";
import { byStructure, type FoundSecret } from "./secret-structures.ts";

/**
 * Finds all secrets of known formats and structures, sorted by start; they may overlap. Pure; reads each character a bounded
 * number of times, whatever the text is.
 */
export function findSecrets(text: string): readonly FoundSecret[] {
  if (text.length < SECRET_CHARS_MIN) return [];
  const runs = new Runs(text);
  const known = findPrefixed(text, runs);
  const structured = byStructure(text, runs);
  if (structured.length === 0) return known;
  return [...known, ...structured].toSorted((a, b) => a.start - b.start || b.end - a.end);
}

/** No format is shorter than this, about the length of `Basic dTpwYXNz`. */
const SECRET_CHARS_MIN = 14;

/**
 * The formats by a hash of the first three characters of their prefixes. One look-up rules out most positions of a text. Longer
 * prefixes come first, so that `sk-ant-api03-` doesn't match as `sk-`.
 */
const BY_START: (SecretFormat[] | undefined)[] = Array.from({ length: 1 << 15 });

/** The formats of URLs, by the first three letters of the host. */
const URLS = Map.groupBy(
  SECRET_FORMATS.filter(({ isPlace, prefix }) => isPlace === true && prefix.includes("/")).map((format) => {
    const slash = format.prefix.indexOf("/");
    return { format, host: format.prefix.slice(0, slash), path: format.prefix.slice(slash) };
  }),
  ({ host }) => host.slice(0, 3),
);

for (const format of SECRET_FORMATS.toSorted((a, b) => b.prefix.length - a.prefix.length)) {
  const [first = 0, second = 0, third] = Buffer.from(format.prefix);
  const thirds = third === undefined ? Array.from({ length: 128 }, (_, code) => code) : [third];
  for (const code of thirds) (BY_START[[first, second, code].reduce(hashWith, 0)] ??= []).push(format);
}

/** 1 if one of those hosts may begin with these three characters, by the same hash. Hosts ignore case. */
const URL_STARTS = new Uint8Array(BY_START.length);

// Each bit says whether one of the three letters is a capital.
for (const start of URLS.keys()) {
  for (let capitals = 0; capitals < 8; capitals += 1) {
    const written = Array.from(start, (letter, at) => (capitals & (1 << at) ? letter.toUpperCase() : letter));
    URL_STARTS[written.reduce((hash, letter) => hashWith(hash, letter.charCodeAt(0)), 0)] = 1;
  }
}

/** Adds a character to a hash of the last three; the fourth is shifted out. */
function hashWith(before: number, code: number): number {
  return ((before << 5) ^ code) & 0x7fff;
}

/** Secrets with a prefix, in order and without overlap. Reads each character a bounded number of times. */
function findPrefixed(text: string, runs: Runs): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  let hash = 0;
  for (let at = 0; at < text.length; at += 1) {
    hash = hashWith(hash, text.charCodeAt(at));
    const formats = BY_START[hash];
    const mayBeUrl = URL_STARTS[hash] === 1;
    if ((formats === undefined && !mayBeUrl) || at < 2) continue;
    const start = at - 2;
    const secret = secretAt(formats ?? [], text, runs, start) ?? (mayBeUrl ? urlAt(text, runs, start) : null);
    if (secret === null) continue;
    found.push(secret);
    at = secret.end - 1;
    hash = 0;
  }
  return found;
}

function secretAt(formats: readonly SecretFormat[], text: string, runs: Runs, start: number): FoundSecret | null {
  for (const format of formats) {
    const secret = beginsWith(format.prefix, text, start) ? takeSecret(format, text, runs, start) : null;
    if (secret !== null) return secret;
  }
  return null;
}

/** What may be between a host and its path: the root's dot, a port. */
const AFTER_HOST = /\.?(?::\d{1,5})?(?=\/)/y;

/** How much of a path is normalized. It is bounded, since each repetition of a host in a text reads the path again. */
const NORMAL_PATH_CHARS = 96;

/**
 * The secret of a URL that is spelled differently from its format: with capitals or a port in the host, or with percent-encoded
 * letters, dot segments or double slashes in the path, which is then hidden whole.
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

/** Compares backwards, since prefixes in one list differ at their ends: `startsWith` takes five times as long. */
function beginsWith(prefix: string, text: string, start: number): boolean {
  let at = prefix.length - 1;
  while (at >= 0 && text.charCodeAt(start + at) === prefix.charCodeAt(at)) at -= 1;
  return at < 0;
}

function takeSecret(format: SecretFormat, text: string, runs: Runs, start: number): FoundSecret | null {
  const from = start + format.prefix.length;
  const end = endOfFormat(text, runs, from, format);
  if (end === null) return null;
  // Inside a longer word, like `task_test_1`, it is no secret unless the random part is long.
  if (
    end - from < GLUED_CHARS_MIN &&
    charCase(text.charCodeAt(start - 1)) !== 0 &&
    charCase(text.charCodeAt(start)) !== 0
  )
    return null;
  // Hex and capitals alone make no words.
  const isRandom = format.alphabet === "hex" || format.alphabet === "upper" || runs.lookRandom(from, end);
  return isRandom ? { start: format.isPlace === true ? from : start, end, name: format.name } : null;
}

const GLUED_CHARS_MIN = 20;

/** The end of a secret of this format; null: too short. */
function endOfFormat(text: string, runs: Runs, from: number, { alphabet, min, second }: SecretFormat): number | null {
  const end = runs.endOf(from, alphabet);
  if (second === undefined) return end - from >= min ? end : null;
  const sign = from + min;
  if (end < sign || !text.startsWith(second.sign, sign)) return null;
  const last = runs.endOf(sign + second.sign.length, second.alphabet);
  return last - sign - second.sign.length >= second.min ? last : null;
}
