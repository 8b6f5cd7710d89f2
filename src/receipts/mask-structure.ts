import { endOfString, endOfValue, skipSpace } from "../json/json.ts";
import { MASK_PATTERN, type Masking, parameterKind, secretKind } from "./mask-rules.ts";

/** Masks a text that was nested or encoded inside another one. */
type MaskInner = (text: string) => string;

/** Whether the text may be JSON: without a quoted name and a colon `maskMembers` only applies `inner` to strings. */
export function hasMembers(text: string): boolean {
  return MEMBER.test(text);
}

const MEMBER = /"\s*:/;

/**
 * Masks the values of members with the name of a secret, and applies `inner` to every other string and name. In an object or
 * list with such a name each value is checked and the structure stays. Works on the text, so that numbers, escapes and white
 * space keep their spelling. Invalid or cut JSON is read as far as possible. One pass, without recursion.
 */
export function maskMembers(text: string, masking: Masking, inner: MaskInner): string {
  return new Members(text, masking, inner).masked();
}

class Members {
  readonly #text: string;
  readonly #masking: Masking;
  readonly #inner: MaskInner;
  #masked = "";
  #kept = 0;

  constructor(text: string, masking: Masking, inner: MaskInner) {
    this.#text = text;
    this.#masking = masking;
    this.#inner = inner;
  }

  masked(): string {
    const text = this.#text;
    for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at)) {
      const end = endOfString(text, at);
      const kind = this.#string(at, end);
      const colon = skipSpace(text, end);
      at = kind !== null && text[colon] === ":" ? this.#secretValue(skipSpace(text, colon + 1), kind) : end;
    }
    return this.#masked + text.slice(this.#kept);
  }

  /** Masks a name, or a value without a secret's name. Returns what kind of secret its value is if it is a name; else null. */
  #string(start: number, end: number): string | null {
    const name = stringOf(this.#text, start, end);
    const masked = this.#inner(name);
    if (masked === name) return secretKind(name);
    this.#put(start, end, masked);
    // Check the masked name too, so that masking a second time changes nothing.
    return secretKind(name) ?? secretKind(masked);
  }

  /** Masks a value, or everything in an object or list; returns where to read on. */
  #secretValue(start: number, outer: string): number {
    const text = this.#text;
    if (text[start] !== "{" && text[start] !== "[") return this.#secretScalar(start, outer);
    const end = endOfValue(text, start);
    let kind = outer;
    let at = start + 1;
    while (at < end) {
      if (text.charCodeAt(at) === QUOTE) {
        const stringEnd = endOfString(text, at);
        const isName = text[skipSpace(text, stringEnd)] === ":";
        if (isName) kind = this.#string(at, stringEnd) ?? outer;
        at = isName ? stringEnd : this.#secretScalar(at, kind);
      } else at = isBetweenValues(text.charCodeAt(at)) ? at + 1 : this.#secretScalar(at, kind);
    }
    return at;
  }

  #secretScalar(start: number, kind: string): number {
    if (this.#text[start] === '"') return this.#secretString(start, kind);
    const end = endOfScalar(this.#text, start);
    const value = this.#text.slice(start, end);
    // A number, or any word in invalid JSON. Shown to deciders, since generated secrets are strings.
    if (this.#masking.viewer === "public" && this.#masking.hidesNamed(value)) {
      this.#put(start, end, this.#masking.hide(value, kind));
    }
    return Math.max(end, start + 1);
  }

  #secretString(start: number, kind: string): number {
    const end = endOfString(this.#text, start);
    const value = stringOf(this.#text, start, end);
    const masked = this.#masking.hidesNamed(value) ? this.#masking.hide(value, kind) : this.#inner(value);
    if (masked !== value) this.#put(start, end, masked);
    return end;
  }

  #put(start: number, end: number, masked: string): void {
    this.#masked += this.#text.slice(this.#kept, start) + JSON.stringify(masked);
    this.#kept = end;
  }
}

/** The value of a quoted string. A cut or badly escaped one is taken as written. */
function stringOf(text: string, start: number, end: number): string {
  const isClosed = end - start > 1 && text[end - 1] === '"';
  const written = text.slice(start + 1, isClosed ? end - 1 : end);
  if (!written.includes("\\")) return written;
  try {
    return String(JSON.parse(`"${written}"`));
  } catch {
    return written;
  }
}

/** A space does not end it: in invalid JSON a secret may contain one. */
function endOfScalar(text: string, start: number): number {
  SCALAR_END.lastIndex = start;
  let end = SCALAR_END.exec(text)?.index ?? text.length;
  while (end > start && text.charCodeAt(end - 1) <= SPACE) end -= 1;
  return end;
}

