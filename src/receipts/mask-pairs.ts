import type { MaskInner } from "./mask-members.ts";
import {
  changedBetweenMasks,
  EditedText,
  endOfMask,
  isNamedMember,
  isNamingMember,
  type Masking,
  maybeSensitive,
  pairKind,
  parameterKind,
  secretKind,
} from "./mask-rules.ts";

/** What each character can mean around names and values: bits, by its code. */
const [BLANK, LINE_END, QUOTE, DOUBLE, SEPARATOR, QUERY, AMPERSAND, PARAMETER_END, SIGN, SLASHES, LIST_SIGN] = [
  1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024,
];

const [OPENS, CLOSES, NO_NAME, MARKUP] = [2_048, 4_096, 8_192, 16_384];

const MEANINGS = meanings();

function meanings(): Uint16Array {
  const table = new Uint16Array(128);
  table.fill(BLANK, 0, 0x21);
  const add = (chars: string, bits: number) => {
    for (const code of Buffer.from(chars)) table[code] = (table[code] ?? 0) | bits;
  };
  add("\n\r", LINE_END);
  add("\"'`", QUOTE);
  add('"', DOUBLE);
  add("=:", SEPARATOR);
  add("?#", QUERY);
  add("&", AMPERSAND);
  add("&#;", PARAMETER_END);
  add("&?#;=", SIGN);
  // Browsers read a backslash as a slash.
  add("/\\", SLASHES);
  add(",", LIST_SIGN);
  add("({[", OPENS);
  add(")}]", CLOSES);
  add("({", NO_NAME);
  add("<>\"'", MARKUP);
  return table;
}

/** Whether a character has one of these meanings. */
function means(code: number, bits: number): boolean {
  return code < 128 && ((MEANINGS[code] ?? 0) & bits) !== 0;
}

const WORD_END = SIGN | SLASHES | LIST_SIGN;

/** What ends a name when it is read backwards, except `[`, as in `user[password]`. */
const NAME_END = BLANK | QUOTE | SEPARATOR | WORD_END | NO_NAME;

/** What ends the query of a URL in a text. */
const QUERY_END = BLANK | DOUBLE;

const [TAB, SPACE, DOUBLE_QUOTE, PERCENT, PLUS, COMMA, SLASH] = [0x09, 0x20, 0x22, 0x25, 0x2b, 0x2c, 0x2f];

const [COLON, SEMICOLON, EQUALS, GREATER, AT, BACKSLASH, BULLET] = [0x3a, 0x3b, 0x3d, 0x3e, 0x40, 0x5c, 0x2022];

