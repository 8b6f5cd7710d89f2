import {
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
import { decode } from "./percent.ts";

/** What characters mean between names and values, as bits, by their code. */
const [BLANK, LINE_END, QUOTE, SEPARATOR, QUERY, PARAMETER_END, SIGN, OPENS, CLOSES, NO_NAME, NO_QUERY] = [
  1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024,
];

const MEANINGS = meanings();

function meanings(): Uint16Array {
  const table = new Uint16Array(128);
  table.fill(BLANK, 0, 0x21);
  const add = (chars: string, bits: number) => {
    for (const code of Buffer.from(chars)) table[code] = (table[code] ?? 0) | bits;
  };
  add("\n\r", LINE_END);
  add("\"'`", QUOTE);
  add("=:", SEPARATOR);
  add("?#", QUERY);
  add("&#;", PARAMETER_END);
  // Browsers read a backslash as a slash.
  add("&?#;=/\\,", SIGN);
  add("({[", OPENS);
  add(")}]", CLOSES);
  add("({", NO_NAME);
  add('"', NO_QUERY);
  return table;
}

function meaningOf(code: number): number {
  return code < 128 ? (MEANINGS[code] ?? 0) : 0;
}

/** What ends a name, looking backwards, but for `[`, as in `user[password]`. */
const NAME_END = BLANK | QUOTE | SEPARATOR | SIGN | NO_NAME;

/** What ends the query of a URL in a text. */
const QUERY_END = BLANK | NO_QUERY;

const [TAB, SPACE, DOUBLE_QUOTE, COMMA, SLASH, COLON, SEMICOLON, EQUALS, GREATER, BACKSLASH, BULLET] = [
  0x09, 0x20, 0x22, 0x2c, 0x2f, 0x3a, 0x3b, 0x3d, 0x3e, 0x5c, 0x2022,
];

/** Masks the parameters of a URL or form that have the name of a secret. Spaces belong to them. */
export function maskParameters(text: string, masking: Masking): string {
  if (!text.includes("=")) return text;
  const masked = new EditedText(text);
  let name = 0;
  let checked = 0;
  let isQuery = false;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    const meaning = meaningOf(code);
    // Skip names inside a checked value: `token=token=token=…` would take quadratic time.
    const kind = code === EQUALS && at > name && at >= checked ? kindOf(text.slice(name, at), isQuery) : null;
    const end = kind === null ? at : endOf(text, at + 1, PARAMETER_END);
    checked = Math.max(checked, end);
    if (kind !== null && masking.hidesNamed(decode(text.slice(at + 1, end)))) {
      masked.replace(at + 1, end, masking.hide(text.slice(at + 1, end), kind));
      at = end - 1;
    } else if ((meaning & SIGN) !== 0 && code !== COMMA) {
      isQuery ||= (meaning & QUERY) !== 0;
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

/** The next one from here; the end of the text: there is none. */
function indexOf(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at === -1 ? text.length : at;
}

function endOf(text: string, start: number, ends: number): number {
  let at = start;
  while (at < text.length && (meaningOf(text.charCodeAt(at)) & ends) === 0) at += 1;
  return at;
}

/**
 * Masks values with the name of a secret in a text of any kind: YAML, INI, TOML, `.env`, HTTP headers, arguments of GraphQL,
 * objects of JavaScript and Python, `.netrc`, the log-in of `curl`, parts of multipart bodies. In a text with members of JSON
 * (`isQuoted`) double quotes end names and values.
 */
export function maskNamed(text: string, isQuoted: boolean, masking: Masking): string {
  // Most texts hold no part of a name. Percent signs may hide its letters, and in a query more names mean a secret.
  const mayBeNamed = maybeSensitive(text) || text.includes("%");
  const hasSigns = mayBeNamed && (text.includes(":") || text.includes("="));
  const named = hasSigns ? new NamedValues(text, isQuoted, masking).masked() : text;
  const parts = mayBeNamed && named.includes("form-data") ? maskParts(named, masking) : named;
  const mayLogIn = parts.includes("curl") || (mayBeNamed && parts.includes("password"));
  return mayLogIn ? maskLogInsOfTools(parts, masking) : parts;
}

/** No longer name is looked up. */
const PAIR_CHARS_MAX = 7;

/** How far back a bracket is looked for that a name stands in. */
const FLOW_CHARS_MAX = 256;

/** From separator to separator: names inside of a checked value are not looked at again. */
class NamedValues {
  readonly #text: string;
  readonly #isQuoted: boolean;
  readonly #masking: Masking;
  readonly #masked: EditedText;
  /** Values up to here were checked. */
  #checked = 0;
  /** The last `?` or `#` that was passed, the end of what it stands in, and the next one of each. */
  #query = -1;
  #queryEnd = -1;
  #question: number;
  #hash: number;
  /** The kind of what the next `value` holds. */
  #pending: string | null = null;

  constructor(text: string, isQuoted: boolean, masking: Masking) {
    this.#text = text;
    this.#isQuoted = isQuoted;
    this.#masking = masking;
    this.#masked = new EditedText(text);
    this.#question = indexOf(text, "?", 0);
    this.#hash = indexOf(text, "#", 0);
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
    const closing = end > this.#checked && (meaningOf(text.charCodeAt(end - 1)) & QUOTE) !== 0;
    // A member of JSON is masked as such.
    if (closing && this.#isQuoted && text.charCodeAt(end - 1) === DOUBLE_QUOTE) return at;
    if (closing) end -= 1;
    let start = end;
    while (start > this.#checked && (meaningOf(text.charCodeAt(start - 1)) & NAME_END) === 0) start -= 1;
    // A parameter of GraphQL, of which the type follows.
    if (start === end || (isColon && text[start] === "$")) return at;
    const kind = this.#kindOf(start, end, at, isColon);
    if (kind === null) return at;
    const before = text.charCodeAt(start - 1);
    const quote = !closing && (meaningOf(before) & QUOTE) !== 0 ? before : 0;
    return this.#value({ start, at, isColon, quote }, kind);
  }

  /** Not in `https://` and `Auth::Token`. */
  #separates(at: number): boolean {
    const [next, after] = [this.#text.charCodeAt(at + 1), this.#text.charCodeAt(at + 2)];
    return next !== COLON && this.#text.charCodeAt(at - 1) !== COLON && !(next === SLASH && after === SLASH);
  }

  #kindOf(start: number, end: number, at: number, isColon: boolean): string | null {
    const text = this.#text;
    const name = text.slice(start, end);
    const kind = kindOf(name, !isColon && this.#isInQuery(at)) ?? this.#kindAfterEscape(start, name);
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
    while (word > 0 && start - word < FLOW_CHARS_MAX && (meaningOf(text.charCodeAt(word - 1)) & NAME_END) === 0)
      word -= 1;
    return pairKind(text.slice(word, start - 1), name);
  }

  /** In a string of JSON that is read as it is written, `n` of `\n` is no part of the name after it. */
  #kindAfterEscape(start: number, name: string): string | null {
    return this.#isQuoted && this.#isEscapedLine(start - 1) ? secretKind(name.slice(1)) : null;
  }

  #isEscapedLine(at: number): boolean {
    const next = this.#text[at + 1];
    return this.#text.charCodeAt(at) === BACKSLASH && (next === "n" || next === "r" || next === "t");
  }

  /** Whether a `?` or `#` stands before this without a blank between. */
  #isInQuery(at: number): boolean {
    const text = this.#text;
    while (Math.min(this.#question, this.#hash) < at) {
      this.#query = Math.min(this.#question, this.#hash);
      if (this.#question === this.#query) this.#question = indexOf(text, "?", this.#query + 1);
      else this.#hash = indexOf(text, "#", this.#query + 1);
    }
    if (this.#query > this.#queryEnd) this.#queryEnd = endOf(text, this.#query, QUERY_END);
    return at < this.#queryEnd;
  }

  /** The word that begins here or after blanks and a quote. */
  #firstWord(from: number): string {
    let start = this.#skipBlanks(from);
    if ((meaningOf(this.#text.charCodeAt(start)) & QUOTE) !== 0) start += 1;
    const most = this.#text.slice(start, start + FLOW_CHARS_MAX);
    return most.slice(0, endOf(most, 0, BLANK | QUOTE | CLOSES | SIGN));
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
    const isLineStart = this.#isLineStart(name.start);
    if (name.isColon && isLineStart && !this.#isQuoted && BLOCK.test(text.slice(start, start + BLOCK_CHARS_MAX))) {
      return this.#block(name, start, kind);
    }
    const quoted = this.#endOfQuoted(start);
    if (quoted !== -1) return this.#hide(start + 1, quoted, kind);
    return this.#hide(start, this.#endOfBare(start, name, { isSpaced: start > sign, isLineStart }), kind);
  }

  /** Nothing but blanks, signs of lists and quotes stand before it on its line. */
  #isLineStart(start: number): boolean {
    let at = start - 1;
    for (; at >= 0 && start - at < FLOW_CHARS_MAX; at -= 1) {
      const code = this.#text.charCodeAt(at);
      const meaning = meaningOf(code);
      if ((meaning & LINE_END) !== 0) return true;
      if ((meaning & (BLANK | QUOTE)) === 0 && code !== 0x2d && code !== 0x3e) return false;
    }
    return at < 0;
  }

  /** The closing quote of a value in quotes; -1: it is in none, or goes on after them. */
  #endOfQuoted(start: number): number {
    const text = this.#text;
    const quote = text.charCodeAt(start);
    if ((meaningOf(quote) & QUOTE) === 0) return -1;
    let end = start + 1;
    for (; end < text.length; end += 1) {
      const code = text.charCodeAt(end);
      if (code === quote || (meaningOf(code) & LINE_END) !== 0) break;
      if (code === BACKSLASH) end += 1;
    }
    if (text.charCodeAt(end) !== quote) return -1;
    const after = meaningOf(text.charCodeAt(end + 1));
    const isEnd = end + 1 === text.length || (after & (BLANK | QUOTE | CLOSES | SIGN)) !== 0;
    return isEnd || /[.>]/.test(text[end + 1] ?? "") ? end : -1;
  }

  #endOfBare(start: number, name: Name, { isSpaced, isLineStart }: BareOptions): number {
    const text = this.#text;
    const isLine = isSpaced || (isLineStart && (name.isColon || !this.#hasMoreNames(start)));
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
      if ((meaningOf(code) & ends) !== 0 || code === name.quote) break;
      if (this.#isQuoted && (code === DOUBLE_QUOTE || this.#isEscapedLine(end))) break;
      const isListSign = code === COMMA || (code === SEMICOLON && name.isColon);
      if (isListSign && (isFlow || (!isLine && name.isColon && name.quote === 0))) break;
    }
    while (end > start && (meaningOf(text.charCodeAt(end - 1)) & BLANK) !== 0) end -= 1;
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
      const meaning = meaningOf(this.#text.charCodeAt(at));
      if ((meaning & LINE_END) !== 0) return false;
      if ((meaning & CLOSES) !== 0) open -= 1;
      if ((meaning & OPENS) !== 0 && (open += 1) > 0) return true;
    }
    return false;
  }

  /** The lines that are further in than their name, in YAML. */
  #block(name: Name, start: number, kind: string): number {
    const text = this.#text;
    const isWritten = endOf(text, start, LINE_END) > start;
    const inset = this.#insetOf(name.start);
    let checked = start;
    for (let line = this.#nextLine(start); line < text.length; line = this.#nextLine(line)) {
      const first = this.#skipBlanks(line);
      const end = endOf(text, first, LINE_END);
      if (end === first) continue;
      if (first - line <= inset) break;
      const member = isWritten ? -1 : text.slice(first, end).search(/:[ \t]/);
      const item = text.startsWith("- ", first) && !isWritten ? first + 2 : first;
      const from = this.#skipBlanks(member === -1 ? item : first + member + 1);
      checked = this.#hide(from, end, kind);
    }
    return checked;
  }

  #insetOf(start: number): number {
    let line = start;
    while (line > 0 && (meaningOf(this.#text.charCodeAt(line - 1)) & LINE_END) === 0) line -= 1;
    return this.#skipBlanks(line) - line;
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
    const shown = isEncoded ? this.#masking.hideWhole(value, kind, decode(value)) : this.#masking.hideIn(value, kind);
    if (shown !== value) this.#masked.replace(start, end, shown);
    return end;
  }
}

/** A name and its separator. */
interface Name {
  readonly start: number;
  readonly at: number;
  readonly isColon: boolean;
  /** The code of the quote that stands right before it and is not closed; 0: none. */
  readonly quote: number;
}

interface BareOptions {
  /** Blanks stand before the value. */
  readonly isSpaced: boolean;
  /** Its name is the first of its line. */
  readonly isLineStart: boolean;
}

/** What stands in place of a value that is in the following lines. */
const BLOCK = /^(?:[|>][+-]?\d?)?[ \t]*(?:#[^\n]*)?\r?(?:\n|$)/;

const BLOCK_CHARS_MAX = 80;

/** Names are in the first lines of a part. */
const PART_HEAD_CHARS_MAX = 1_024;

const PART_NAME = /[; \t]name="?([^"\r\n;]{1,256})/;

/** The values of parts of a multipart body whose names mean a secret. */
function maskParts(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  let read = 0;
  for (let at = text.indexOf("form-data"); at !== -1; at = text.indexOf("form-data", Math.max(at + 1, read))) {
    const head = text.slice(at, at + PART_HEAD_CHARS_MAX);
    const blank = /\r?\n\r?\n/.exec(head);
    const kind = blank === null ? null : secretKind(PART_NAME.exec(head.slice(0, blank.index))?.[1] ?? "");
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

/** The log-ins of `.netrc` (`machine … login … password …`) and of curl (`-u`, `--user`, `--proxy-user`). */
const LOG_INS =
  /\b(?:machine|login|account)[ \t\r\n]{1,8}[^\s"']{1,256}[ \t\r\n]{1,8}password[ \t\r\n]{1,8}([^\s"']{1,1024})|[ \t](?:-[uU]|--(?:proxy-)?user)[ \t=]{0,8}(?:'[^'\n:]{1,256}:([^'\n]{1,1024})'|"[^"\n:]{1,256}:([^"\n]{1,1024})"|[^\s"':]{1,256}:([^\s"']{1,1024}))/g;

function maskLogInsOfTools(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  for (const { 0: whole, 1: netrc, 2: single, 3: double, 4: bare, index } of text.matchAll(LOG_INS)) {
    const password = netrc ?? single ?? double ?? bare ?? "";
    const start = index + whole.lastIndexOf(password);
    const shown = masking.hideIn(password, "password");
    if (shown !== password) masked.replace(start, start + password.length, shown);
  }
  return masked.toString();
}