const SCALAR_END = /[,}\]\n\r]/g;

const PUNCTUATION = new Set(Buffer.from(":,{}[]"));

function isBetweenValues(code: number): boolean {
  return code <= SPACE || PUNCTUATION.has(code);
}

/** Which characters end a value, besides the separators of parameters. */
interface PairsOptions {
  /** The whole text is one URL or form, so spaces belong to it. */
  readonly isWhole: boolean;
  /** Quotes separate members and are not part of values. */
  readonly isQuoted: boolean;
}

/** Whether the text has a character without which `maskPairs` changes nothing. */
export function mayHoldPairs(text: string): boolean {
  return text.includes("=") || text.includes("@") || text.includes("%");
}

/**
 * Masks `user:pass@`, the user info of URLs, the values of query parameters and form fields with the name of a secret, and
 * secrets that are percent-encoded. A loop over characters: a regular expression with a callback took 200 ms for 200,000
 * tiny parameters.
 */
export function maskPairs(text: string, options: PairsOptions, masking: Masking, inner: MaskInner): string {
  const bare = text.includes("@") ? maskLogins(text, options, masking) : text;
  const named = bare.includes("=") ? maskValues(bare, options, masking) : bare;
  return named.includes("%") || named.includes("+") ? maskEncoded(named, options, inner) : named;
}

const [SPACE, QUOTE, HASH, PERCENT, AMPERSAND, PLUS] = [0x20, 0x22, 0x23, 0x25, 0x26, 0x2b];

const [SLASH, COLON, SEMICOLON, EQUALS, QUESTION, AT, BACKSLASH] = [0x2f, 0x3a, 0x3b, 0x3d, 0x3f, 0x40, 0x5c];

function endsRun(code: number, { isWhole, isQuoted }: PairsOptions): boolean {
  return (code <= SPACE && !isWhole) || (code === QUOTE && isQuoted);
}

/** Browsers read a backslash as a slash. */
function isSlash(code: number): boolean {
  return code === SLASH || code === BACKSLASH;
}

function isSign(code: number): boolean {
  return code === AMPERSAND || code === QUESTION || code === HASH || code === SEMICOLON || code === EQUALS;
}

/** Schemes of addresses, where the text before `@` is no password. */
const ADDRESS = /^(?:mailto|sips?|xmpp|acct|cid|mid)$/i;

/** The text between `//` and the last `@` before the path, then `user:pass@` anywhere else. */
function maskLogins(text: string, options: PairsOptions, masking: Masking): string {
  const bare = maskBeforeAt(text, endsAuthority, startOfUserInfo, masking);
  return maskBeforeAt(bare, (code) => endsLogin(code, options), startOfUser, masking);
}

/** `startOf` says where the login before an `@` begins, or null; `start` is as far back as it may. */
type StartOf = (text: string, start: number, at: number) => number | null;

function maskBeforeAt(text: string, ends: (code: number) => boolean, startOf: StartOf, masking: Masking): string {
  let masked = "";
  let kept = 0;
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    let start = at;
    while (start > kept && !ends(text.charCodeAt(start - 1))) start -= 1;
    // A password may contain `@`, so the last one counts.
    for (let end = at; end < text.length && !ends(text.charCodeAt(end)); end += 1) {
      if (text.charCodeAt(end) === AT) at = end;
    }
    const login = startOf(text, start, at);
    if (login === null) continue;
    masked += text.slice(kept, login) + maskLogin(text.slice(login, at), masking);
    kept = at;
  }
  return masked + text.slice(kept);
}

/** `user:password`, or a user alone, which may be a token. For the public the mask replaces the user too. */
function maskLogin(login: string, masking: Masking): string {
  const password = login.slice(login.indexOf(":") + 1);
  if (masking.viewer === "public") return masking.hide(password === "" ? login : password, "password");
  return masking.hidesNamed(password)
    ? login.slice(0, login.length - password.length) + masking.hide(password, "password")
    : login;
}

function endsAuthority(code: number): boolean {
  return code <= SPACE || isSlash(code) || code === QUESTION || code === HASH || code === QUOTE;
}

function startOfUserInfo(text: string, start: number, at: number): number | null {
  const isAuthority = start > 1 && isSlash(text.charCodeAt(start - 1)) && isSlash(text.charCodeAt(start - 2));
  return isAuthority && start < at ? start : null;
}

function endsLogin(code: number, options: PairsOptions): boolean {
  return code <= SPACE || isSlash(code) || code === AMPERSAND || endsRun(code, options);
}

