import { ALPHABETS, charCase, DIGIT, looksGenerated, type Runs } from "./random-text.ts";

/** The position of a secret in a text, and its kind. */
export interface FoundSecret {
  readonly start: number;
  readonly end: number;
  readonly name: string;
}

const NONE: readonly FoundSecret[] = [];

/**
 * Secrets found by their structure. Each has to parse, so that `-----BEGIN X-----` or `Bearer delete-all` hides nothing from
 * an approver.
 */
export function byStructure(text: string, runs: Runs): readonly FoundSecret[] {
  const jwts = jsonWebTokens(text, runs);
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

/** How often the sign of a JWT may stand in what comes before the first dot. Decoding all of it at each would take quadratic time. */
const JWT_SIGNS_MAX = 16;

/** `{"alg":"x"}` */
const JWT_HEADER_CHARS_MIN = 15;

const JWT_PAYLOAD_CHARS_MIN = 8;

function jsonWebTokens(text: string, runs: Runs): readonly FoundSecret[] {
  let run = -1;
  let signs = 0;
  return secretsAt(
    text,
    "eyJ",
    (_text, start) => {
      const headerEnd = runs.endOf(start, "base64url");
      signs = headerEnd === run ? signs + 1 : 1;
      run = headerEnd;
      return signs > JWT_SIGNS_MAX ? null : jwtAt(text, start, headerEnd, runs);
    },
    runs,
  );
}

/** Header and payload, with a signature or without (RFC 7519). */
function jwtAt(text: string, start: number, headerEnd: number, runs: Runs): FoundSecret | null {
  if (text[headerEnd] !== "." || !isJoseHeader(text.slice(start, headerEnd))) return null;
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
  while (colon - start <= 10 && charCase(text.charCodeAt(start - 1)) === DIGIT) start -= 1;
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
