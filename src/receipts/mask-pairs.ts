import { EditedText, MASK, MASK_PATTERN, type Masking } from "./mask-rules.ts";
import type { MaskInner } from "./mask-members.ts";
import { maskNamed, maskParameters } from "./mask-named.ts";
import { byteAt, decode } from "./percent.ts";

/** Which characters end a value, besides the separators of parameters. */
interface PairsOptions {
  /** The whole text is one URL or form, so spaces belong to it. */
  readonly isWhole: boolean;
  /** Quotes separate members and are not part of values. */
  readonly isQuoted: boolean;
}

/** Whether the text has a character or word without which `maskPairs` changes nothing. */
export function mayHoldPairs(text: string): boolean {
  return (
    text.includes(":") || text.includes("=") || text.includes("@") || text.includes("%") || text.includes("password")
  );
}

/**
 * Masks `user:pass@`, the user info of URLs, values with the name of a secret (of query parameters and form fields, in a text
 * of lines too), and secrets that are percent-encoded. A loop over characters: a regular expression with a callback took 200 ms for 200,000
 * tiny parameters.
 */
export function maskPairs(text: string, options: PairsOptions, masking: Masking, inner: MaskInner): string {
  const bare = text.includes("@") ? maskLogins(text, options, masking) : text;
  const named = options.isWhole ? maskParameters(bare, masking) : maskNamed(bare, options.isQuoted, masking);
  return named.includes("%") || named.includes("+") ? maskEncoded(named, options, inner) : named;
}

const [PERCENT, PLUS, SLASH, COLON, AT] = [0x25, 0x2b, 0x2f, 0x3a, 0x40];

/** What characters mean, as bits, by their code. */
const [BLANK, QUOTE, SLASHES, SIGN, QUERY, VALUE_END, AMPERSAND] = [1, 2, 4, 8, 16, 32, 64];

const MEANINGS = meanings();

function meanings(): Uint8Array {
  const table = new Uint8Array(128);
  table.fill(BLANK, 0, 0x21);
  const add = (chars: string, bit: number) => {
    for (const code of Buffer.from(chars)) table[code] = (table[code] ?? 0) | bit;
  };
  add('"', QUOTE);
  // Browsers read a backslash as a slash.
  add("/\\", SLASHES);
  add("&?#;=", SIGN);
  add("?#", QUERY);
  add("&#;", VALUE_END);
  add("&", AMPERSAND);
  return table;
}

/** Whether a character has one of the meanings. */
function means(code: number, meaning: number): boolean {
  return code < 128 && ((MEANINGS[code] ?? 0) & meaning) !== 0;
}

/** The meanings that end all names and values. */
function runEnds({ isWhole, isQuoted }: PairsOptions): number {
  return (isWhole ? 0 : BLANK) | (isQuoted ? QUOTE : 0);
}

/** Schemes of addresses, where the text before `@` is no password. */
const ADDRESS = /^(?:mailto|sips?|xmpp|acct|cid|mid)$/i;

/** The text between `//` and the last `@` before the path, then `user:pass@` anywhere else. */
function maskLogins(text: string, options: PairsOptions, masking: Masking): string {
  const bare = maskBeforeAt(text, BLANK | SLASHES | QUERY | QUOTE, startOfUserInfo, masking);
  const quote = options.isQuoted ? QUOTE : 0;
  return maskBeforeAt(bare, BLANK | SLASHES | AMPERSAND | quote, startOfUser, masking);
}

/** `startOf` says where the login before an `@` begins, or null; `start` is as far back as it may. */
type StartOf = (text: string, start: number, at: number) => number | null;

function maskBeforeAt(text: string, ends: number, startOf: StartOf, masking: Masking): string {
  const masked = new EditedText(text);
  let kept = 0;
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    let start = at;
    while (start > kept && !means(text.charCodeAt(start - 1), ends)) start -= 1;
    // A password may contain `@`, so the last one counts.
    for (let end = at; end < text.length; end += 1) {
      const code = text.charCodeAt(end);
      if (means(code, ends)) break;
      if (code === AT) at = end;
    }
    const login = startOf(text, start, at);
    if (login === null) continue;
    masked.replace(login, at, maskLogin(text.slice(login, at), masking));
    kept = at;
  }
  return masked.toString();
}