/** Where `user:` begins; null: no login before the `@`. */
function startOfUser(text: string, start: number, at: number): number | null {
  let colon = start;
  while (colon < at && text.charCodeAt(colon) !== COLON) colon += 1;
  if (colon + 1 >= at) return null;
  let user = colon;
  while (user > start && !isSign(text.charCodeAt(user - 1))) user -= 1;
  return user === colon || ADDRESS.test(text.slice(user, colon)) ? null : user;
}

/** Parameters after the first `?` or `#` count as a query, those before as a form. */
function maskValues(text: string, options: PairsOptions, masking: Masking): string {
  let masked = "";
  let kept = 0;
  let name = 0;
  let checked = 0;
  let isQuery = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    // Skip names inside a checked value: `token=token=token=…` would take quadratic time.
    const isName = code === EQUALS && at > name && at >= checked;
    const kind = isName ? kindOfParameter(text.slice(name, at), isQuery) : null;
    const end = kind === null ? at : endOfParameter(text, at + 1, options);
    checked = Math.max(checked, end);
    if (kind !== null && masking.hidesNamed(decode(text.slice(at + 1, end)))) {
      masked += text.slice(kept, at + 1) + masking.hide(text.slice(at + 1, end), kind);
      kept = end;
      at = end - 1;
    } else if (isSign(code) || isSlash(code) || code === QUOTE) {
      isQuery ||= code === QUESTION || code === HASH;
      name = at + 1;
    }
    if (endsRun(code, options)) {
      isQuery = false;
      name = at + 1;
    }
  }
  return masked + text.slice(kept);
}

function kindOfParameter(name: string, isQuery: boolean): string | null {
  const decoded = name.includes("%") ? decode(name) : name;
  return isQuery ? parameterKind(decoded) : secretKind(decoded);
}

function endOfParameter(text: string, start: number, options: PairsOptions): number {
  let at = start;
  while (at < text.length && !endsValue(text.charCodeAt(at)) && !endsRun(text.charCodeAt(at), options)) at += 1;
  return at;
}

function endsValue(code: number): boolean {
  return code === AMPERSAND || code === HASH || code === SEMICOLON;
}

/** `pin%3D1`; nothing shorter holds a secret. */
const ENCODED_CHARS_MIN = 7;

/** Masks secrets in percent-encoded parts of paths and values; the rest of each part stays encoded. */
function maskEncoded(text: string, options: PairsOptions, inner: MaskInner): string {
  let masked = "";
  let kept = 0;
  let start = 0;
  let isEncoded = false;
  for (let at = 0; at <= text.length; at += 1) {
    const code = at < text.length ? text.charCodeAt(at) : SLASH;
    if (code === PERCENT || code === PLUS) isEncoded = true;
    else if (isSign(code) || isSlash(code) || endsRun(code, options)) {
      if (isEncoded && at - start >= ENCODED_CHARS_MIN) {
        const shown = maskDecoded(text.slice(start, at), inner);
        masked += shown === null ? "" : text.slice(kept, start) + shown;
        kept = shown === null ? kept : at;
      }
      start = at + 1;
      isEncoded = false;
    }
  }
  return masked + text.slice(kept);
}

/** Null: nothing to hide. */
function maskDecoded(part: string, inner: MaskInner): string | null {
  // A mask is not decoded again: its words would be read as part of a value. What stands beside it is.
  const masks = part.match(MASK_PATTERN);
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
  while (same < most && decoded[same] === shown[same]) same += 1;
  let sameEnd = 0;
  while (sameEnd < most - same && decoded.at(-1 - sameEnd) === shown.at(-1 - sameEnd)) sameEnd += 1;
  // Keep the spelling of unchanged text: encoding it again could form a new secret with its surroundings.
  const [start, end] = [writtenLength(part, same), writtenLength(part, decoded.length - sameEnd)];
  return part.slice(0, start) + encoded(shown.slice(same, shown.length - sameEnd)) + part.slice(end);
}

/** The length in the encoded text of the first `count` decoded characters. */
function writtenLength(part: string, decoded: number): number {
  let length = 0;
  for (let count = 0; count < decoded; count += 1) {
    ENCODED_SIGN.lastIndex = length;
    length += ENCODED_SIGN.test(part) ? 3 : 1;
  }
  return length;
}

const ENCODED_SIGN = /%[0-9a-f]{2}/iy;

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

/** Decodes plus and percent signs byte by byte; the names and formats of secrets are ASCII. */
function decode(text: string): string {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  return spaced.replace(/%([0-9a-f]{2})/gi, (_found, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
