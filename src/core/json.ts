import {
  JSON_DEPTH_MAX,
  JSON_MEMBERS_MAX,
  PRETTY_JSON_CHARS_MAX,
  PRETTY_JSON_GROWN_CHARS_MAX,
  PRETTY_JSON_GROWTH_MAX,
} from "./limits.ts";
import { endOfString, endOfToken, endOfValue, skipSpace } from "./json-values.ts";

/** The value of a JSON text; undefined: it is none, as in an altered row. `change` may replace each value. */
export function jsonIn(text: string, change?: (name: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, change);
  } catch {
    return undefined;
  }
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The result of a scan before parsing. `exact`: some number may change when it is parsed and printed. */
export type JsonScan = "too_deep" | "too_many_members" | "plain" | "exact";

export interface ParsedJson {
  readonly value: unknown;
  readonly text: string;
  /** The result of its scan; `compact`: `compactJson` wrote the text. */
  readonly scan: Extract<JsonScan, "plain" | "exact"> | "compact";
}

/**
 * Checks depth and number of members in the bytes, before parsing: 100,000 levels cost 3 ms here and 700 ms in the
 * parser.
 */
export function scanJson(bytes: Uint8Array, membersMax = JSON_MEMBERS_MAX): JsonScan {
  let depth = 0;
  let members = 0;
  let digits = 0;
  let exact = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at += 1;
      while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
      digits = 0;
    } else if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      depth += 1;
      if (depth > JSON_DEPTH_MAX) return "too_deep";
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth -= 1;
    else if (byte === COLON) {
      members += 1;
      if (members > membersMax) return "too_many_members";
    } else if (isDigit(byte)) {
      digits += 1;
      exact ||= digits > SAFE_DIGITS;
    } else exact ||= digits > 0 && isFractional(byte);
    // Treat -0 as exact: printed, it would be 0.
    if (!isDigit(byte)) digits = byte === MINUS && bytes[at + 1] === ZERO ? 1 + SAFE_DIGITS : 0;
  }
  return exact ? "exact" : "plain";
}

/** Any number with so many digits is exact as a double. */
const SAFE_DIGITS = 15;

const [QUOTE, BACKSLASH, COLON, MINUS, ZERO] = [0x22, 0x5c, 0x3a, 0x2d, 0x30];

const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39;
}

/** Whether it is `.`, `e` or `E`: parsing loses how 1.0 and 1e2 are written. */
function isFractional(byte: number | undefined): boolean {
  return byte === 0x2e || byte === 0x65 || byte === 0x45;
}

/** Parses so that `JSON.stringify` prints every number as it was written. Node before 22 can't: see `parseInOrder`. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_name: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    const isRounded = typeof value === "number" && source !== undefined && String(value) !== source;
    return isRounded && rawJSON !== undefined ? rawJSON(source) : value;
  });
}

// Safe: ES2026, which the types don't have yet.
const { rawJSON } = JSON as { readonly rawJSON?: (text: string) => object };

/** Whether text can be stored and shown: no NUL and no lone surrogate (libSQL breaks on both). */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/**
 * The compact text of a member, with each number as it was written: parsed and printed, 12345678901234567890 and 1.0 would
 * change. Without such numbers, printing is faster. The path has names and indexes. `null` when there is none.
 */
export function memberText({ scan, value, text }: ParsedJson, ...path: readonly (string | number)[]): string {
  if (scan === "plain") return JSON.stringify(path.reduce(memberAt, value) ?? null);
  const compactor = new Compactor(text);
  if (!path.every((step) => compactor.goTo(step))) return "null";
  return scan === "compact" ? compactor.copy() : compactor.value();
}

/** The same, but keeps the order of names in objects: printing would reorder names that are numbers. */
export function orderedMemberText({ scan, text }: ParsedJson, ...path: readonly (string | number)[]): string {
  return memberText({ scan: scan === "compact" ? scan : "exact", text, value: null }, ...path);
}

function memberAt(value: unknown, step: string | number): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, step)?.value : undefined;
}

/**
 * Validates one JSON text (RFC 8259) and drops its white space, without parsing it into values: 340,000 empty lists are a
 * megabyte of text, but 25 MB and 35 ms as values. Throws `SyntaxError`. Bound the depth first (`scanJson`).
 */
export function compactJson(text: string): string {
  return new Compactor(text).wholeText();
}

/**
 * The text, which has no white space, with lists empty in these members of the outermost object. Any other list is
 * `[null]` if it has a list in it, or an object beyond the first `JSON_MEMBERS_MAX` in lists: no field of ours does, and it would cost as much.
 */
