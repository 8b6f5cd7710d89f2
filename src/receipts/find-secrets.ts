import { type Alphabet, SECRET_FORMATS, type SecretFormat } from "./secret-formats.ts";

/** The position of a secret in a text, and its kind. */
interface FoundSecret {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

/**
 * Finds all secrets of known formats and structures, sorted by start; they may overlap. Pure; reads each character a bounded
 * number of times, whatever the text is.
 */
export function findSecrets(text: string): readonly FoundSecret[] {
  if (text.length < SECRET_CHARS_MIN) return NONE;
  const runs = new Runs(text);
  const known = findPrefixed(text, runs);
  const structured = byStructure(text, runs);
  if (structured.length === 0) return known;
  return [...known, ...structured].toSorted((a, b) => a.start - b.start || b.end - a.end);
}

const NONE: readonly FoundSecret[] = [];

/** No format is shorter than this, about the length of `Basic dTpwYXNz`. */
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
    const secret = beginsWith(format.prefix, text, start) ? secretOf(format, text, runs, start) : null;
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

function secretOf(format: SecretFormat, text: string, runs: Runs, start: number): FoundSecret | null {
  const from = start + format.prefix.length;
  const end = endOfFormat(text, runs, from, format);
  if (end === null) return null;
  // Inside a longer word, like `task_test_1`, it is no secret unless the random part is long.
  if (end - from < GLUED_CHARS_MIN && caseOf(text.charCodeAt(start - 1)) !== 0 && caseOf(text.charCodeAt(start)) !== 0)
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

/** A stretch of this many letters and digits looks random if it mixes two kinds (lower, upper, digit); words have one kind. */
const STRETCH_CHARS = 5;

/** Only this many characters are checked. */
const LOOKED_AT_CHARS = 64;

/**
 * Answers questions about what follows a prefix. It keeps the last answers, since otherwise a text of prefixes alone would take
 * quadratic time, or be read 64 times.
 */
class Runs {
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
      const kind = caseOf(this.#text.charCodeAt(at));
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

const [LOWER, UPPER, DIGIT] = [1, 2, 4] as const;

/** The kind of a character, as a bit; 0: another one. */
function caseOf(code: number): number {
  if (code >= 0x30 && code <= 0x39) return DIGIT;
  if (code >= 0x41 && code <= 0x5a) return UPPER;
  return code >= 0x61 && code <= 0x7a ? LOWER : 0;
}

/**
 * Secrets found by their structure. Each has to parse, so that `-----BEGIN X-----` or `Bearer delete-all` hides nothing from
 * an approver.
 */
function byStructure(text: string, runs: Runs): readonly FoundSecret[] {
  const jwts = secretsAt(text, "eyJ", jwtAt, runs);
  const named = BLANK.test(text) && SCHEMES.some((scheme) => scheme.test(text)) ? credentials(text) : NONE;
  const long = text.length < LONG_CHARS_MIN ? NONE : byLongStructure(text, runs);
  if (jwts.length + named.length + long.length === 0) return NONE;
  return [...jwts, ...named, ...long];
}

/** Longer structures are searched for only in texts of this length; most JSON strings are shorter. */
const LONG_CHARS_MIN = 40;

function byLongStructure(text: string, runs: Runs): readonly FoundSecret[] {
  return [
    ...secretsAt(text, BEGIN, pemBlockAt, runs),
    ...secretsAt(text, PUTTY_LINES, puttyKeyAt, runs),
    ...secretsAt(text, ":AA", telegramTokenAt, runs),
    ...secretsAt(text, ".", discordTokenAt, runs),
    ...secretsAt(text, "AQE", adyenKeyAt, runs),
    ...secretsAt(text, "Q~", entraSecretAt, runs),
    ...bitcoinKeys(text),
    ...secretsAt(text, DIGEST_RESPONSE, digestResponseAt, runs),
  ];
}

/** The secret whose sign is at this position, or null. */
type SecretAt = (text: string, at: number, runs: Runs) => FoundSecret | null;

/** What `read` finds at each sign in the text, without looking inside what it has found. */
function secretsAt(text: string, sign: string, read: SecretAt, runs: Runs): readonly FoundSecret[] {
  let at = text.indexOf(sign);
  if (at === -1) return NONE;
  const found: FoundSecret[] = [];
  for (; at !== -1; at = text.indexOf(sign, Math.max(at + 1, found.at(-1)?.end ?? 0))) {
    const secret = read(text, at, runs);
    if (secret !== null) found.push(secret);
  }
  return found;
}

/** Longer first parts are no JWT headers; decoding them at each `eyJ` would take quadratic time. */
const JWT_HEADER_CHARS_MAX = 1_024;

/** `{"alg":"x"}` */
const JWT_HEADER_CHARS_MIN = 15;

const JWT_PAYLOAD_CHARS_MIN = 8;

/** Header and payload, with a signature or without (RFC 7519). */
function jwtAt(text: string, start: number, runs: Runs): FoundSecret | null {
  const headerEnd = runs.endOf(start, "base64url");
  const isHeader = text[headerEnd] === "." && headerEnd - start <= JWT_HEADER_CHARS_MAX;
  if (!isHeader || !isJoseHeader(text.slice(start, headerEnd))) return null;
  let end = runs.endOf(headerEnd + 1, "base64url");
  if (end - headerEnd - 1 < JWT_PAYLOAD_CHARS_MIN) return null;
  // A signature; five parts where the token is encrypted (RFC 7516).
  for (let part = 0; part < 3 && text[end] === "."; part += 1) end = runs.endOf(end + 1, "base64url");
  return { start, end, name: "JWT" };
}

/** Checks the text without parsing: to parse 80,000 parts that look like headers would take 0.1 s. */
function isJoseHeader(part: string): boolean {
  if (part.length < JWT_HEADER_CHARS_MIN) return false;
  const header = Buffer.from(part, "base64url").toString("latin1").trimEnd();
  return header.endsWith("}") && /"(?:alg|typ|enc)"\s*:/.test(header);
}

const BEGIN = "-----BEGIN ";

const END = "-----END ";

const LABEL = /[A-Z0-9 ]{1,40}-----/y;

/** How many lines like `Proc-Type: 4,ENCRYPTED` may come before the block itself. */
const PEM_HEADER_LINES_MAX = 8;

const PEM_HEADER = /\s{0,256}[A-Za-z][A-Za-z-]{0,40}: [^\n]{0,200}\r?\n/y;

const NOT_PEM_BODY = /[^A-Za-z0-9+/=\s\\]/g;

/** Every key is longer. */
const PEM_CHARS_MIN = 40;

/** A PEM block (RFC 7468). If the answer was cut, the block may reach to the end of the text. */
function pemBlockAt(text: string, start: number): FoundSecret | null {
  LABEL.lastIndex = start + BEGIN.length;
  const label = LABEL.exec(text)?.[0];
  if (label === undefined) return null;
  const from = afterHeaders(text, start + BEGIN.length + label.length);
  NOT_PEM_BODY.lastIndex = from;
  const bodyEnd = NOT_PEM_BODY.exec(text)?.index ?? text.length;
  const isClosed = text.startsWith(END + label, bodyEnd);
  const isCut =
    !isClosed && text.length - bodyEnd < END.length + label.length && (END + label).startsWith(text.slice(bodyEnd));
  const body = text.slice(from, Math.min(bodyEnd, from + PEM_CHARS_MAX));
  if ((!isClosed && !isCut) || !holdsKey(body, label, isClosed)) return null;
  return { start, end: isClosed ? bodyEnd + END.length + label.length : text.length, name: "PEM block" };
}

function afterHeaders(text: string, from: number): number {
  let at = from;
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

/** Lines may be indented, as in YAML, or joined by spaces, as in a variable. Invalid JSON is read unparsed, with escapes. */
const BETWEEN_LINES = /(?:\s|\\[nr])+/;

const LINE_END = /\r?\n|(?:\\r)?\\n/;

/** Whether lines of equal length decode to DER of exactly that size, to OpenSSH's format or to a PGP packet. */
function holdsKey(body: string, label: string, isClosed: boolean): boolean {
  const lines = body.split(BETWEEN_LINES).filter((line) => line !== "");
  const width = lines[0]?.length ?? 0;
  if (lines.some((line, at) => (at < lines.length - 1 && line.length !== width) || line.length > width)) return false;
  const base64 = lines.join("");
  if (base64.length < PEM_CHARS_MIN || base64.includes("\\")) return false;
  const bytes = Buffer.from(base64, "base64");
  // The packet format alone would match many texts, so rule out words between spaces.
  if (label.startsWith("PGP ")) return (bytes[0] ?? 0) >= 0x80 && !/\S[ \t]+\S/.test(body);
  return bytes.toString("latin1", 0, 14) === "openssh-key-v1" || isDer(bytes, isClosed);
}

/** Whether it is a DER sequence whose length matches the rest (X.690, 8.1.3), or exceeds it if the text was cut. */
function isDer(bytes: Buffer, isWhole: boolean): boolean {
  const [tag, first = 0] = bytes;
  const lengthBytes = first & 0x80 ? first & 0x7f : 0;
  if (tag !== 0x30 || lengthBytes > 3 || bytes.length < 2 + lengthBytes) return false;
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes);
  return isWhole ? bytes.length === 2 + lengthBytes + length : bytes.length <= 2 + lengthBytes + length;
}

const PUTTY_LINES = "Private-Lines: ";

/** The private part of a PuTTY key: its lines, then a checksum. */
const PUTTY_KEY = /\d{1,4}(?:\\r)?(?:\\n|\r?\n)([A-Za-z0-9+/=\s\\]{40,16384})Private-(?:MAC|Hash): ?[0-9a-f]{40,64}/y;

/** Hides only lines that look random: an approver must not miss what somebody wrote. */
function puttyKeyAt(text: string, at: number): FoundSecret | null {
  PUTTY_KEY.lastIndex = at + PUTTY_LINES.length;
  const [whole = "", lines = ""] = PUTTY_KEY.exec(text) ?? [];
  const written = lines
    .split(LINE_END)
    .map((line) => line.trim())
    .filter((line) => line !== "");
  const isKey = written.length > 0 && written.every((line, n) => n === written.length - 1 || looksGenerated(line));
  const start = at + PUTTY_LINES.length + whole.indexOf(lines);
  return isKey ? { start, end: start + lines.trimEnd().length, name: "PuTTY key" } : null;
}

const TELEGRAM_CHARS = 35;

/** A bot's number, a colon and 35 characters. */
function telegramTokenAt(text: string, colon: number, runs: Runs): FoundSecret | null {
  let start = colon;
  while (colon - start <= 10 && caseOf(text.charCodeAt(start - 1)) === DIGIT) start -= 1;
  const end = runs.endOf(colon + 1, "base64url");
  const isToken = colon - start >= 8 && colon - start <= 10 && end - colon - 1 === TELEGRAM_CHARS;
  return isToken && runs.lookRandom(colon + 1, end) ? { start, end, name: "Telegram bot token" } : null;
}

/** The characters between the two dots: a time. */
const DISCORD_TIME_CHARS = 6;

const DISCORD_USER_CHARS_MAX = 28;

/** A user's number in base64, a time and a signature, joined by dots. */
function discordTokenAt(text: string, first: number, runs: Runs): FoundSecret | null {
  const second = first + 1 + DISCORD_TIME_CHARS;
  if (text[second] !== "." || runs.endOf(first + 1, "base64url") !== second) return null;
  let start = first;
  while (first - start <= DISCORD_USER_CHARS_MAX && ALPHABETS.base64url[text.charCodeAt(start - 1)] === 1) start -= 1;
  const end = runs.endOf(second + 1, "base64url");
  if (end - second <= 27 || !/^[MNO]/.test(text[start] ?? "")) return null;
  const user = Buffer.from(text.slice(start, first), "base64url").toString("latin1");
  return /^\d{17,20}$/.test(user) ? { start, end, name: "Discord bot token" } : null;
}

const ADYEN_END = /-[^\s"'<>&\\]{8,32}/y;

/** Two base64 texts and a third part of any characters, joined by hyphens. An image has only the first part. */
function adyenKeyAt(text: string, start: number, runs: Runs): FoundSecret | null {
  const first = runs.endOf(start, "base64");
  if (first - start < 40 || text[first] !== "-") return null;
  const second = runs.endOf(first + 1, "base64");
  if (second - first <= 30) return null;
  ADYEN_END.lastIndex = second;
  return { start, end: ADYEN_END.test(text) ? ADYEN_END.lastIndex : second, name: "Adyen API key" };
}

const ENTRA_END = /[\w.~-]{31,34}(?![\w~-])/y;

/** Three signs, a digit, `Q~` and 31 to 34 signs. */
function entraSecretAt(text: string, at: number): FoundSecret | null {
  if (!/^[\w.~]{3}\d$/.test(text.slice(Math.max(0, at - 4), at))) return null;
  ENTRA_END.lastIndex = at + "Q~".length;
  return ENTRA_END.test(text) ? { start: at - 4, end: ENTRA_END.lastIndex, name: "Microsoft Entra secret" } : null;
}

/** A Bitcoin key in the format of wallets (WIF): base58 of exactly that length. */
const WIF = /\b(?:5[HJK][1-9A-HJ-NP-Za-km-z]{49}|[KL][1-9A-HJ-NP-Za-km-z]{51})\b/g;

function bitcoinKeys(text: string): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  for (const { 0: key, index } of text.matchAll(WIF)) {
    if (looksGenerated(key)) found.push({ start: index, end: index + key.length, name: "Bitcoin key" });
  }
  return found;
}

const BLANK = /[ \t]/;

/** One pattern for each, since one pattern for all takes six times as long. */
const SCHEMES = [/bearer|basic/i, /token[ \t]/i, /api-?key[ \t]/i, /ssws[ \t]/i];

/** Matches at the end of a longer word, too: once that word is masked, this would match, and masking twice would hide more. */
const SCHEME = /(bearer|basic|token|api-?key|ssws)[ \t]{1,8}/gi;

const TOKEN = /[A-Za-z0-9._~+/-]{1,4096}={0,2}/y;

/** Bearer tokens are longer. */
const BASIC_CHARS_MIN = 8;

/** Lower than for other values: after `Bearer`, even 32 characters of hex are a token. */
const BEARER_BITS_MIN = 3;

/** Credentials (RFC 6750 and 7617, and similar schemes). The scheme stays visible. */
function credentials(text: string): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  for (let match = SCHEME.exec(text); match !== null; match = SCHEME.exec(text)) {
    const start = SCHEME.lastIndex;
    TOKEN.lastIndex = start;
    const end = TOKEN.test(text) ? TOKEN.lastIndex : start;
    // It is masked in part already: the rest must not count as another token.
    if (end - start < BASIC_CHARS_MIN || text[end] === "•") continue;
    const token = text.slice(start, end);
    const scheme = (match[1] ?? "").toLowerCase();
    const isSecret = scheme === "basic" ? isUserAndPassword(token) : looksGenerated(token, BEARER_BITS_MIN);
    if (!isSecret) continue;
    found.push({ start, end, name: SCHEME_NAMES.get(scheme) ?? "credentials" });
    SCHEME.lastIndex = end;
  }
  return found;
}

const SCHEME_NAMES = new Map([
  ["bearer", "Bearer token"],
  ["basic", "Basic credentials"],
]);

const DIGEST_RESPONSE = "response=";

/** The directives of `Digest` are on one line, and rarely longer than this. */
const DIGEST_CHARS_MAX = 1_024;

const DIGEST_CODE = /"?([0-9a-f]{32,128})\b/y;

/** The `response` in `Digest` credentials (RFC 7616). Other digests are no secrets. */
function digestResponseAt(text: string, at: number): FoundSecret | null {
  DIGEST_CODE.lastIndex = at + DIGEST_RESPONSE.length;
  const code = DIGEST_CODE.exec(text)?.[1];
  if (code === undefined) return null;
  const before = text.slice(Math.max(0, at - DIGEST_CHARS_MAX), at);
  const isDigest = /digest[ \t]/i.test(before.slice(before.lastIndexOf("\n") + 1));
  const end = DIGEST_CODE.lastIndex;
  return isDigest ? { start: end - code.length, end, name: "credentials" } : null;
}

function isUserAndPassword(token: string): boolean {
  const decoded = Buffer.from(token, "base64").toString("latin1");
  const colon = decoded.indexOf(":");
  return colon !== -1 && colon < decoded.length - 1 && /^[\x20-\x7e\xa0-\xff]+$/.test(decoded);
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
  if (text.length < GENERATED_CHARS_MIN || changesOf(text) * CHARS_FOR_A_CHANGE < text.length) return false;
  return !/\s/.test(text) && entropyOf(text) >= bitsMin;
}

/** Counts changes between kinds of characters. A small letter after a capital is none, since words begin like that. */
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

/** Shannon entropy in bits per character, from the character frequencies. All non-ASCII characters count as one. */
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
