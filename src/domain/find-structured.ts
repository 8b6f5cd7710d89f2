import type { FoundSecret } from "./find-secrets.ts";
import { looksGenerated } from "./randomness.ts";

/**
 * Secrets that are known by their structure and not by a beginning alone: tokens that parse as JWT, key blocks that parse
 * as PEM, credentials behind `Bearer` and `Basic`. Each has to parse: whoever writes `-----BEGIN X-----` before an order, or
 * `Bearer delete-all`, hides nothing by it. Pure; a bounded look at each character, whatever the text is.
 */
export function findStructured(text: string): readonly FoundSecret[] {
  const found = [
    ...(text.includes("eyJ") ? jwts(text) : []),
    ...(text.includes(BEGIN) ? pemBlocks(text) : []),
    ...(MAY_HOLD_SCHEME.test(text) ? credentials(text) : []),
  ];
  return found.toSorted((a, b) => a.start - b.start || b.end - a.end);
}

/** A header of a JWT is short; a longer first part is data, and would be decoded again from each of its `eyJ`. */
const JWT_HEADER_CHARS_MAX = 1_024;
/** `{"alg":"x"}` */
const JWT_HEADER_CHARS_MIN = 15;
const JWT_PAYLOAD_CHARS_MIN = 8;
const NOT_BASE64URL = /[^A-Za-z0-9_-]/g;

/** Header and payload, with a signature or without (RFC 7519). */
function jwts(text: string): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  let partEnd = -1;
  for (let at = text.indexOf("eyJ"); at !== -1; at = text.indexOf("eyJ", Math.max(at + 1, found.at(-1)?.end ?? 0))) {
    // Runs are measured once, however many `eyJ` stand in them.
    if (at >= partEnd) partEnd = runEnd(text, at);
    if (text[partEnd] !== "." || partEnd - at > JWT_HEADER_CHARS_MAX || !isJoseHeader(text.slice(at, partEnd)))
      continue;
    const payloadEnd = runEnd(text, partEnd + 1);
    if (payloadEnd - partEnd - 1 < JWT_PAYLOAD_CHARS_MIN) continue;
    let end = payloadEnd;
    // A signature; five parts where the token is encrypted (RFC 7516).
    for (let part = 0; part < 3 && text[end] === "."; part += 1) end = runEnd(text, end + 1);
    found.push({ start: at, end, name: "JWT" });
    partEnd = end;
  }
  return found;
}

function runEnd(text: string, from: number): number {
  NOT_BASE64URL.lastIndex = from;
  return NOT_BASE64URL.exec(text)?.index ?? text.length;
}

/** Read as text: parsing each of 80,000 parts that only look like one would take a tenth of a second. */
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
/** The shortest key there is has more. */
const PEM_CHARS_MIN = 40;

/** RFC 7468. An answer may have been cut within a block: then it reaches to the end of the text. */
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

/** A block of lines of one length that decodes to DER of just that size, to OpenSSH's own format or to a PGP packet. */
function holdsKey(body: string, label: string, isClosed: boolean): boolean {
  // JSON that could not be parsed has its line ends written out.
  const lines = body.split(/\r?\n|(?:\\r)?\\n/).filter((line) => line.trim() !== "");
  const width = lines[0]?.length ?? 0;
  if (lines.some((line, at) => (at < lines.length - 1 && line.length !== width) || line.length > width)) return false;
  const base64 = lines.join("");
  if (base64.length < PEM_CHARS_MIN || /[\s\\]/.test(base64)) return false;
  const bytes = Buffer.from(base64, "base64");
  if (label.startsWith("PGP ")) return (bytes[0] ?? 0) >= 0x80;
  return bytes.toString("latin1", 0, 14) === "openssh-key-v1" || isDer(bytes, isClosed);
}

/** A sequence whose length is that of the rest (X.690, 8.1.3), as far as the rest is there. */
function isDer(bytes: Buffer, isWhole: boolean): boolean {
  const [tag, first = 0] = bytes;
  const lengthBytes = first & 0x80 ? first & 0x7f : 0;
  if (tag !== 0x30 || lengthBytes > 3 || bytes.length < 2 + lengthBytes) return false;
  const length = lengthBytes === 0 ? first : bytes.readUIntBE(2, lengthBytes);
  return isWhole ? bytes.length === 2 + lengthBytes + length : bytes.length <= 2 + lengthBytes + length;
}

const MAY_HOLD_SCHEME = /bearer|basic/i;
const SCHEME = /\b(?:bearer|basic)[ \t]{1,8}/gi;
const TOKEN = /[A-Za-z0-9._~+/-]{1,4096}={0,2}/y;
const BASIC_CHARS_MIN = 8;
/** Behind its scheme even hex is a token, of which 32 characters seldom have more. */
const BEARER_BITS_MIN = 3;

/** RFC 6750 and 7617. The scheme is shown, what follows is the secret. */
function credentials(text: string): readonly FoundSecret[] {
  const found: FoundSecret[] = [];
  SCHEME.lastIndex = 0;
  for (let scheme = SCHEME.exec(text); scheme !== null; scheme = SCHEME.exec(text)) {
    const start = scheme.index + scheme[0].length;
    TOKEN.lastIndex = start;
    const token = TOKEN.exec(text)?.[0] ?? "";
    // The rest of it was masked: what is left would be judged as another token than the whole was.
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
