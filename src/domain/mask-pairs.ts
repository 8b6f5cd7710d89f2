import { MASK, maskSecret } from "./mask-secret.ts";
import { isSensitiveName, isSensitiveParameter } from "./mask-words.ts";

/** Masks a text that stood encoded inside another one. */
export type MaskInner = (text: string) => string;

/** Which characters end a value, beside the signs between parameters. */
export interface PairsOptions {
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
export function maskPairs(text: string, options: PairsOptions, inner: MaskInner): string {
  const bare = text.includes("@") ? maskLogins(text, options) : text;
  const named = bare.includes("=") ? maskValues(bare, options) : bare;
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
function maskLogins(text: string, options: PairsOptions): string {
  const bare = maskBeforeAt(text, endsAuthority, startOfUserInfo);
  return maskBeforeAt(bare, (code) => endsLogin(code, options), startOfUser);
}

/** `startOf` says where the secret before an `@` begins, or null; `start` is as far back as it may. */
type StartOf = (text: string, start: number, at: number) => number | null;

function maskBeforeAt(text: string, ends: (code: number) => boolean, startOf: StartOf): string {
  let masked = "";
  let kept = 0;
  for (let at = text.indexOf("@"); at !== -1; at = text.indexOf("@", at + 1)) {
    let start = at;
    while (start > kept && !ends(text.charCodeAt(start - 1))) start -= 1;
    // A password may hold the sign itself: the last one before the end counts.
    for (let end = at; end < text.length && !ends(text.charCodeAt(end)); end += 1) {
      if (text.charCodeAt(end) === AT) at = end;
    }
    const secret = startOf(text, start, at);
    if (secret === null) continue;
    masked += text.slice(kept, secret) + maskUserInfo(text.slice(secret, at));
    kept = at;
  }
  return masked + text.slice(kept);
}

function endsAuthority(code: number): boolean {
  return code <= 0x20 || isSlash(code) || code === QUESTION || code === HASH || code === QUOTE;
}

/** Null too when it begins with what is masked already, so that masking twice is masking once. */
function startOfUserInfo(text: string, start: number, at: number): number | null {
  const isAuthority = start > 1 && isSlash(text.charCodeAt(start - 1)) && isSlash(text.charCodeAt(start - 2));
  return isAuthority && start < at && !isMasked(text.slice(start, at)) ? start : null;
}

/** A mask behind another `@` hides nothing of what stands before that: `:hunter2@host&••••`. */
function isMasked(userInfo: string): boolean {
  const mask = userInfo.indexOf(MASK);
  return mask !== -1 && !userInfo.slice(0, mask).includes("@");
}

function endsLogin(code: number, options: PairsOptions): boolean {
  return code <= 0x20 || isSlash(code) || code === AMPERSAND || endsRun(code, options);
}

/** Only the password counts for what may be seen of it: the end of `administrators:1234` is the whole secret. */
function maskUserInfo(userInfo: string): string {
  const colon = userInfo.indexOf(":");
  return userInfo.startsWith(MASK) ? maskSecret(userInfo) : maskSecret(userInfo.slice(colon + 1));
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
function maskValues(text: string, options: PairsOptions): string {
  let masked = "";
  let kept = 0;
  let name = 0;
  let isQuery = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === EQUALS && at > name && isSecret(text.slice(name, at), isQuery)) {
      const end = endOfValue(text, at + 1, options);
      masked += text.slice(kept, at + 1) + maskSecret(text.slice(at + 1, end));
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

function isSecret(name: string, isQuery: boolean): boolean {
  const meant = name.includes("%") ? plain(name) : name;
  return isQuery ? isSensitiveParameter(meant) : isSensitiveName(meant);
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

/** Parts of paths and values that are secrets, or hold some, once they are decoded: masked whole. */
function maskEncoded(text: string, options: PairsOptions, inner: MaskInner): string {
  let masked = "";
  let kept = 0;
  let start = 0;
  let isEncoded = false;
  for (let at = 0; at <= text.length; at += 1) {
    const code = at < text.length ? text.charCodeAt(at) : SLASH;
    if (code === PERCENT || code === PLUS) isEncoded = true;
    else if (isSign(code) || isSlash(code) || endsRun(code, options)) {
      if (isEncoded && at - start >= ENCODED_CHARS_MIN && holdsSecret(text.slice(start, at), inner)) {
        masked += text.slice(kept, start) + MASK;
        kept = at;
      }
      start = at + 1;
      isEncoded = false;
    }
  }
  return masked + text.slice(kept);
}

function holdsSecret(part: string, inner: MaskInner): boolean {
  const meant = plain(part);
  return meant !== part && inner(meant) !== meant;
}

/** Plus and percent signs resolved, byte for byte: all that tells a secret is ASCII. */
function plain(text: string): string {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  return spaced.replace(/%([0-9a-f]{2})/gi, (_found, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}
