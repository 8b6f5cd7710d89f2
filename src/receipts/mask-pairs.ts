import { MASK_PATTERN, type Masking } from "./mask-value.ts";
import { parameterKind, secretKind } from "./mask-words.ts";

/** Masks a text that stood encoded inside another one. */
export type MaskInner = (text: string) => string;

/** Which characters end a value, beside the signs between parameters. */
interface PairsOptions {
  /** The text is one URL or form from end to end: a space belongs to it. */
  readonly isWhole: boolean;
  /** Quotes stand between members, not within a value. */
  readonly isQuoted: boolean;
}

/** Without one of these signs there is nothing here to mask. */
export function mayHoldPairs(text: string): boolean {
  return text.includes("=") || text.includes("@") || text.includes("%");
}

/**
 * Masks what a text says by its parts: `user:pass@`, the user info of a URL, the values of query parameters and form
 * fields with a secret's name, and whatever becomes a secret when its percent signs are resolved. One step forward per
 * character: of 200,000 tiny parameters a pattern with a callback took 200 ms.
 */
export function maskPairs(text: string, options: PairsOptions, masking: Masking, inner: MaskInner): string {
  const bare = text.includes("@") ? maskLogins(text, options, masking) : text;
  const named = bare.includes("=") ? maskValues(bare, options, masking) : bare;
  return named.includes("%") || named.includes("+") ? maskEncoded(named, options, inner) : named;
}

const [QUOTE, HASH, PERCENT, AMPERSAND, PLUS, SLASH, COLON] = [0x22, 0x23, 0x25, 0x26, 0x2b, 0x2f, 0x3a];

const [SEMICOLON, EQUALS, QUESTION, AT, BACKSLASH] = [0x3b, 0x3d, 0x3f, 0x40, 0x5c];

function endsRun(code: number, { isWhole, isQuoted }: PairsOptions): boolean {
  return (code <= 0x20 && !isWhole) || (code === QUOTE && isQuoted);
}

/** A browser takes a backslash for a slash. */
function isSlash(code: number): boolean {
  return code === SLASH || code === BACKSLASH;
}

function isSign(code: number): boolean {
  return code === AMPERSAND || code === QUESTION || code === HASH || code === SEMICOLON || code === EQUALS;
}

/** Schemes of addresses: what stands before their `@` is no password. */
const ADDRESS = /^(?:mailto|sips?|xmpp|acct|cid|mid)$/i;

/** All that stands between `//` and the last `@` before the path; then `user:pass@` anywhere else. */
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
    // A password may hold the sign itself: the last one before the end counts.
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

/** `user:password`, or a user alone, who may be a token. The mask tells of the password; of `ann:pw` the user goes too. */
function maskLogin(login: string, masking: Masking): string {
  const password = login.slice(login.indexOf(":") + 1);
  if (masking.viewer === "public") return masking.hide(password === "" ? login : password, "password");
  return masking.hidesNamed(password)
    ? login.slice(0, login.length - password.length) + masking.hide(password, "password")
    : login;
}

function endsAuthority(code: number): boolean {
  return code <= 0x20 || isSlash(code) || code === QUESTION || code === HASH || code === QUOTE;
}

function startOfUserInfo(text: string, start: number, at: number): number | null {
  const isAuthority = start > 1 && isSlash(text.charCodeAt(start - 1)) && isSlash(text.charCodeAt(start - 2));
  return isAuthority && start < at ? start : null;
}

function endsLogin(code: number, options: PairsOptions): boolean {
  return code <= 0x20 || isSlash(code) || code === AMPERSAND || endsRun(code, options);
}

/** Where `user:` begins, or null when what stands before the `@` is no login. */
function startOfUser(text: string, start: number, at: number): number | null {
  let colon = start;
  while (colon < at && text.charCodeAt(colon) !== COLON) colon += 1;
  if (colon + 1 >= at) return null;
  let user = colon;
  while (user > start && !isSign(text.charCodeAt(user - 1))) user -= 1;
  return user === colon || ADDRESS.test(text.slice(user, colon)) ? null : user;
}

/** Behind the first `?` or `#` of a run its parameters are a query's; before, a form's. */
function maskValues(text: string, options: PairsOptions, masking: Masking): string {
  let masked = "";
  let kept = 0;
  let name = 0;
  let checked = 0;
  let isQuery = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    // Within a value that was judged nothing is judged again: `token=token=token=` would be read from each to its end.
    const isName = code === EQUALS && at > name && at >= checked;
    const kind = isName ? kindOf(text.slice(name, at), isQuery) : null;
    const end = kind === null ? at : endOfValue(text, at + 1, options);
    checked = Math.max(checked, end);
    if (kind !== null && masking.hidesNamed(plain(text.slice(at + 1, end)))) {
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

function kindOf(name: string, isQuery: boolean): string | null {
  const meant = name.includes("%") ? plain(name) : name;
  return isQuery ? parameterKind(meant) : secretKind(meant);
}

function endOfValue(text: string, start: number, options: PairsOptions): number {
  let at = start;
  while (at < text.length && !endsValue(text.charCodeAt(at)) && !endsRun(text.charCodeAt(at), options)) at += 1;
  return at;
}

function endsValue(code: number): boolean {
  return code === AMPERSAND || code === HASH || code === SEMICOLON;
}

/** `pin%3D1`; nothing shorter holds a secret. */
const ENCODED_CHARS_MIN = 7;

/** Parts of paths and values that are secrets, or hold some, once they are decoded; the rest of each stays encoded. */
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

/** Null: there is nothing to hide in it. */
function maskDecoded(part: string, inner: MaskInner): string | null {
  const meant = plain(part);
  const shown = meant === part ? meant : inner(meant);
  if (shown === meant) return null;
  const most = Math.min(meant.length, shown.length);
  let same = 0;
  while (same < most && meant[same] === shown[same]) same += 1;
  let sameEnd = 0;
  while (sameEnd < most - same && meant.at(-1 - sameEnd) === shown.at(-1 - sameEnd)) sameEnd += 1;
  // What did not change keeps its spelling: signs that are encoded anew could make another secret of what is around them.
  const [start, end] = [writtenLength(part, same), writtenLength(part, meant.length - sameEnd)];
  return part.slice(0, start) + encoded(shown.slice(same, shown.length - sameEnd)) + part.slice(end);
}

/** How much of an encoded text so many of its meant characters take. */
function writtenLength(part: string, meant: number): number {
  let length = 0;
  for (let count = 0; count < meant; count += 1) {
    ENCODED_SIGN.lastIndex = length;
    length += ENCODED_SIGN.test(part) ? 3 : 1;
  }
  return length;
}

const ENCODED_SIGN = /%[0-9a-f]{2}/iy;

/** Encoded again, but for the masks, which stand in a URL as they are. */
function encoded(text: string): string {
  let all = "";
  let kept = 0;
  for (const { 0: mask, index } of text.matchAll(MASK_PATTERN)) {
    all += percent(text.slice(kept, index)) + mask;
    kept = index + mask.length;
  }
  return all + percent(text.slice(kept));
}

/** What `plain` has read as bytes. */
const TO_ENCODE = /[^A-Za-z0-9._~\u0100-\uffff-]/g;

function percent(text: string): string {
  return text.replace(TO_ENCODE, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
}

/** Plus and percent signs resolved, byte for byte: all that tells a secret is ASCII. */
function plain(text: string): string {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  return spaced.replace(/%([0-9a-f]{2})/gi, (_found, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
