import {
  AMPERSAND,
  AT,
  BLANK,
  COLON,
  DOUBLE,
  DOUBLE_QUOTE,
  characterEnd,
  EQUALS,
  means,
  PARAMETER_END,
  QUERY,
  SIGN,
  SLASHES,
} from "./characters.ts";
import { maskPasswords } from "./mask-commands.ts";
import { decode, nameKind, maskEncoded } from "./mask-encoded.ts";
import type { MaskInner } from "./mask-members.ts";
import { maskNamed } from "./mask-named.ts";
import { EditedText, type Masking } from "./mask-rules.ts";

/** Whether the text has a character or word without which it holds no pairs. */
export function mayHoldPairs(text: string): boolean {
  return (
    text.includes(":") || text.includes("=") || text.includes("@") || text.includes("%") || text.includes("password")
  );
}

/** What ends a percent-encoded part of a URL. */
const PART_END = SIGN | SLASHES;

/**
 * Masks `user:pass@`, and parameters with the name of a secret, in a text that is one URL or form, so that spaces are part of it.
 * Loops over characters, since a regular expression with a callback took 200 ms for 200,000 tiny parameters.
 */
export function maskUrlPairs(url: string, masking: Masking, inner: MaskInner): string {
  if (!mayHoldPairs(url)) return url;
  const bare = url.includes("@") ? maskLogins(url, false, masking) : url;
  return maskEncoded(maskParameters(bare, masking), PART_END, inner);
}

/**
 * Masks `user:pass@`, the user info of URLs, values with the name of a secret (in query parameters, form fields and lines of text),
 * and percent-encoded secrets, in any text. `isQuoted`: quotes separate members and are not part of values.
 */
export function maskTextPairs(text: string, isQuoted: boolean, masking: Masking, inner: MaskInner): string {
  if (!mayHoldPairs(text)) return text;
  // First, since to the next step an `@` in a quoted password would end it.
  const tools = maskPasswords(text, masking);
  const bare = tools.includes("@") ? maskLogins(tools, isQuoted, masking) : tools;
  return maskEncoded(maskNamed(bare, isQuoted, masking), PART_END | BLANK | (isQuoted ? DOUBLE : 0), inner);
}

/** Schemes of addresses, in which the text before `@` is no password. */
const ADDRESS = /^(?:mailto|sips?|xmpp|acct|cid|mid)$/i;

/** Masks the text between `//` and the last `@` before the path, then `user:pass@` anywhere else. */
function maskLogins(text: string, isQuoted: boolean, masking: Masking): string {
  const bare = maskBeforeAt(text, BLANK | SLASHES | QUERY | DOUBLE, startOfUserInfo, masking);
  const ends = BLANK | SLASHES | AMPERSAND | (isQuoted ? DOUBLE : 0);
  return maskBeforeAt(bare, ends, startOfUser, masking);
}

/** Returns where the login before the `@` at `at` begins, not before `start`; null: there is no login. */
type StartOf = (text: string, start: number, at: number) => number | null;

function maskBeforeAt(text: string, ends: number, findStart: StartOf, masking: Masking): string {
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
    const login = findStart(text, start, at);
    if (login === null) continue;
    masked.replace(login, at, maskLogin(text.slice(login, at), masking));
    kept = at;
  }
  return masked.toString();
}

/** Masks `user:password`, or a user alone, which may be a token. For the public, the mask replaces the user, too. */
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

/** Masks the parameters of a URL or form that have the name of a secret. Spaces belong to them. */
function maskParameters(text: string, masking: Masking): string {
  if (!text.includes("=")) return text;
  const masked = new EditedText(text);
  let name = 0;
  let checked = 0;
  let isQuery = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    // Skip names inside a checked value: `token=token=token=…` would take quadratic time.
    const kind = code === EQUALS && at > name && at >= checked ? nameKind(text.slice(name, at), isQuery) : null;
    const end = kind === null ? at : characterEnd(text, at + 1, PARAMETER_END);
    checked = Math.max(checked, end);
    if (kind !== null && masking.hidesNamed(decode(text.slice(at + 1, end)))) {
      masked.replace(at + 1, end, masking.hide(text.slice(at + 1, end), kind));
      at = end - 1;
    } else if (means(code, SIGN | SLASHES)) {
      isQuery ||= means(code, QUERY);
      name = at + 1;
    } else if (code === DOUBLE_QUOTE) name = at + 1;
  }
  return masked.toString();
}
