/** A JSON text without the white space between its parts. */
export interface CompactJson {
  /** A view of at most as many bytes as came in. */
  readonly bytes: Uint8Array;
  /** Where each outermost list begins and ends in `bytes`, brackets included: start, end, start, end … */
  readonly lists: readonly number[];
}

const [QUOTE, BACKSLASH, COLON, COMMA, MINUS, DOT, ZERO] = [0x22, 0x5c, 0x3a, 0x2c, 0x2d, 0x2e, 0x30];

const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];

const SPACE = 0x20;

const LOWER_CASE = 0x20;

const UNICODE = 0x75;

/** What may follow a backslash, except `u` and its four digits. */
const ESCAPED = new Set(Buffer.from('"\\/bfnrt'));

/** By first letter. */
const WORDS = new Map(["true", "false", "null"].map((word) => [word.charCodeAt(0), Buffer.from(word)]));

const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];

/**
 * Validates one JSON text (RFC 8259) and drops its white space, without parsing it into values: 340,000 empty lists are
 * a megabyte of text, but 25 MB and 35 ms as values. Null: it is not valid. It does not check that strings are UTF-8.
 * Bound the depth first (`scanJson`).
 */
export function compactJson(bytes: Uint8Array): CompactJson | null {
  return new Compactor(bytes).run();
}

class Compactor {
  readonly #bytes: Uint8Array;
  readonly #out: Uint8Array;
  readonly #lists: number[] = [];
  #at = 0;
  #end = 0;
  /** Lists that are open at the cursor. */
  #open = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#out = new Uint8Array(bytes.length);
  }

  run(): CompactJson | null {
    if (BYTE_ORDER_MARK.every((byte, at) => this.#bytes[at] === byte)) this.#at = BYTE_ORDER_MARK.length;
    this.#skipSpace();
    if (!this.#value()) return null;
    this.#skipSpace();
    if (this.#at < this.#bytes.length) return null;
    return { bytes: this.#out.subarray(0, this.#end), lists: this.#lists };
  }

  /** Each of these consumes what its name says from the cursor on, and returns whether it was there. */
  #value(): boolean {
    const byte = this.#bytes[this.#at];
    if (byte === QUOTE) return this.#string();
    if (byte === OPEN_OBJECT) return this.#several(CLOSE_OBJECT, () => this.#member());
    if (byte === OPEN_LIST) return this.#list();
    if (byte === MINUS || isDigit(byte)) return this.#number();
    return this.#word(WORDS.get(byte ?? 0));
  }

  #list(): boolean {
    if (this.#open === 0) this.#lists.push(this.#end);
    this.#open += 1;
    const isList = this.#several(CLOSE_LIST, () => this.#value());
    this.#open -= 1;
    if (this.#open === 0) this.#lists.push(this.#end);
    return isList;
  }

  /** Comma-separated items between brackets. */
  #several(close: number, one: () => boolean): boolean {
    this.#take();
    this.#skipSpace();
    if (this.#bytes[this.#at] === close) return this.#take();
    for (;;) {
      if (!one()) return false;
      this.#skipSpace();
      const byte = this.#bytes[this.#at];
      if (byte === close) return this.#take();
      if (byte !== COMMA) return false;
      this.#take();
      this.#skipSpace();
    }
  }

  #member(): boolean {
    if (this.#bytes[this.#at] !== QUOTE || !this.#string()) return false;
    this.#skipSpace();
    if (this.#bytes[this.#at] !== COLON) return false;
    this.#take();
    this.#skipSpace();
    return this.#value();
  }

  #string(): boolean {
    this.#take();
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined || byte < SPACE) return false;
      this.#take();
      if (byte === QUOTE) return true;
      if (byte === BACKSLASH && !this.#escaped()) return false;
    }
  }

  #escaped(): boolean {
    const byte = this.#bytes[this.#at];
    if (byte === UNICODE) {
      this.#take();
      for (let digit = 0; digit < 4; digit += 1) if (!isHexDigit(this.#bytes[this.#at]) || !this.#take()) return false;
      return true;
    }
    return byte !== undefined && ESCAPED.has(byte) && this.#take();
  }

  #number(): boolean {
    if (this.#bytes[this.#at] === MINUS) this.#take();
    const startsWithZero = this.#bytes[this.#at] === ZERO;
    const digits = this.#digits();
    if (digits === 0 || (startsWithZero && digits > 1)) return false;
    if (this.#bytes[this.#at] === DOT && this.#take() && this.#digits() === 0) return false;
    if (((this.#bytes[this.#at] ?? 0) | LOWER_CASE) !== 0x65) return true;
    this.#take();
    const sign = this.#bytes[this.#at];
    if (sign === MINUS || sign === 0x2b) this.#take();
    return this.#digits() > 0;
  }

  #digits(): number {
    const start = this.#at;
    while (isDigit(this.#bytes[this.#at])) this.#take();
    return this.#at - start;
  }

  #word(word: Uint8Array | undefined): boolean {
    if (word === undefined) return false;
    for (let at = 0; at < word.length; at += 1) if (this.#bytes[this.#at] !== word[at] || !this.#take()) return false;
    return true;
  }

  #skipSpace(): void {
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte !== SPACE && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) return;
      this.#at += 1;
    }
  }

  /** Copies one byte. Always true, so that it can be part of a condition. */
  #take(): true {
    this.#out[this.#end] = this.#bytes[this.#at] ?? 0;
    this.#end += 1;
    this.#at += 1;
    return true;
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= 0x39;
}

function isHexDigit(byte: number | undefined): boolean {
  if (byte === undefined) return false;
  const lower = byte | LOWER_CASE;
  return isDigit(byte) || (lower >= 0x61 && lower <= 0x66);
}
