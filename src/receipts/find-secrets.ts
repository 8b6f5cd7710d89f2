import { type Alphabet, SECRET_FORMATS, type SecretFormat } from "./secret-formats.ts";

/** The position of a secret in a text, and its kind. */
interface FoundSecret {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

/**
 * Finds all secrets of known formats and structures, by their start; they may overlap. Pure; reads each character a bounded
 * number of times, whatever the text is.
 */
export function findSecrets(text: string): readonly FoundSecret[] {
  if (text.length < SECRET_CHARS_MIN) return NONE;
  const runs = new Runs(text);
  const known = byPrefix(text, runs);
  const structured = byStructure(text, runs);
  if (structured.length === 0) return known;
  return [...known, ...structured].toSorted((a, b) => a.start - b.start || b.end - a.end);
}

const NONE: readonly FoundSecret[] = [];

/** No format is shorter, about the length of `Basic dTpwYXNz`. */
const SECRET_CHARS_MIN = 14;

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

/** Formats by the first two characters of their prefix, the longest prefix first: `sk-ant-api03-` must not match as `sk-`. */
const BY_PAIR = Map.groupBy(
  SECRET_FORMATS.toSorted((a, b) => b.prefix.length - a.prefix.length),
  ({ prefix }) => (prefix.charCodeAt(0) << 7) | prefix.charCodeAt(1),
);

/** One lookup rules out most positions of a text. */
const PAIRS = new Uint8Array(1 << 14);

for (const pair of BY_PAIR.keys()) PAIRS[pair] = 1;

/** Secrets with a prefix, in order and without overlap. */
function byPrefix(text: string, runs: Runs): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
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
    // Compare the last character first: nine prefixes begin with `sk-`, and whole comparisons took most of the time.
    if (text.charCodeAt(from - 1) !== format.prefix.charCodeAt(format.prefix.length - 1)) continue;
    if (!text.startsWith(format.prefix, start)) continue;
    const end = endOf(text, runs, from, format);
    if (end === null || !looksRandom(text, from, end, format)) continue;
    // Inside a longer word, like `task_test_1`, it is no secret unless the random part is long.
    if (isAlnum(text.charCodeAt(start - 1)) && isAlnum(text.charCodeAt(start)) && end - from < GLUED_CHARS_MIN)
      continue;
    return { start: format.isPlace === true ? from : start, end, name: format.name };
  }
  return null;
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

/**
 * Finds the ends of runs of an alphabet. It caches the last run of each, since a text of nothing but prefixes would otherwise
 * take quadratic time.
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

/** A stretch of this many letters and digits with two kinds (lower, upper, digit) looks random; words have one kind. */
const STRETCH_CHARS = 5;

/** Only this many characters are checked. */
const LOOKED_AT_CHARS = 64;

/** Issuers generate secrets at random; `npm_please_delete_everything_from_the_database` is text. */
function looksRandom(text: string, from: number, end: number, { alphabet }: SecretFormat): boolean {
  if (alphabet === "hex" || alphabet === "upper") return true;
  let kinds = 0;
  let stretch = 0;
  for (let at = from; at < Math.min(end, from + LOOKED_AT_CHARS); at += 1) {
    const kind = caseOf(text.charCodeAt(at));
    stretch = kind === 0 ? 0 : stretch + 1;
    // A capital at the start of a word does not count.
    kinds = stretch <= 1 ? kind & ~UPPER : kinds | kind;
    if (stretch >= STRETCH_CHARS && kinds !== LOWER && kinds !== UPPER && kinds !== DIGIT) return true;
  }
  return false;
}

function isAlnum(code: number): boolean {
  return caseOf(code) !== 0;
}

const [LOWER, UPPER, DIGIT] = [1, 2, 4];

/** The kind of a character, as a bit; 0: another one. */
function caseOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  if (code >= 0x41 && code <= 0x5a) return UPPER;
  return code >= 0x61 && code <= 0x7a ? LOWER : 0;
}

/**
 * Secrets found by their structure: JWTs, PEM blocks, and credentials after `Bearer` and `Basic`. Each has to parse, so that
 * `-----BEGIN X-----` or `Bearer delete-all` hides nothing from an approver.
 */
function byStructure(text: string, runs: Runs): readonly FoundSecret[] {
  return [
    ...(text.includes("eyJ") ? jwts(text, runs) : []),
    ...(text.includes(BEGIN) ? pemBlocks(text) : []),
    ...(MAY_HOLD_SCHEME.test(text) ? credentials(text) : []),
  ];
}