export function withoutLists(json: string, members: readonly string[]): string {
  const names = new Set(members.map((name) => JSON.stringify(name)));
  /** The lists and objects that are open, outermost first: where they begin, and whether they will be `[null]`. */
  const open: { readonly start: number; isNull: boolean }[] = [];
  /** What stands for which parts, in their order. */
  const edits: { readonly from: number; readonly to: number; readonly by: string }[] = [];
  const replace = (from: number, to: number, by: string): number => {
    // What was replaced within that part goes with it.
    while ((edits.at(-1)?.from ?? -1) > from) edits.pop();
    edits.push({ from, to, by });
    return to;
  };
  let [opaqueEnd, objects] = [0, 0];
  for (let at = 0; at < json.length;) {
    const char = json[at];
    const outer = open.at(-1);
    const opening = outer && json[outer.start];
    if (char === '"') {
      const end = endOfString(json, at);
      const isMember = open.length === 1 && opening === "{" && json[end] === ":";
      if (isMember && names.has(json.slice(at, end))) opaqueEnd = endOfValue(json, end + 1);
      at = end;
    } else if (char === "[" || char === "{") {
      const isList = char === "[";
      if (isList && at < opaqueEnd) at = replace(at, endOfValue(json, at), "[]");
      else if (outer && opening === "[" && (isList || (objects += 1) > JSON_MEMBERS_MAX)) {
        outer.isNull = true;
        at = endOfValue(json, at);
      } else {
        open.push({ start: at, isNull: false });
        at += 1;
      }
    } else {
      const closed = char === "]" || char === "}" ? open.pop() : undefined;
      at += 1;
      if (closed?.isNull === true) replace(closed.start, at, "[null]");
    }
  }
  let [text, copied] = ["", 0];
  for (const { from, to, by } of edits) {
    text += json.slice(copied, from) + by;
    copied = to;
  }
  return text + json.slice(copied);
}

const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

const WHITE_SPACE = new Set([0x20, 0x0a, 0x0d, 0x09]);

/**
 * Copies JSON without its white space, in runs as long as possible. Of duplicate names the last value is kept, as by the
 * parser: the target must not read another value than the approver saw. A reviver took 220 ms for 1 MB of numbers; this
 * takes 6. Methods read from the cursor on, and throw `SyntaxError` if they find something other than their name says.
 */
class Compactor {
  readonly #text: string;
  #at = 0;
  /** The text before this position is in `#runs`. */
  #copied = 0;
  #runs: string[] = [];
  /** A name was given twice, or with escapes, so objects can't be copied as they are written. */
  #hasOddNames = false;
  #rebuilds = false;

  constructor(text: string) {
    this.#text = text;
  }

