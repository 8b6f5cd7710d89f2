import { caseOf, findPrefixed, type FoundSecret, LOWER, Runs, UPPER } from "./secret-prefixes.ts";

/**
 * Finds all secrets of known formats and structures, by their start; they may overlap. Pure; reads each character a bounded
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

/** No format is shorter, about the length of `Basic dTpwYXNz`. */
const SECRET_CHARS_MIN = 14;

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

/** Bearer tokens are longer. */
const BASIC_CHARS_MIN = 8;

/** Lower than for other values: after `Bearer` even hex of 32 characters is a token. */
const BEARER_BITS_MIN = 3;

/** RFC 6750 and 7617. The scheme stays visible. */
function credentials(text: string): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  SCHEME.lastIndex = 0;
  while (SCHEME.test(text)) {
    const start = SCHEME.lastIndex;
    TOKEN.lastIndex = start;
    const end = TOKEN.test(text) ? TOKEN.lastIndex : start;
    // Already masked in part: the rest alone must not count as another token.
    if (end - start < BASIC_CHARS_MIN || text[end] === "•") continue;
    const token = text.slice(start, end);
    const isBasic = endsInBasic(text, start);
    if (isBasic ? !isUserAndPassword(token) : !looksGenerated(token, BEARER_BITS_MIN)) continue;
    found.push({ start, end, name: isBasic ? "Basic credentials" : "Bearer token" });
    SCHEME.lastIndex = end;
  }
  return found;
}

/** Whether the scheme before a token is `Basic` and not `Bearer`. */
function endsInBasic(text: string, end: number): boolean {
  let at = end - 1;
  while (text[at] === " " || text[at] === "\t") at -= 1;
  return text[at] === "c" || text[at] === "C";
}

function isUserAndPassword(token: string): boolean {
  const decoded = Buffer.from(token, "base64").toString("latin1");
  const colon = decoded.indexOf(":");
  return colon !== -1 && colon < decoded.length - 1 && /^[\x20-\x7e\xa0-\xff]+$/.test(decoded);
}

/** Shorter texts may be words. */
export const GENERATED_CHARS_MIN = 16;

const GENERATED_BITS_MIN = 3.5;

/** Random texts change between kinds of characters at least once in so many; names and words do so less often. */
const CHARS_FOR_A_CHANGE = 6;

/**
 * Whether a text looks generated: at least `GENERATED_CHARS_MIN` characters without spaces, at least `bitsMin` bits of entropy
 * per character, and as many changes between digits, capitals and small letters as random text has. Length and entropy alone
 * would hide `production-database` and `deleteAllCustomersNow` from approvers.
 */
export function looksGenerated(text: string, bitsMin = GENERATED_BITS_MIN): boolean {
  if (text.length < GENERATED_CHARS_MIN || changesOf(text) * CHARS_FOR_A_CHANGE < text.length) return false;
  return !/\s/.test(text) && entropyOf(text) >= bitsMin;
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
