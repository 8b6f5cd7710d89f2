import { JSON_DEPTH_MAX, JSON_MEMBERS_MAX } from "../config/limits.ts";

/** The result of a scan before parsing. `exact`: some number may change when it is parsed and printed. */
export type JsonScan = "too_deep" | "too_many_members" | "plain" | "exact";

const QUOTE = 0x22;

const BACKSLASH = 0x5c;

const COLON = 0x3a;

const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];

/** Any number with so many digits is exact as a double. */
const SAFE_DIGITS = 15;

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
      at = endOfString(bytes, at);
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
    if (!isDigit(byte)) digits = byte === 0x2d && isZero(bytes[at + 1]) ? 1 + SAFE_DIGITS : 0;
  }
  return exact ? "exact" : "plain";
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

/** `.`, `e` and `E`: parsing loses how 1.0 and 1e2 are written. */
function isFractional(byte: number | undefined): boolean {
  return byte === 0x2e || byte === 0x65 || byte === 0x45;
}

/** After a minus: -0 would come back as 0. */
function isZero(byte: number | undefined): boolean {
  return byte === 0x30;
}

function endOfString(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== QUOTE) at += bytes[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Parses so that `JSON.stringify` prints every number as it was written. */
export function parseExactly(text: string): unknown {
  return JSON.parse(text, (_name: string, value: unknown, context?: { source?: string }) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined && String(value) !== source
      ? JSON_RAW.rawJSON(source)
      : value;
  });
}

/** Supported by all our runtimes, but not yet in the types. */
const JSON_RAW = JSON as typeof JSON & { rawJSON(text: string): object };

/** Whether text can be stored and shown: no NUL and no lone surrogate (libSQL breaks on both). */
export function isStorableText(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

/** A parsed JSON text and the result of its scan. */
export interface ParsedJson {
  readonly value: unknown;
  readonly text: string;
  readonly scan: Extract<JsonScan, "plain" | "exact">;
}

/**
 * The compact text of one member of a JSON object, with each number as it was written: parsed and printed,
 * 12345678901234567890 and 1.0 would change. Without such numbers, printing is faster.
 */
export function memberText(json: ParsedJson, name: string): string {
  return textAt(json, [name]);
}

/** The same for a nested value; the path has names of members and indexes of lists. `null` when there is none. */
export function textAt(json: ParsedJson, path: readonly (string | number)[]): string {
  if (json.scan === "plain") return JSON.stringify(path.reduce(memberOf, json.value) ?? null);
  const copier = new Copier(json.text);
  return path.every((step) => copier.goTo(step)) ? copier.value() : "null";
}

function memberOf(value: unknown, step: string | number): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, step)?.value : undefined;
}

const [QUOTE_CODE, BACKSLASH_CODE, COMMA] = [0x22, 0x5c, 0x2c];

const SPACE = 0x20;

/**
 * Copies a valid JSON text without its white space. Of duplicate names the last value is kept, as by the parser: the
 * target must not read another value than the approver saw. A reviver took 220 ms for 1 MB of numbers; this takes 15.
 */