  wholeText(): string {
    const compact = this.value();
    this.#skipSpace();
    if (this.#at < this.#text.length) throw invalid();
    return compact;
  }

  value(): string {
    const start = this.#at;
    this.#hasOddNames = false;
    const compact = this.#compact();
    if (!this.#hasOddNames) return compact;
    // Start over, since a name may come a second time at the end.
    this.#at = start;
    this.#rebuilds = true;
    return this.#compact();
  }

  #compact(): string {
    const outer = this.#runs;
    this.#runs = [];
    this.#copied = this.#at;
    this.#skipSpace();
    this.#element();
    this.#copyTo(this.#at);
    const compact = this.#runs.join("");
    this.#runs = outer;
    return compact;
  }

  /** Copies a value as it is written. */
  copy(): string {
    return this.#text.slice(this.#at, endOfValue(this.#text, this.#at));
  }

  /** Moves to a member or element; if a name is duplicate, to the last one. False: there is none. */
  goTo(step: string | number): boolean {
    this.#skipSpace();
    const [open, close] = typeof step === "number" ? "[]" : "{}";
    if (this.#text[this.#at] !== open) return false;
    let found = -1;
    for (let place = 0; this.#hasNext(close, place === 0); place += 1) {
      const name = typeof step === "number" ? place : this.#name();
      this.#at = skipSpace(this.#text, this.#at);
      if (name === step) found = this.#at;
      this.#at = endOfValue(this.#text, this.#at);
    }
    if (found !== -1) this.#at = found;
    return found !== -1;
  }

  #element(): void {
    const first = this.#text[this.#at];
    if (first === '"') this.#string();
    else if (first === "[") this.#list();
    else if (first === "{") this.#object();
    else this.#scalar();
  }

  /** Nested lists continue the run, so that a long one is not copied element by element. */
  #list(): void {
    for (let isFirst = true; this.#hasNext("]", isFirst); isFirst = false) this.#element();
  }

  #object(): void {
    if (!this.#hasNext("}", true)) return;
    if (this.#rebuilds) return this.#rebuiltObject();
    const names = new Set<string>();
    do {
      const name = this.#name();
      if (names.has(name)) this.#hasOddNames = true;
      names.add(name);
      this.#skipSpace();
      this.#element();
    } while (this.#hasNext("}", false));
  }

  #rebuiltObject(): void {
    this.#copyTo(this.#at);
    const runs = this.#runs.length;
    const members = new Map<string, string>();
    do members.set(this.#name(), this.#compact());
    while (this.#hasNext("}", false));
    this.#runs.length = runs;
    this.#runs.push(`${Array.from(members, ([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`);
    this.#copied = this.#at;
  }

  /** Reads a bracket or comma. Returns whether a member or element follows. */
  #hasNext(close: string | undefined, isFirst: boolean): boolean {
    if (isFirst) this.#at += 1;
    this.#skipSpace();
    const next = this.#text[this.#at];
    if (next !== close && isFirst) return true;
    if (next !== close && next !== ",") throw invalid();
    this.#at += 1;
    this.#skipSpace();
    return next !== close;
  }

  /** Reads a name and its colon. The name is decoded, since `"a"` and `"\u0061"` are one name. */
  #name(): string {
    const start = this.#at;
    this.#take('"');
    const isPlain = this.#skipString();
    if (!isPlain) this.#hasOddNames = true;
    const name = isPlain
      ? this.#text.slice(start + 1, this.#at - 1)
      : String(JSON.parse(this.#text.slice(start, this.#at)));
    this.#skipSpace();
    this.#take(":");
    return name;
  }

  /** Skips the string whose quote was just read. False: it has escapes, or something that JSON doesn't allow. */
  #skipString(): boolean {
    const text = this.#text;
    let isPlain = true;
    for (let at = this.#at; at < text.length; at += 1) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        this.#at = at + 1;
        return isPlain;
      }
      if (code === BACKSLASH) at += 1;
      if (code === BACKSLASH || code < 0x20) isPlain = false;
    }
    throw invalid();
  }

  /** Copies a string without needless escapes, so that letters can't be hidden from people behind their codes. */
  #string(): void {
    const start = this.#at;
    this.#take('"');
    if (this.#skipString()) return;
    const written = this.#text.slice(start, this.#at);
    const value: unknown = JSON.parse(written);
    if (!written.includes("\\u")) return;
    this.#copyTo(start);
    this.#runs.push(JSON.stringify(value));
  }

  #scalar(): void {
    SCALAR.lastIndex = this.#at;
    if (!SCALAR.test(this.#text)) throw invalid();
    this.#at = SCALAR.lastIndex;
  }

  #take(sign: string | undefined): void {
    if (this.#text[this.#at] !== sign) throw invalid();
    this.#at += 1;
  }

  /** Drops white space, of the kinds that RFC 8259 allows. */
  #skipSpace(): void {
    const start = this.#at;
    if (this.#text.charCodeAt(start) > 0x20) return;
    while (WHITE_SPACE.has(this.#text.charCodeAt(this.#at))) this.#at += 1;
    if (this.#at > start) this.#copyTo(start);
  }

  /** Copies what is not yet copied up to `end`, and continues from the cursor. */
  #copyTo(end: number): void {
    if (end > this.#copied) this.#runs.push(this.#text.slice(this.#copied, end));
    this.#copied = this.#at;
  }
}

function invalid(): SyntaxError {
  return new SyntaxError("The text is not valid JSON.");
}

/**
 * Formats a JSON text with one member per line. Only white space changes: numbers and escapes stay as they are sent.
 * Linear in the text; the output is bounded, since deep nesting needs much white space.
 */
export function prettyPrint(json: string): string {
  if (json.length > PRETTY_JSON_CHARS_MAX) return json;
  const charsMax = Math.max(PRETTY_JSON_GROWN_CHARS_MAX, PRETTY_JSON_GROWTH_MAX * json.length);
  let text = "";
  let depth = 0;
  for (let at = skipSpace(json, 0); at < json.length && text.length <= charsMax;) {
    const isOpening = json[at] === "{" || json[at] === "[";
    const short = isOpening ? SHORT_LIST.exec(json.slice(at, at + SHORT_LIST_CHARS_MAX)) : null;
    const token = short?.[0] ?? json.slice(at, endOfToken(json, at));
    at = skipSpace(json, at + token.length);
    if (token === "}" || token === "]") depth -= 1;
    else if (isOpening && short === null) depth += 1;
    const newLine = `\n${"  ".repeat(depth)}`;
    if (token === "}" || token === "]") text += newLine;
    text += token === ":" ? ": " : token;
    if (token === "{" || token === "[" || token === ",") text += newLine;
  }
  return text.length <= charsMax ? text : json;
}

/** A list of plain values up to this length stays on one line. */
const SHORT_LIST_CHARS_MAX = 72;

/** An empty object, or a list without objects or lists inside. */
const SHORT_LIST = /^(?:\{\s*\}|\[(?:[^[\]{}"\n]|"(?:[^"\\]|\\.)*")*\])/;

/** The beginning of a text, with the mark, whose JSON text has at most so many bytes. It never ends within a character. */
export function beginning(text: string, bytesMax: number, mark = ""): string {
  let bytes = '""'.length + Buffer.byteLength(mark);
  let end = 0;
  for (const character of text) {
    bytes += PLAIN.test(character) ? 1 : Buffer.byteLength(JSON.stringify(character)) - '""'.length;
    if (bytes > bytesMax) break;
    end += character.length;
  }
  return text.slice(0, end) + mark;
}

/** Characters that are written in JSON as they are, in one byte. */
const PLAIN = /^[ !#-[\]-~]$/;