/** `user:password`, or a user alone, which may be a token. For the public the mask replaces the user too. */
function maskLogin(login: string, masking: Masking): string {
  const password = login.slice(login.indexOf(":") + 1);
  if (masking.viewer === "public") return masking.hide(password === "" ? login : password, "password");
  return masking.hidesNamed(password)
    ? login.slice(0, login.length - password.length) + masking.hide(password, "password")
    : login;
}

function startOfUserInfo(text: string, start: number, at: number): number | null {
  const isAuthority =
    start > 1 && means(text.charCodeAt(start - 1), SLASHES) && means(text.charCodeAt(start - 2), SLASHES);
  return isAuthority && start < at ? start : null;
}

/** Where `user:` begins; null: no login before the `@`. */
function startOfUser(text: string, start: number, at: number): number | null {
  let colon = start;
  while (colon < at && text.charCodeAt(colon) !== COLON) colon += 1;
  if (colon + 1 >= at) return null;
  let user = colon;
  while (user > start && !means(text.charCodeAt(user - 1), SIGN)) user -= 1;
  return user === colon || ADDRESS.test(text.slice(user, colon)) ? null : user;
}

/** `pin%3D1`; nothing shorter holds a secret. */
const ENCODED_CHARS_MIN = 7;

/** Masks secrets in percent-encoded parts of paths and values; the rest of each part stays encoded. */
function maskEncoded(text: string, options: PairsOptions, inner: MaskInner): string {
  const masked = new EditedText(text);
  let start = 0;
  let isEncoded = false;
  const ends = SIGN | SLASHES | runEnds(options);
  for (let at = 0; at <= text.length; at += 1) {
    const code = at < text.length ? text.charCodeAt(at) : SLASH;
    if (code === PERCENT || code === PLUS) isEncoded = true;
    if (!means(code, ends)) continue;
    if (isEncoded && at - start >= ENCODED_CHARS_MIN) {
      const shown = maskDecoded(text.slice(start, at), inner);
      if (shown !== null) masked.replace(start, at, shown);
    }
    start = at + 1;
    isEncoded = false;
  }
  return masked.toString();
}

/** Null: nothing to hide. */
function maskDecoded(part: string, inner: MaskInner): string | null {
  // A mask is not decoded again: its words would be read as part of a value. The text around it is.
  const masks = part.includes(MASK) ? part.match(MASK_PATTERN) : null;
  if (masks !== null) {
    const pieces = part.split(MASK_PATTERN);
    const shown = pieces.map((piece) => maskDecoded(piece, inner) ?? piece);
    if (shown.every((piece, at) => piece === pieces[at])) return null;
    return shown.map((piece, at) => piece + (masks[at] ?? "")).join("");
  }
  const decoded = decode(part);
  const shown = decoded === part ? decoded : inner(decoded);
  if (shown === decoded) return null;
  const most = Math.min(decoded.length, shown.length);
  let same = 0;
  while (same < most && decoded.charCodeAt(same) === shown.charCodeAt(same)) same += 1;
  let [end, shownEnd] = [decoded.length, shown.length];
  while (Math.min(end, shownEnd) > same && decoded.charCodeAt(end - 1) === shown.charCodeAt(shownEnd - 1)) {
    end -= 1;
    shownEnd -= 1;
  }
  // Keep the spelling of unchanged text: encoding it again could form a new secret with its surroundings.
  const kept = writtenLength(part, same);
  return part.slice(0, kept) + encoded(shown.slice(same, shownEnd)) + part.slice(writtenLength(part, end));
}

/** The length in the encoded text of the first `count` decoded characters. */
function writtenLength(part: string, count: number): number {
  let length = 0;
  for (let decoded = 0; decoded < count; decoded += 1) length += byteAt(part, length) === null ? 1 : 3;
  return length;
}

/** Encodes a text again, except for masks, which appear in a URL as they are. */
function encoded(text: string): string {
  let all = "";
  let kept = 0;
  for (const { 0: mask, index } of text.matchAll(MASK_PATTERN)) {
    all += percent(text.slice(kept, index)) + mask;
    kept = index + mask.length;
  }
  return all + percent(text.slice(kept));
}

/** The characters that `decode` may have produced from bytes. */
const TO_ENCODE = /[^A-Za-z0-9._~\u0100-\uffff-]/g;

function percent(text: string): string {
  return text.replace(TO_ENCODE, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
}
