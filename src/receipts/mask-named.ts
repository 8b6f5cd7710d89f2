import {
  BACKSLASH,
  BLANK,
  BULLET,
  CLOSES,
  COLON,
  COMMA,
  DOUBLE,
  DOUBLE_QUOTE,
  characterEnd,
  EQUALS,
  GREATER,
  indexOrEnd,
  LINE_END,
  means,
  NO_NAME,
  OPENS,
  PARAMETER_END,
  QUERY,
  QUOTE,
  SEMICOLON,
  SEPARATOR,
  SLASH,
  SPACE,
  TAB,
  WORD_END,
} from "./characters.ts";
import { decode, nameKind, withoutEntities } from "./mask-encoded.ts";
import { ownAttributesIn } from "./mask-markup.ts";
import {
  EditedText,
  endOfMask,
  isNamedMember,
  isNamingMember,
  type Masking,
  maybeSensitive,
  pairKind,
  secretKind,
} from "./mask-rules.ts";

/** What ends a name when it is read backwards, except `[`, as in `user[password]`. */
const NAME_END = BLANK | QUOTE | SEPARATOR | WORD_END | NO_NAME;

/** What ends the query of a URL in a text. */
const QUERY_END = BLANK | DOUBLE;

/**
 * Masks values with the name of a secret in any text: YAML, INI, TOML, `.env`, HTTP headers, GraphQL arguments, JavaScript and
 * Python objects, multipart bodies. In a text with JSON members (`isQuoted`), double quotes end names and values.
 */
export function maskNamed(text: string, isQuoted: boolean, masking: Masking): string {
  // Most texts contain no part of such a name. Letters may be encoded, and in a query more names mean a secret.
  const mayBeNamed = maybeSensitive(text) || text.includes("%") || text.includes("&#");
  const hasSigns = mayBeNamed && (text.includes(":") || text.includes("="));
  const named = hasSigns ? new NamedValues(text, isQuoted, masking).masked() : text;
  return mayBeNamed ? maskParts(named, masking) : named;
}

/** `isNamedMember` and `isNamingMember` know no longer names. */
const PAIR_CHARS_MAX = 14;

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
  /** Whether there is a `?` or `#` before `#queryRead`, with no blank in between. */
  #isInQuery = false;
  #queryRead = 0;
  /** The kind of secret that the next `value` holds, or null. */
  #pending: string | null = null;
  readonly #isOwnAttribute: (sign: number) => boolean;

  constructor(text: string, isQuoted: boolean, masking: Masking) {
    this.#text = text;
    this.#isQuoted = isQuoted;
    this.#masking = masking;
    this.#masked = new EditedText(text);
    this.#isOwnAttribute = ownAttributesIn(text);
  }

  masked(): string {
    const text = this.#text;
    let [colon, equals] = [indexOrEnd(text, ":", 0), indexOrEnd(text, "=", 0)];
    while (colon < text.length || equals < text.length) {
      const at = Math.min(colon, equals);
      if (at >= this.#checked) this.#checked = Math.max(at + 1, this.#maskAfter(at, at === colon));
      if (at === colon) colon = indexOrEnd(text, ":", Math.max(at + 1, this.#checked));
      else equals = indexOrEnd(text, "=", Math.max(at + 1, this.#checked));
    }
    return this.#masked.toString();
  }

  /** Masks the value after a separator if its name means a secret. Returns where to read on. */
  #maskAfter(at: number, isColon: boolean): number {
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
    const kind = start < end ? this.#nameKind(start, end, at, isColon) : this.#kindOfLineAbove(end, isColon);
    if (kind === null) return at;
    const before = text.charCodeAt(start - 1);
    const quote = !closing && means(before, QUOTE) ? before : 0;
    return this.#maskValue({ start, at, isColon, isLineStart: this.#isLineStart(start), quote }, kind);
  }

  /** Whether the character separates a name from a value, unlike in `https://` and `Auth::Token`. */
  #separates(at: number): boolean {
    const [next, after] = [this.#text.charCodeAt(at + 1), this.#text.charCodeAt(at + 2)];
    return next !== COLON && this.#text.charCodeAt(at - 1) !== COLON && !(next === SLASH && after === SLASH);
  }

  #nameKind(start: number, end: number, at: number, isColon: boolean): string | null {
    const text = this.#text;
    const name = text.slice(start, end);
    const kind = nameKind(name, !isColon && this.#isQueryAt(at)) ?? this.#kindAfterEscape(start, name);
    if (kind !== null) return kind;
    if (name.length <= PAIR_CHARS_MAX && isNamingMember(name)) {
      this.#pending = this.#isOwnAttribute(at) ? null : secretKind(this.#firstWord(at + 1));
    }
    if (this.#pending !== null && name.length <= PAIR_CHARS_MAX && isNamedMember(name)) {
      const pending = this.#isOwnAttribute(at) ? null : this.#pending;
      if (pending !== null) this.#pending = null;
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

  /** Whether `end` is in the query of a URL. */
  #isQueryAt(end: number): boolean {
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
    return most.slice(0, characterEnd(most, 0, BLANK | QUOTE | CLOSES | WORD_END));
  }

  #skipBlanks(from: number): number {
    let at = from;
    while (isBlank(this.#text.charCodeAt(at))) at += 1;
    return at;
  }

  /** Masks the value of a name. Returns its end. */
  #maskValue(name: Name, kind: string): number {
    const text = this.#text;
    let sign = name.at + 1;
    // `=>`, `:=`, `==`
    while (sign < name.at + 3 && (text.charCodeAt(sign) === GREATER || text.charCodeAt(sign) === EQUALS)) sign += 1;
    const start = this.#skipBlanks(sign);
    if (name.isColon && name.isLineStart && !this.#isQuoted && BLOCK.test(text.slice(start, start + BLOCK_CHARS_MAX))) {
      return this.#maskBlock(name, start, kind);
    }
    const quotes = TRIPLE_QUOTES.find((three) => text.startsWith(three, start));
    if (quotes !== undefined)
      return this.#hide(start + quotes.length, indexOrEnd(text, quotes, start + quotes.length), kind);
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
    const end = characterEnd(this.#text, start, LINE_END);
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
  #maskBlock(name: Name, start: number, kind: string): number {
    const text = this.#text;
    const isWritten = characterEnd(text, start, LINE_END) > start;
    const lineStart = this.#lineStart(name.start);
    const inset = this.#skipBlanks(lineStart) - lineStart;
    const column = name.start - lineStart - (means(text.charCodeAt(name.start - 1), QUOTE) ? 1 : 0);
    let checked = start;
    for (let line = this.#nextLine(start); line < text.length; line = this.#nextLine(line)) {
      const first = this.#skipBlanks(line);
      const end = characterEnd(text, first, LINE_END);
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

function isBlank(code: number): boolean {
  return code === SPACE || code === TAB;
}

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
    const kind = blank === null ? null : nameKind(PART_NAME.exec(head.slice(0, blank.index))?.[1] ?? "", false);
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