class Copier {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Members of the object at the cursor, by name, as compact texts. */
  #members(): Map<string, string> {
    const members = new Map<string, string>();
    this.#skipSpace();
    this.#at += 1;
    for (this.#skipSpace(); this.#code() !== CLOSE_OBJECT; this.#skipSpace()) {
      if (this.#code() === COMMA) {
        this.#at += 1;
        this.#skipSpace();
      }
      const name = this.#string();
      this.#skipSpace();
      this.#at += 1;
      members.set(nameOf(name), this.value());
    }
    this.#at += 1;
    return members;
  }

  /** Moves the cursor to a member or element; of duplicate names the last. False: there is none. */
  goTo(step: string | number): boolean {
    this.#skipSpace();
    if (this.#code() !== (typeof step === "number" ? OPEN_LIST : OPEN_OBJECT)) return false;
    this.#at += 1;
    let found = -1;
    for (let place = 0; this.#isInside(); place += 1) {
      const name = typeof step === "number" ? place : nameOf(this.#string());
      this.#skipColon();
      if (name === step) found = this.#at;
      this.#skipValue();
    }
    if (found !== -1) this.#at = found;
    return found !== -1;
  }

  /** Whether another member or element follows; the cursor is then on it. */
  #isInside(): boolean {
    this.#skipSpace();
    if (this.#code() === COMMA) this.#at += 1;
    this.#skipSpace();
    return this.#code() !== CLOSE_OBJECT && this.#code() !== CLOSE_LIST;
  }

  #skipColon(): void {
    this.#skipSpace();
    if (this.#code() === COLON) this.#at += 1;
    this.#skipSpace();
  }

  #skipValue(): void {
    let depth = 0;
    do {
      this.#skipSpace();
      const code = this.#code();
      if (code === QUOTE_CODE) this.#string();
      else if (isScalar(code) && code !== COLON && !isOpening(code)) while (isScalar(this.#code())) this.#at += 1;
      else {
        if (isOpening(code)) depth += 1;
        else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
        this.#at += 1;
      }
    } while (depth > 0);
  }

  value(): string {
    this.#skipSpace();
    const code = this.#code();
    if (code === QUOTE_CODE) return plainString(this.#string());
    if (code === OPEN_LIST) return this.#list();
    if (code === OPEN_OBJECT) return this.#object();
    const start = this.#at;
    while (isScalar(this.#code())) this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  #object(): string {
    const printed: string[] = [];
    for (const [name, value] of this.#members()) printed.push(`${JSON.stringify(name)}:${value}`);
    return `{${printed.join(",")}}`;
  }

  /** Copies nested lists too, so that a long one is copied in runs, not element by element. */
  #list(): string {
    const runs: string[] = [];
    let start = this.#at;
    let depth = 0;
    do {
      const code = this.#code();
      if (code === QUOTE_CODE) {
        const before = this.#at;
        const written = this.#string();
        if (written.includes("\\u")) {
          runs.push(this.#text.slice(start, before), plainString(written));
          start = this.#at;
        }
      }
      // The number of members is bounded, that of empty objects is not.
      else if (code === OPEN_OBJECT && this.#text.startsWith("{}", this.#at)) this.#at += 2;
      else if (code === OPEN_OBJECT || code <= SPACE) {
        runs.push(this.#text.slice(start, this.#at));
        if (code === OPEN_OBJECT) runs.push(this.#object());
        else this.#skipSpace();
        start = this.#at;
      } else {
        if (code === OPEN_LIST) depth += 1;
        else if (code === CLOSE_LIST) depth -= 1;
        this.#at += 1;
      }
    } while (depth > 0);
    runs.push(this.#text.slice(start, this.#at));
    return runs.join("");
  }

  /** The string at the cursor with its quotes. */
  #string(): string {
    const start = this.#at;
    for (this.#at += 1; this.#code() !== QUOTE_CODE; this.#at += 1) if (this.#code() === BACKSLASH_CODE) this.#at += 1;
    this.#at += 1;
    return this.#text.slice(start, this.#at);
  }

  #skipSpace(): void {
    while (this.#code() <= SPACE) this.#at += 1;
  }

  #code(): number {
    return this.#text.charCodeAt(this.#at);
  }
}

function isScalar(code: number): boolean {
  return code > SPACE && code !== COMMA && code !== CLOSE_OBJECT && code !== CLOSE_LIST;
}

function isOpening(code: number): boolean {
  return code === OPEN_LIST || code === OPEN_OBJECT;
}

/** A string without escapes that it does not need: what a person reads is not hidden behind codes of its letters. */
function plainString(quoted: string): string {
  return quoted.includes("\\u") ? JSON.stringify(JSON.parse(quoted)) : quoted;
}

/** Decodes escapes: `"a"` and `"\u0061"` are one name. */
function nameOf(quoted: string): string {
  const parsed: unknown = JSON.parse(quoted);
  return String(parsed);
}