/** Longer first parts are no JWT headers; decoding them at each `eyJ` would take quadratic time. */
const JWT_HEADER_CHARS_MAX = 1_024;

/** `{"alg":"x"}` */
const JWT_HEADER_CHARS_MIN = 15;

const JWT_PAYLOAD_CHARS_MIN = 8;

/** Header and payload, with a signature or without (RFC 7519). */
function jwts(text: string, runs: Runs): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  for (let at = text.indexOf("eyJ"); at !== -1; at = text.indexOf("eyJ", Math.max(at + 1, found.at(-1)?.end ?? 0))) {
    const headerEnd = runs.endOf(at, "base64url");
    const isHeader = text[headerEnd] === "." && headerEnd - at <= JWT_HEADER_CHARS_MAX;
    if (!isHeader || !isJoseHeader(text.slice(at, headerEnd))) continue;
    let end = runs.endOf(headerEnd + 1, "base64url");
    if (end - headerEnd - 1 < JWT_PAYLOAD_CHARS_MIN) continue;
    // A signature; five parts where the token is encrypted (RFC 7516).
    for (let part = 0; part < 3 && text[end] === "."; part += 1) end = runs.endOf(end + 1, "base64url");
    found.push({ start: at, end, name: "JWT" });
  }
  return found;
}

/** Checked as text: parsing 80,000 parts that look like headers would take 0.1 s. */
function isJoseHeader(part: string): boolean {
  if (part.length < JWT_HEADER_CHARS_MIN) return false;
  const header = Buffer.from(part, "base64url").toString("latin1").trimEnd();
  return header.endsWith("}") && /"(?:alg|typ|enc)"\s*:/.test(header);
}

const BEGIN = "-----BEGIN ";

const END = "-----END ";

const LABEL = /[A-Z0-9 ]{1,40}-----/y;

/** `Proc-Type: 4,ENCRYPTED` and the like, at most so many lines, before the block itself. */
const PEM_HEADER_LINES_MAX = 8;

const PEM_HEADER = /[A-Za-z][A-Za-z-]{0,40}: [^\n]{0,200}\r?\n/y;

const NOT_PEM_BODY = /[^A-Za-z0-9+/=\s\\]/g;

/** Every key is longer. */
const PEM_CHARS_MIN = 40;

/** RFC 7468. In an answer that was cut, a block may reach to the end of the text. */
function pemBlocks(text: string): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  for (let at = text.indexOf(BEGIN); at !== -1; at = text.indexOf(BEGIN, Math.max(at + 1, found.at(-1)?.end ?? 0))) {
    LABEL.lastIndex = at + BEGIN.length;
    const label = LABEL.exec(text)?.[0];
    if (label === undefined) continue;
    const from = afterHeaders(text, at + BEGIN.length + label.length);
    NOT_PEM_BODY.lastIndex = from;
    const bodyEnd = NOT_PEM_BODY.exec(text)?.index ?? text.length;
    const isClosed = text.startsWith(END + label, bodyEnd);
    const isCut =
      !isClosed && text.length - bodyEnd < END.length + label.length && (END + label).startsWith(text.slice(bodyEnd));
    if ((!isClosed && !isCut) || !holdsKey(text.slice(from, Math.min(bodyEnd, from + PEM_CHARS_MAX)), label, isClosed))
      continue;
    found.push({ start: at, end: isClosed ? bodyEnd + END.length + label.length : text.length, name: "PEM block" });
  }
  return found;
}

function afterHeaders(text: string, from: number): number {
  let at = from;
  while (text[at] === "\n" || text[at] === "\r") at += 1;
  for (let line = 0; line < PEM_HEADER_LINES_MAX; line += 1) {
    PEM_HEADER.lastIndex = at;
    const header = PEM_HEADER.exec(text)?.[0];
    if (header === undefined) break;
    at += header.length;
  }
  return at;
}

/** An RSA key of 16,384 bits has 12,700. */
const PEM_CHARS_MAX = 32_768;