/** Which characters end a value besides the separators of parameters. */
interface PairsOptions {
  /** The whole text is one URL or form, so spaces are part of it. */
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
 * Masks `user:pass@`, the user info of URLs, values with the name of a secret (in query parameters, form fields and lines of
 * text), and percent-encoded secrets. Loops over characters, since a regular expression with a callback took 200 ms for 200,000
 * tiny parameters.
 */
export function maskPairs(text: string, options: PairsOptions, masking: Masking, inner: MaskInner): string {
  // First, since to the next step an `@` in a quoted password would end it.
  const isText = !options.isWhole;
  const netrc = isText && text.includes("password") ? maskPasswords(text, NETRC, masking) : text;
  const tools = isText && netrc.includes("curl") ? maskPasswords(netrc, CURL, masking, CURL_QUOTES) : netrc;
  const bare = tools.includes("@") ? maskLogins(tools, options.isQuoted, masking) : tools;
  const named = options.isWhole ? maskParameters(bare, masking) : maskNamed(bare, options.isQuoted, masking);
  return named.includes("%") || named.includes("+") ? maskEncoded(named, options, inner) : named;
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
    const kind = code === EQUALS && at > name && at >= checked ? kindOf(text.slice(name, at), isQuery) : null;
    const end = kind === null ? at : endOf(text, at + 1, PARAMETER_END);
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

function kindOf(name: string, isQuery: boolean): string | null {
  const decoded = name.includes("%") ? decode(name) : name;
  return isQuery ? parameterKind(decoded) : secretKind(decoded);
}

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

/** Like `indexOf` of a string, but returns the end of the text if there is none. */
function indexOf(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at === -1 ? text.length : at;
}

function endOf(text: string, start: number, ends: number): number {
  let at = start;
  while (at < text.length && !means(text.charCodeAt(at), ends)) at += 1;
  return at;
}

/**
 * Masks values with the name of a secret in any text: YAML, INI, TOML, `.env`, HTTP headers, GraphQL arguments, JavaScript and
 * Python objects, multipart bodies. In a text with JSON members (`isQuoted`), double quotes end names and values.
 */
function maskNamed(text: string, isQuoted: boolean, masking: Masking): string {
  // Most texts contain no part of such a name. Letters may be encoded, and in a query more names mean a secret.
  const mayBeNamed = maybeSensitive(text) || text.includes("%") || text.includes("&#");
  const hasSigns = mayBeNamed && (text.includes(":") || text.includes("="));
  const named = hasSigns ? new NamedValues(text, isQuoted, masking).masked() : text;
  return mayBeNamed ? maskParts(named, masking) : named;
}

/** `isNamedMember` and `isNamingMember` know no longer names. */
const PAIR_CHARS_MAX = 7;

/** How far back to look for a bracket around a name. */
const FLOW_CHARS_MAX = 256;

/** Goes through a text from separator to separator, skipping names inside a value that was checked already. */
class NamedValues {
  readonly #text: string;
  readonly #isQuoted: boolean;
  readonly #masking: Masking;
  readonly #masked: EditedText;
  /** Values up to here were checked. */
  #checked = 0;
  /** Whether there is a `?` or `#` before this position, with no blank in between. */
  #isInQuery = false;
  #queryRead = 0;
  /** The kind of secret that the next `value` holds, or null. */
  #pending: string | null = null;

  constructor(text: string, isQuoted: boolean, masking: Masking) {
    this.#text = text;
    this.#isQuoted = isQuoted;
    this.#masking = masking;
    this.#masked = new EditedText(text);
  }

  masked(): string {
    const text = this.#text;
    let [colon, equals] = [indexOf(text, ":", 0), indexOf(text, "=", 0)];
    while (colon < text.length || equals < text.length) {
      const at = Math.min(colon, equals);
      if (at >= this.#checked) this.#checked = Math.max(at + 1, this.#separator(at, at === colon));
      if (at === colon) colon = indexOf(text, ":", Math.max(at + 1, this.#checked));
      else equals = indexOf(text, "=", Math.max(at + 1, this.#checked));
    }
    return this.#masked.toString();
  }

  /** Masks the value after a separator. Returns where to read on. */
  #separator(at: number, isColon: boolean): number {
    const text = this.#text;
    if (isColon && !this.#separates(at)) return at;
    let end = at;
    while (end > this.#checked && isBlank(text.charCodeAt(end - 1))) end -= 1;
    const closing = end > this.#checked && means(text.charCodeAt(end - 1), QUOTE);
    // JSON members are masked by `maskMembers`.
    if (closing && this.#isQuoted && text.charCodeAt(end - 1) === DOUBLE_QUOTE) return at;
    if (closing) end -= 1;
    let start = end;
    while (start > this.#checked && !means(text.charCodeAt(start - 1), NAME_END)) start -= 1;
    // A GraphQL variable, which is followed by its type.
    if (isColon && text[start] === "$") return at;
    const kind = start < end ? this.#kindOf(start, end, at, isColon) : this.#kindOfLineAbove(end, isColon);
    if (kind === null) return at;
    const before = text.charCodeAt(start - 1);
    const quote = !closing && means(before, QUOTE) ? before : 0;
    return this.#value({ start, at, isColon, isLineStart: this.#isLineStart(start), quote }, kind);
  }

  /** Whether the character separates a name from a value, unlike in `https://` and `Auth::Token`. */
  #separates(at: number): boolean {
    const [next, after] = [this.#text.charCodeAt(at + 1), this.#text.charCodeAt(at + 2)];
    return next !== COLON && this.#text.charCodeAt(at - 1) !== COLON && !(next === SLASH && after === SLASH);
  }

  #kindOf(start: number, end: number, at: number, isColon: boolean): string | null {
    const text = this.#text;
    const name = text.slice(start, end);
    const kind = kindOf(name, !isColon && this.#readQuery(at)) ?? this.#kindAfterEscape(start, name);
    if (kind !== null) return kind;
    if (name.length <= PAIR_CHARS_MAX && isNamingMember(name)) this.#pending = secretKind(this.#firstWord(at + 1));
    if (this.#pending !== null && name.length <= PAIR_CHARS_MAX && isNamedMember(name)) {
      const pending = this.#pending;
      this.#pending = null;
      return pending;
    }
    // `API key: …`
    if (!isColon || end !== at || text.charCodeAt(start - 1) !== SPACE) return null;
    let word = start - 1;
    while (word > 0 && start - word < FLOW_CHARS_MAX && !means(text.charCodeAt(word - 1), NAME_END)) word -= 1;
    return pairKind(text.slice(word, start - 1), name);
  }

  /** In YAML, a line that begins with `:` has the value of `? password` on the line above. */
  #kindOfLineAbove(end: number, isColon: boolean): string | null {
    if (!isColon || end === 0 || !means(this.#text.charCodeAt(end - 1), LINE_END)) return null;
    const above = this.#text.slice(Math.max(0, end - FLOW_CHARS_MAX), end).trimEnd();
    const [, name] = EXPLICIT_KEY.exec(above.slice(above.lastIndexOf("\n") + 1)) ?? [];
    return name === undefined ? null : secretKind(name);
  }

  /** In a JSON string that is read without decoding, the `n` of `\n` is no part of the name after it. */
  #kindAfterEscape(start: number, name: string): string | null {
    return this.#isQuoted && this.#isEscapedLine(start - 1) ? secretKind(name.slice(1)) : null;
  }

  #isEscapedLine(at: number): boolean {
    const next = this.#text[at + 1];
    return this.#text.charCodeAt(at) === BACKSLASH && (next === "n" || next === "r" || next === "t");
  }

  #readQuery(end: number): boolean {
    for (; this.#queryRead < end; this.#queryRead += 1) {
      const code = this.#text.charCodeAt(this.#queryRead);
      if (means(code, QUERY | QUERY_END)) this.#isInQuery = means(code, QUERY);
    }
    return this.#isInQuery;
  }

  /** The word that begins here, or after blanks and a quote. */
  #firstWord(from: number): string {
    let start = this.#skipBlanks(from);
    if (means(this.#text.charCodeAt(start), QUOTE)) start += 1;
    const most = withoutEntities(this.#text.slice(start, start + FLOW_CHARS_MAX));
    return most.slice(0, endOf(most, 0, BLANK | QUOTE | CLOSES | WORD_END));
  }

  #skipBlanks(from: number): number {
    let at = from;
    while (isBlank(this.#text.charCodeAt(at))) at += 1;
    return at;
  }

  #value(name: Name, kind: string): number {
    const text = this.#text;
    let sign = name.at + 1;
    // `=>`, `:=`, `==`
    while (sign < name.at + 3 && (text.charCodeAt(sign) === GREATER || text.charCodeAt(sign) === EQUALS)) sign += 1;
    const start = this.#skipBlanks(sign);
    if (name.isColon && name.isLineStart && !this.#isQuoted && BLOCK.test(text.slice(start, start + BLOCK_CHARS_MAX))) {
      return this.#block(name, start, kind);
    }
    const quotes = TRIPLE_QUOTES.find((three) => text.startsWith(three, start));
    if (quotes !== undefined)
      return this.#hide(start + quotes.length, indexOf(text, quotes, start + quotes.length), kind);
    const quoted = this.#endOfQuoted(start);
    if (quoted !== -1) return this.#hide(start + 1, quoted, kind);
    return this.#hide(start, this.#endOfBare(start, name), kind);
  }

  /** Whether only blanks, list markers and quotes are before it on its line. */
  #isLineStart(start: number): boolean {
    let at = start - 1;
    for (; at >= 0 && start - at < FLOW_CHARS_MAX; at -= 1) {
      const code = this.#text.charCodeAt(at);
      if (means(code, LINE_END)) return true;
      if (!means(code, BLANK | QUOTE) && code !== 0x2d && code !== 0x3e) return false;
    }
    return at < 0;
  }

  /** The closing quote of a quoted value; -1: it is not quoted, or goes on after the quotes. */
  #endOfQuoted(start: number): number {
    const text = this.#text;
    const quote = text.charCodeAt(start);
    if (!means(quote, QUOTE)) return -1;
    let end = start + 1;
    for (; end < text.length; end += 1) {
      const code = text.charCodeAt(end);
      if (code === quote || means(code, LINE_END)) break;
      if (code === BACKSLASH) end += 1;
    }
    if (text.charCodeAt(end) !== quote) return -1;
    const isEnd = end + 1 === text.length || means(text.charCodeAt(end + 1), BLANK | QUOTE | CLOSES | WORD_END);
    return isEnd || /[.>]/.test(text[end + 1] ?? "") ? end : -1;
  }

  #endOfBare(start: number, name: Name): number {
    const text = this.#text;
    const isSpaced = isBlank(text.charCodeAt(start - 1));
    const isLine = isSpaced || (name.isLineStart && (name.isColon || !this.#hasMoreNames(start)));
    const isFlow = isLine && this.#isInBrackets(name.start);
    let ends = LINE_END;
    if (!isLine && name.quote === 0) ends |= BLANK | (name.isColon ? QUOTE | CLOSES : 0);
    if (!name.isColon) ends |= isSpaced ? 0 : PARAMETER_END;
    if (isFlow) ends |= CLOSES;
    let end = start;
    for (; end < text.length; end += 1) {
      const code = text.charCodeAt(end);
      if (code === BULLET) {
        end = Math.max(end, endOfMask(text, end) - 1);
        continue;
      }
      if (means(code, ends) || code === name.quote) break;
      if (this.#isQuoted && (code === DOUBLE_QUOTE || this.#isEscapedLine(end))) break;
      const isListSign = code === COMMA || (code === SEMICOLON && name.isColon);
      if (isListSign && (isFlow || (!isLine && name.isColon && name.quote === 0))) break;
    }
    while (end > start && means(text.charCodeAt(end - 1), BLANK)) end -= 1;
    return end;
  }

  /** `A=1 B=2` */
  #hasMoreNames(start: number): boolean {
    const end = endOf(this.#text, start, LINE_END);
    return this.#text.slice(start, Math.min(end, start + FLOW_CHARS_MAX)).includes("=");
  }

  /** Whether a bracket is open before this on its line. */
  #isInBrackets(start: number): boolean {
    let open = 0;
    for (let at = start - 1; at >= 0 && start - at < FLOW_CHARS_MAX; at -= 1) {
      const code = this.#text.charCodeAt(at);
      if (means(code, LINE_END)) return false;
      if (means(code, CLOSES)) open -= 1;
      if (means(code, OPENS) && (open += 1) > 0) return true;
    }
    return false;
  }

  /** Masks a YAML block: the lines indented further than their name; the lines of a list may have the same indent. */
  #block(name: Name, start: number, kind: string): number {
    const text = this.#text;
    const isWritten = endOf(text, start, LINE_END) > start;
    const lineStart = this.#lineStart(name.start);
    const inset = this.#skipBlanks(lineStart) - lineStart;
    const column = name.start - lineStart - (means(text.charCodeAt(name.start - 1), QUOTE) ? 1 : 0);
    let checked = start;
    for (let line = this.#nextLine(start); line < text.length; line = this.#nextLine(line)) {
      const first = this.#skipBlanks(line);
      const end = endOf(text, first, LINE_END);
      if (end === first) continue;
      const isItem = !isWritten && text.startsWith("- ", first);
      if (first - line <= inset && !(isItem && first - line === column)) break;
      const member = isWritten ? -1 : text.slice(first, end).search(/:[ \t]/);
      const item = isItem ? first + 2 : first;
      const from = this.#skipBlanks(member === -1 ? item : first + member + 1);
      checked = this.#hide(from, end, kind);
    }
    return checked;
  }

  #lineStart(at: number): number {
    let start = at;
    while (start > 0 && !means(this.#text.charCodeAt(start - 1), LINE_END)) start -= 1;
    return start;
  }

  #nextLine(from: number): number {
    const end = this.#text.indexOf("\n", from);
    return end === -1 ? this.#text.length : end + 1;
  }

  /** Returns the end of the value, which is checked then. */
  #hide(start: number, end: number, kind: string): number {
    if (end <= start) return start;
    const value = this.#text.slice(start, end);
    const isEncoded = value.includes("%") && !value.includes(" ");
    let shown = value;
    if (!isEncoded) shown = this.#masking.hideIn(value, kind);
    else if (this.#masking.hidesNamed(decode(value))) shown = this.#masking.hide(value, kind);
    if (shown !== value) this.#masked.replace(start, end, shown);
    return end;
  }
}

/** A name and its separator. */
interface Name {
  readonly start: number;
  readonly at: number;
  readonly isColon: boolean;
  /** It is the first on its line. */
  readonly isLineStart: boolean;
  /** The code of the open quote right before it; 0: none. */
  readonly quote: number;
}

const EXPLICIT_KEY = /^[ \t-]*\?[ \t]+["']?([^"']{1,256})/;

/** Around values of several lines in TOML and Python. */
const TRIPLE_QUOTES = ['"""', "'''"];

/** What is in place of a value that is on the following lines. */
const BLOCK = /^(?:[!&]\S{1,32}[ \t]{1,8}){0,2}(?:[|>][+-]?\d?[+-]?)?[ \t]*(?:#[^\n]*)?\r?(?:\n|$)/;

const BLOCK_CHARS_MAX = 80;

/** The name is in the head of a part, within this length. */
const PART_HEAD_CHARS_MAX = 1_024;

/** Also `name*=UTF-8''pass%77ord` (RFC 8187). */
const PART_NAME = /[; \t]name(?:="?|\*=[\w-]{0,32}'[\w-]{0,32}')([^"\r\n;]{1,256})/i;

/** Masks the parts of a multipart body whose names mean a secret. */
function maskParts(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  let read = 0;
  for (const { index: at } of text.matchAll(/form-data/gi)) {
    if (at < read) continue;
    const head = text.slice(at, at + PART_HEAD_CHARS_MAX);
    const blank = /\r?\n\r?\n/.exec(head);
    const kind = blank === null ? null : kindOf(PART_NAME.exec(head.slice(0, blank.index))?.[1] ?? "", false);
    if (blank === null || kind === null) continue;
    const start = at + blank.index + blank[0].length;
    const last = text.indexOf("\n--", start - 1);
    let end = last === -1 ? text.length : Math.max(start, last);
    if (text[end - 1] === "\r") end -= 1;
    read = end;
    if (end <= start) continue;
    const value = text.slice(start, end);
    const shown = masking.hideIn(value, kind);
    if (shown !== value) masked.replace(start, end, shown);
  }
  return masked.toString();
}

/** `machine … login … password …` of `.netrc`. */
const NETRC =
  /\b(?:machine|login|account)[ \t\r\n]{1,8}[^\s"']{1,256}[ \t\r\n]{1,8}password[ \t\r\n]{1,8}([^\s"']{1,1024})/g;

/**
 * The login of curl (`-u`, `--user`, `--proxy-user`), quoted as a whole or in parts. If the text was cut, the last quote is
 * missing; in a JSON string that is read without decoding, quotes are escaped.
 */
const CURL =
  /[ \t](?:-[uU]|--(?:proxy-)?user)[ \t=]{0,8}(?:'[^'\n:]{1,256}:([^'\n]{1,1024})|"[^"\n:]{1,256}:((?:[^"\\\n]|\\.){1,1024})|\\"[^"\\\n:]{1,256}:([^"\\\n]{1,1024})|["']?[^\s"':]{1,256}["']?:(?:\$?'([^'\n]{1,1024})|"((?:[^"\\\n]|\\.){1,1024})|\\"([^"\\\n]{1,1024})|([^\s"']{1,1024})))/g;

/** An option with a blank after its name, and a value that is no option itself. */
const OPTION =
  /(?<![\w-])--?([A-Za-z][\w-]{1,63})[ \t]{1,8}(?:'([^'\n]{1,1024})|"((?:[^"\\\n]|\\.){1,1024})|([^\s"'-][^\s"']{0,1023}))/g;

/** `IDENTIFIED BY '…'`, `WITH PASSWORD '…'`, `SET PASSWORD FOR 'ann' = '…'`, `PASSWORD('…')`. */
const SQL_PASSWORD =
  /\b(password|secret|identified[ \t]by)(?:[ \t]for[ \t][^\s=]{1,128})?(?:[ \t]{1,4}[=(]?|[=(])[ \t]{0,4}'((?:[^'\\\n]|\\.){1,1024})/gi;

/** Whether a text may be a command or SQL with a secret. */
export function mayHoldCommand(text: string): boolean {
  const hasOption = text.includes(" -") || text.startsWith("-");
  return (hasOption && maybeSensitive(text)) || (text.includes("'") && /password|secret|identified/i.test(text));
}

/** Masks command options with the name of a secret, such as `--token …`, and passwords in SQL. */
export function maskCommand(text: string, masking: Masking): string {
  return [OPTION, SQL_PASSWORD].reduce((left, pattern) => {
    const masked = new EditedText(left);
    for (const match of left.matchAll(pattern)) {
      const [whole, name = "", ...values] = match;
      const value = values.find((one) => one !== undefined) ?? "";
      const kind = pattern === OPTION ? secretKind(name) : "password";
      const shown = kind === null ? value : masking.hideIn(value, kind);
      const end = match.index + whole.length;
      if (shown !== value) masked.replace(end - value.length, end, shown);
    }
    return masked.toString();
  }, text);
}

/** What closes the quote around each group of `CURL`. */
const CURL_QUOTES = ["'", '"', '\\"', "'", '"', '\\"', ""];

/**
 * What a shell joins to the part before it: another part, quoted or bare. A quote before a blank or a sign closes what is
 * around the command.
 */
const JOINED =
  /'(?=[^\s"'`|&;<>(),.:}\]\\])[^'\n]{1,1024}|"(?=[^\s"'`|&;<>(),.:}\]\\])(?:[^"\\\n]|\\.){1,1024}|[^\s"'`|&;<>(),.:}\]\\][^\s"'`|&;<>(),}\]]{0,1023}/y;

/** Masks the password at the end of each match. `quotes`: what closes each group; left out: no part is joined to it. */
function maskPasswords(text: string, pattern: RegExp, masking: Masking, quotes?: readonly string[]): string {
  const masked = new EditedText(text);
  let done = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index < done) continue;
    const group = match.slice(1).findIndex((one) => one !== undefined);
    const first = match[group + 1] ?? "";
    done = match.index + match[0].length;
    const parts = [{ at: done - first.length, part: first }];
    const quote = quotes?.[group] ?? null;
    JOINED.lastIndex = done + (quote?.length ?? 0);
    const mayGoOn = quote !== null && text.startsWith(quote, done);
    for (let next = mayGoOn ? JOINED.exec(text) : null; next !== null; next = JOINED.exec(text)) {
      const [found] = next;
      const isQuoted = found.startsWith('"') || found.startsWith("'");
      done = next.index + found.length;
      parts.push({ at: next.index + (isQuoted ? 1 : 0), part: isQuoted ? found.slice(1) : found });
      JOINED.lastIndex = isQuoted ? done + 1 : done;
    }
    const isHidden = masking.hidesNamed(parts.map(({ part }) => part).join(""));
    for (const { at, part } of parts) {
      const shown = isHidden && parts.length > 1 ? masking.hide(part, "password") : masking.hideIn(part, "password");
      if (shown !== part) masked.replace(at, at + part.length, shown);
    }
  }
  return masked.toString();
}

/** `pin%3D1`; nothing shorter holds a secret. */
const ENCODED_CHARS_MIN = 7;

/** Masks secrets in percent-encoded parts of paths and values; the rest of each part stays encoded. */
function maskEncoded(text: string, { isWhole, isQuoted }: PairsOptions, inner: MaskInner): string {
  const masked = new EditedText(text);
  let start = 0;
  let isEncoded = false;
  const ends = SIGN | SLASHES | (isWhole ? 0 : BLANK) | (isQuoted ? DOUBLE : 0);
  for (let at = 0; at <= text.length; at += 1) {
    const code = at < text.length ? text.charCodeAt(at) : SLASH;
    if (code === PERCENT || code === PLUS) isEncoded = true;
    if (!means(code, ends)) continue;
    if (isEncoded && at - start >= ENCODED_CHARS_MIN) {
      const part = text.slice(start, at);
      // Decode only the text between masks: the words of a mask would be read as part of a value.
      const shown = changedBetweenMasks(part, (piece) => maskDecoded(piece, PERCENT_ENCODING, inner));
      if (shown !== part) masked.replace(start, at, shown);
    }
    start = at + 1;
    isEncoded = false;
  }
  return masked.toString();
}

/** How a part of a text is encoded. */
interface Encoding {
  readonly decode: (part: string) => string;
  readonly encode: (text: string) => string;
  /** How long the first `count` decoded characters are in the encoded text. */
  readonly writtenLength: (part: string, count: number) => number;
}

function maskDecoded(part: string, encoding: Encoding, inner: MaskInner): string {
  const decoded = encoding.decode(part);
  const shown = decoded === part ? decoded : inner(decoded);
  if (shown === decoded) return part;
  const most = Math.min(decoded.length, shown.length);
  let same = 0;
  while (same < most && decoded.charCodeAt(same) === shown.charCodeAt(same)) same += 1;
  let [end, shownEnd] = [decoded.length, shown.length];
  while (Math.min(end, shownEnd) > same && decoded.charCodeAt(end - 1) === shown.charCodeAt(shownEnd - 1)) {
    end -= 1;
    shownEnd -= 1;
  }
  // Keep the spelling of unchanged text: encoded anew, it could form another secret with its surroundings.
  const kept = encoding.writtenLength(part, same);
  return (
    part.slice(0, kept) +
    changedBetweenMasks(shown.slice(same, shownEnd), encoding.encode) +
    part.slice(encoding.writtenLength(part, end))
  );
}

const PERCENT_ENCODING: Encoding = {
  decode,
  encode: percent,
  writtenLength(part, count) {
    let length = 0;
    for (let decoded = 0; decoded < count; decoded += 1) length += byteAt(part, length) === null ? 1 : 3;
    return length;
  },
};

/** The characters that `decode` may have produced from bytes. */
const TO_ENCODE = /[^A-Za-z0-9._~\u0100-\uffff-]/g;

function percent(text: string): string {
  return text.replace(TO_ENCODE, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")}`);
}

/** Decodes plus and percent signs byte by byte; the names and formats of secrets are ASCII. */
export function decode(text: string): string {
  const spaced = text.includes("+") ? text.replaceAll("+", " ") : text;
  let decoded = "";
  let kept = 0;
  for (let at = spaced.indexOf("%"); at !== -1 && at < spaced.length; at += 1) {
    const byte = byteAt(spaced, at);
    if (byte === null) continue;
    decoded += spaced.slice(kept, at) + String.fromCharCode(byte);
    kept = at + 3;
    at = kept - 1;
  }
  return kept === 0 ? spaced : decoded + spaced.slice(kept);
}

/** The byte that the percent sign here and the two characters after it encode. */
function byteAt(text: string, at: number): number | null {
  if (text.charCodeAt(at) !== PERCENT) return null;
  const [high, low] = [hexDigit(text.charCodeAt(at + 1)), hexDigit(text.charCodeAt(at + 2))];
  return high === -1 || low === -1 ? null : high * 16 + low;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const small = code | 0x20;
  return small >= 0x61 && small <= 0x66 && code < 0x80 ? small - 0x57 : -1;
}

/** HTML and XML references: by name to the characters around names and values, and by code to any character. */
const ENTITY = /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(quot|apos|amp|lt|gt|nbsp|colon|equals));/g;

const NAMED_ENTITIES: Readonly<Record<string, string>> = {
  quot: '"',
  apos: "'",
  amp: "&",
  lt: "<",
  gt: ">",
  nbsp: " ",
  colon: ":",
  equals: "=",
};

export function mayHoldEntities(text: string): boolean {
  return text.includes("&") && text.includes(";") && text.search(ENTITY) !== -1;
}

/** Masks secrets in HTML and XML in which characters are written as references, as in `{&quot;password&quot;:…}`. */
export function maskEntities(text: string, isQuoted: boolean, inner: MaskInner): string {
  // A quote that is escaped in JSON must stay so.
  const isAround = (code: number) => means(code, MARKUP) || (isQuoted && code === BACKSLASH);
  const masked = new EditedText(text);
  let end = 0;
  for (const { index } of text.matchAll(ENTITY)) {
    if (index < end) continue;
    let start = index;
    while (start > end && !isAround(text.charCodeAt(start - 1))) start -= 1;
    end = index;
    while (end < text.length && !isAround(text.charCodeAt(end))) end += 1;
    const part = text.slice(start, end);
    const shown = changedBetweenMasks(part, (piece) => maskDecoded(piece, ENTITIES, inner));
    if (shown !== part) masked.replace(start, end, shown);
  }
  return masked.toString();
}

/** Each reference is one UTF-16 unit or two. */
const ENTITIES: Encoding = {
  decode: withoutEntities,
  encode: (text) => text.replaceAll(/[&<>"'\\]/g, (sign) => `&#${sign.charCodeAt(0)};`),
  writtenLength(part, count) {
    // By how much the references so far are longer than their characters.
    let longer = 0;
    for (const match of part.matchAll(ENTITY)) {
      if (match.index - longer >= count) break;
      longer += match[0].length - characterOf(match).length;
    }
    return count + longer;
  },
};

export function withoutEntities(text: string): string {
  return text.includes("&") ? text.replaceAll(ENTITY, (...match) => characterOf(match)) : text;
}

function characterOf([written, decimal, hex, name]: readonly unknown[]): string {
  if (typeof name === "string") return NAMED_ENTITIES[name] ?? "";
  const code = typeof hex === "string" ? Number.parseInt(hex, 16) : Number(decimal);
  return code <= 0x10ffff ? String.fromCodePoint(code) : String(written);
}