/** Whether lines of equal length decode to DER of exactly that size, to OpenSSH's format or to a PGP packet. */
function holdsKey(body: string, label: string, isClosed: boolean): boolean {
  // Invalid JSON is read unparsed, so its line ends may be escaped.
  const lines = body.split(/\r?\n|(?:\\r)?\\n/).filter((line) => line.trim() !== "");
  const width = lines[0]?.length ?? 0;
  if (lines.some((line, at) => (at < lines.length - 1 && line.length !== width) || line.length > width)) return false;
  const base64 = lines.join("");
  if (base64.length < PEM_CHARS_MIN || /[\s\\]/.test(base64)) return false;
  const bytes = Buffer.from(base64, "base64");
  if (label.startsWith("PGP ")) return (bytes[0] ?? 0) >= 0x80;
  return bytes.toString("latin1", 0, 14) === "openssh-key-v1" || isDer(bytes, isClosed);
}

/** A DER sequence whose length matches the rest (X.690, 8.1.3), or exceeds it if the text was cut. */
function isDer(bytes: Buffer, isWhole: boolean): boolean {
  const [tag, first = 0] = bytes;
  const lengthBytes = first & 0x80 ? first & 0x7f : 0;
  if (tag !== 0x30 || lengthBytes > 3 || bytes.length < 2 + lengthBytes) return false;
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes);
  return isWhole ? bytes.length === 2 + lengthBytes + length : bytes.length <= 2 + lengthBytes + length;
}

const MAY_HOLD_SCHEME = /bearer|basic/i;

/** Also at the end of a longer word: where that is masked, this is a word of its own, and masking twice would hide more. */
const SCHEME = /(?:bearer|basic)[ \t]{1,8}/gi;

const TOKEN = /[A-Za-z0-9._~+/-]{1,4096}={0,2}/y;

const BASIC_CHARS_MIN = 8;

/** Lower than for other values: after `Bearer` even hex of 32 characters is a token. */
const BEARER_BITS_MIN = 3;

/** RFC 6750 and 7617. The scheme stays visible. */
function credentials(text: string): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  SCHEME.lastIndex = 0;
  for (let scheme = SCHEME.exec(text); scheme !== null; scheme = SCHEME.exec(text)) {
    const start = scheme.index + scheme[0].length;
    TOKEN.lastIndex = start;
    const token = TOKEN.exec(text)?.[0] ?? "";
    // Already masked in part: the rest alone must not count as another token.
    if (text[start + token.length] === "•") continue;
    const isBasic = (scheme[0][1] ?? "").toLowerCase() === "a";
    if (isBasic ? !isUserAndPassword(token) : !looksGenerated(token, BEARER_BITS_MIN)) continue;
    found.push({ start, end: start + token.length, name: isBasic ? "Basic credentials" : "Bearer token" });
    SCHEME.lastIndex = start + token.length;
  }
  return found;
}

function isUserAndPassword(token: string): boolean {
  if (token.length < BASIC_CHARS_MIN) return false;
  const decoded = Buffer.from(token, "base64").toString("latin1");
  const colon = decoded.indexOf(":");
  return colon !== -1 && colon < decoded.length - 1 && /^[\x20-\x7e\xa0-\xff]+$/.test(decoded);
}

/** Shorter texts may be words. */
const GENERATED_CHARS_MIN = 16;

const GENERATED_BITS_MIN = 3.5;

/** Random texts change between kinds of characters at least once in so many; names and words do so less often. */
const CHARS_FOR_A_CHANGE = 6;

/**
 * Whether a text looks generated: at least `GENERATED_CHARS_MIN` characters without spaces, at least `bitsMin` bits of entropy
 * per character, and as many changes between digits, capitals and small letters as random text has. Length and entropy alone
 * would hide `production-database` and `deleteAllCustomersNow` from approvers.
 */
export function looksGenerated(text: string, bitsMin = GENERATED_BITS_MIN): boolean {
  if (text.length < GENERATED_CHARS_MIN || /\s/.test(text)) return false;
  return changesOf(text) * CHARS_FOR_A_CHANGE >= text.length && entropyOf(text) >= bitsMin;
}

/** A small letter after a capital is no change, since words begin like that. */
function changesOf(text: string): number {
  let changes = 0;
  let before = 0;
  for (let at = 0; at < text.length; at += 1) {
    const kind = caseOf(text.charCodeAt(at));
    if (kind !== 0 && before !== 0 && kind !== before && !(before === UPPER && kind === LOWER)) changes += 1;
    before = kind;
  }
  return changes;
}

/** Only this many characters are counted. */
const ENTROPY_CHARS_MAX = 256;

/** Shannon entropy in bits per character, by the character frequencies of the text; all non-ASCII ones count as one. */
export function entropyOf(text: string): number {
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
