import { setImmediate as nextTurn } from "node:timers/promises";
import { ECHO_MS_MAX, ECHO_PARTS_PER_TURN } from "../core/limits.ts";
import type { AnswerHead } from "../outbound/sender.ts";

/** Replaces a secret in an answer. It is a mask like any other, so it is not masked again. */
export const ECHO_MASK = "••••";

/** Whose answer is searched. */
export interface EchoLane {
  readonly accountId: string;
  /** Empty: no key. */
  readonly keyId: string;
}

interface WaitingText {
  readonly lane: EchoLane;
  readonly begin: () => void;
}

/**
 * Long texts are searched one at a time, since reading one takes many times its memory. Accounts take turns, and so do the keys of
 * each: a text may take a second, and a target may send many at once.
 */
class LongTexts {
  readonly #waiting = new Set<WaitingText>();
  /** The number of the last turn, by account and by key. */
  readonly #lastTurns = new Map<string, number>();
  #turns = 0;
  #isBusy = false;

  /** Waits for a turn. False: none came within `waitMs`. */
  async begin(lane: EchoLane, waitMs: number): Promise<boolean> {
    if (!this.#isBusy) {
      this.#isBusy = true;
      this.#count(lane);
      return true;
    }
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const text = { lane, begin: () => resolve(true) };
    this.#waiting.add(text);
    const timer = setTimeout(() => {
      this.#waiting.delete(text);
      resolve(false);
    }, waitMs);
    return promise.finally(() => clearTimeout(timer));
  }

  end(): void {
    let next: WaitingText | null = null;
    for (const text of this.#waiting) if (next === null || this.#isBefore(text.lane, next.lane)) next = text;
    if (next === null) {
      this.#lastTurns.clear();
      this.#isBusy = false;
      return;
    }
    this.#waiting.delete(next);
    this.#count(next.lane);
    next.begin();
  }

  #count(lane: EchoLane): void {
    this.#turns += 1;
    for (const name of laneNames(lane)) this.#lastTurns.set(name, this.#turns);
  }

  #isBefore(lane: EchoLane, other: EchoLane): boolean {
    const lastTurn = (name: string) => this.#lastTurns.get(name) ?? 0;
    const [account, key] = laneNames(lane);
    const [otherAccount, otherKey] = laneNames(other);
    return (
      lastTurn(account) < lastTurn(otherAccount) || (account === otherAccount && lastTurn(key) < lastTurn(otherKey))
    );
  }
}

function laneNames({ accountId, keyId }: EchoLane): readonly [account: string, key: string] {
  return [accountId, `${accountId} ${keyId}`];
}

const longTexts = new LongTexts();

/** Finds secrets in answers, in every form in which targets repeat what they were sent. */
export class Echo {
  readonly #needles: readonly Needle[];
  /** Whether the call itself has a secret. */
  readonly #isOfCall: boolean;
  /** How many characters at the end of a text may be the beginning of a needle. */
  readonly #startChars: number;
  count = 0;
  /** The same, of the other secrets too. */
  #hidden = 0;
  /** Parts read in this turn, for all texts together: an answer has many headers. */
  #partsInTurn = 0;
  readonly #lane: EchoLane;
  readonly #msMax: number;
  /** When the search of the answer ends, however much is left; null until it begins. */
  #endMs: number | null = null;

  /** `secrets`: the secret of the call, and header values made from it. `others`: what earlier calls may have brought to the host. */
  constructor(
    secrets: readonly string[],
    others: readonly string[] = [],
    lane: EchoLane = { accountId: "", keyId: "" },
    msMax: number = ECHO_MS_MAX,
  ) {
    this.#lane = lane;
    this.#msMax = msMax;
    const needles = [
      ...others.flatMap((other) => toNeedles(other, false)),
      ...secrets.flatMap((secret) => toNeedles(secret, true)),
    ];
    this.#isOfCall = secrets.length > 0;
    this.#needles = [...new Map(needles.map((needle) => [needle.text, needle])).values()];
    this.#startChars = Math.max(0, ...this.#needles.map(({ text }) => text.length));
  }

  /**
   * The text without secrets. `isCut`: the text was longer, so its end may be the beginning of a secret. Such an end is always
   * masked: otherwise, an agent that chooses where a text is cut could guess the secret letter by letter.
   */
  mask(text: string, isCut = false): string {
    const masking = this.#masking(text, isCut);
    for (;;) {
      const { done, value } = masking.next();
      if (done === true) return value;
    }
  }

  /**
   * The beginning of a text without secrets. Reads twice `charsMax` characters and no more, since a target may send a header of
   * hundreds of kilobytes. One that can't be searched in time is masked as a whole.
   */
  async maskStart(text: string, charsMax: number): Promise<string> {
    const read = 2 * charsMax;
    return (await this.#inTurns(this.#masking(text.slice(0, read), text.length > read))) ?? ECHO_MASK;
  }

  /**
   * A body as text without secrets. Null: it is compressed, in an encoding that can't be searched, or not searched in time, so it is
   * withheld. If the call
   * has no secret, bytes that are no text stay as they are, unless they hold one in ASCII, or were cut, so that they may end with the
   * beginning of one.
   */
  async maskBody(bytes: Uint8Array, isCut: boolean, head: AnswerHead): Promise<string | Uint8Array | null> {
    if (!isPlain(head)) return null;
    const text = plainText(bytes, isCut);
    if (text !== null) return this.#inTurns(this.#masking(text, isCut));
    if (this.#isOfCall || isCut) return null;
    const before = this.#hidden;
    // Without NUL, UTF-16 is ASCII, too.
    const read = await this.#inTurns(this.#masking(Buffer.from(bytes).toString("latin1").replaceAll("\0", ""), false));
    return read !== null && this.#hidden === before ? bytes : null;
  }

  /** Yields to other work, since a target may send a text that takes long to search. Null: its time is over. */
  async #inTurns(masking: Steps<string>): Promise<string | null> {
    this.#endMs ??= performance.now() + this.#msMax;
    let hasTurn = false;
    try {
      for (;;) {
        const { done, value } = masking.next();
        if (done === true) return value;
        this.#partsInTurn += value;
        if (this.#partsInTurn < ECHO_PARTS_PER_TURN) continue;
        this.#partsInTurn = 0;
        const leftMs = this.#endMs - performance.now();
        if (leftMs <= 0) return null;
        hasTurn ||= await longTexts.begin(this.#lane, leftMs);
        if (!hasTurn) return null;
        await nextTurn();
      }
    } finally {
      if (hasTurn) longTexts.end();
    }
  }

  *#masking(text: string, isCut: boolean): Steps<string> {
    let found: readonly Range[] = [];
    let ofCall: readonly Range[] = [];
    let shownTo = text.length;
    for (const view of findViews(text)) {
      if (typeof view === "number") {
        yield view;
        continue;
      }
      if (isCut) shownTo = Math.min(shownTo, sourceStart(view, this.#startIn(view.text)));
      const searched = lowerCase(view.text);
      for (const needle of this.#needles) {
        const ranges = yield* findRanges(view, searched, needle);
        // Merge at once: a text full of secrets has them in every view again.
        if (ranges.length > 0) found = merged([...found, ...ranges]);
        if (ranges.length > 0 && needle.isOfCall) ofCall = merged([...ofCall, ...ranges]);
        yield searched.length / CHARS_PER_PART;
      }
    }
    this.count += ofCall.length;
    this.#hidden += found.length;
    return masked(text, shownTo < text.length ? merged([...found, [shownTo, text.length]]) : found);
  }

  /** Where a needle may begin that continues after the end, perhaps with half an escape or a line break in between. */
  #startIn(text: string): number {
    return Math.max(0, text.trimEnd().length - this.#startChars - ESCAPE_CHARS_MAX);
  }
}

/** Work in steps. Each yields its size: how many parts of a text it has read. */
type Steps<Result> = Generator<number, Result, undefined>;

/** How many characters can be searched in the time of one part. */
const CHARS_PER_PART = 256;

type Range = readonly [start: number, end: number];

/** Sorts ranges and joins those that touch. */
function merged(ranges: readonly Range[]): readonly Range[] {
  const all: Range[] = [];
  for (const [start, end] of ranges.toSorted(([one], [other]) => one - other)) {
    const last = all.at(-1);
    if (last === undefined || start > last[1]) all.push([start, end]);
    else if (end > last[1]) all[all.length - 1] = [last[0], end];
  }
  return all;
}

function masked(text: string, ranges: readonly Range[]): string {
  let shown = "";
  let end = 0;
  for (const [start, to] of ranges) {
    shown += text.slice(end, start) + ECHO_MASK;
    end = to;
  }
  return shown + text.slice(end);
}

/** A text to look for, in lower case. `isLoose`: a base64 character on either side may also hold bits of the secret. */
interface Needle {
  readonly text: string;
  /** Whether it is of the call's own secret. */
  readonly isOfCall: boolean;
  readonly isLoose: boolean;
}

function toNeedles(secret: string, isOfCall: boolean): readonly Needle[] {
  const bytes = Buffer.from(secret);
  const plain = [
    secret,
    bytes.toString("latin1"),
    bytes.toString("hex"),
    // Spaces as in forms, and quotes as in SQL and CSV.
    secret.replaceAll(" ", "+"),
    secret.replaceAll("'", "''"),
    secret.replaceAll('"', '""'),
  ];
  const encoded = [0, 1, 2].flatMap((offset) => {
    const core = base64Core(bytes, offset);
    return [core, core.replaceAll("+", "-").replaceAll("/", "_")];
  });
  return [
    ...plain.map((text) => ({ text: lowerCase(text), isLoose: false, isOfCall })),
    ...encoded.map((text) => ({ text: lowerCase(text), isLoose: true, isOfCall })),
  ].filter(({ text }) => text.length >= NEEDLE_CHARS_MIN);
}

/** Shorter ones would be found in any text. */
const NEEDLE_CHARS_MIN = 4;

/** The part of a longer text's base64 that depends only on these bytes, which begin at `offset` in a group of three. */
function base64Core(bytes: Buffer, offset: number): string {
  const whole = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
  return whole.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
}

/** Lower case for ASCII only, since other letters may change their length. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** The length of a cut escape, such as `&#x0000000010ffff;`. */
const ESCAPE_CHARS_MAX = 18;

/** A text, or a view of another one with parts replaced. */
interface View {
  readonly text: string;
  readonly source: { readonly view: View; readonly replaced: readonly Replaced[] } | null;
}

/** A part of the source, and what it is in the view. */
interface Replaced {
  readonly at: number;
  readonly chars: number;
  readonly sourceAt: number;
  readonly sourceChars: number;
}

/** The text with its escapes decoded up to three times, and each of these with each form of bytes decoded. Numbers: see `Steps`. */
function* findViews(text: string): Iterable<View | number> {
  for (const view of unescaped({ text, source: null })) {
    yield view;
    if (typeof view === "number") continue;
    for (const form of FORMS) {
      const read = yield* replacedIn(view, form);
      if (read !== null) yield* unescaped(read);
    }
  }
}

/** The view, then the view with its escapes decoded once, twice and so on. */
function* unescaped(view: View): Iterable<View | number> {
  let read: View | null = view;
  for (let times = 0; read !== null; times += 1) {
    yield read;
    read = times === ESCAPED_TIMES_MAX ? null : yield* replacedIn(read, ESCAPES);
  }
}

const ESCAPED_TIMES_MAX = 3;

/** Finds the parts of a text in one encoding, in order, and what each decodes to. */
type Form = (text: string) => Iterable<readonly [at: number, chars: number, by: string]>;

function each(pattern: RegExp, replace: (found: string) => string): Form {
  return function* parts(text) {
    for (const { 0: found, index } of text.matchAll(pattern)) yield [index, found.length, replace(found)];
  };
}

/** Decodes words as base64 from this letter on, since encoded text may itself be encoded. */
function base64From(skipped: number): Form {
  return function* parts(text) {
    for (const { 0: word, index } of text.matchAll(BASE64_WORD)) {
      for (let at = skipped; at + 1 < word.length; at += BASE64_LETTERS) {
        const part = word.slice(at, at + BASE64_LETTERS);
        yield [index + at, part.length, Buffer.from(part, "base64").toString("latin1")];
      }
    }
  };
}

/** How many letters are decoded at once and masked as a whole: a multiple of four. */
const BASE64_LETTERS = 64;

/** Shorter words can't contain an encoded secret. */
const BASE64_WORD = /[\w+/-]{12,}/g;

const FORMS: readonly Form[] = [
  // Lines of base64, joined.
  each(/(?<=[\w+/=-])[ \t]*\r?\n[ \t]*(?=[\w+/=-])/g, () => ""),
  // Quoted-printable (RFC 2045, section 6.7).
  each(/=(?:[0-9a-f]{2}|\r?\n)/gi, (found) => toByte(found.slice(1), 16)),
  // A list of bytes, such as a Buffer in JSON.
  each(/(?<![\w.])\d{1,3}(?![\w.])(?:[\s,;]+(?=\d{1,3}(?![\w.])))?/g, (found) => toByte(found, 10)),
  // Hex with something between the bytes.
  each(/(?<!\w)(?:0x)?[0-9a-f]{2}(?!\w)(?:[\s,:;"'-]+(?=(?:0x)?[0-9a-f]{2}(?!\w)))?/gi, (found) =>
    found.replace(/^0x/i, "").slice(0, 2),
  ),
  ...[0, 1, 2, 3].map(base64From),
];

function toByte(digits: string, base: number): string {
  const code = Number.parseInt(digits, base);
  return code <= 0xff ? String.fromCharCode(code) : "";
}

/** HTML's names for ASCII signs. A Map, since an object has members such as `constructor`. */
const SIGNS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    amp: "&",
    apos: "'",
    ast: "*",
    bsol: "\\",
    colon: ":",
    comma: ",",
    commat: "@",
    diacriticalgrave: "`",
    dollar: "$",
    equals: "=",
    excl: "!",
    grave: "`",
    gt: ">",
    hat: "^",
    lbrace: "{",
    lbrack: "[",
    lcub: "{",
    lowbar: "_",
    lpar: "(",
    lsqb: "[",
    lt: "<",
    midast: "*",
    newline: "\n",
    num: "#",
    percnt: "%",
    period: ".",
    plus: "+",
    quest: "?",
    quot: '"',
    rbrace: "}",
    rbrack: "]",
    rcub: "}",
    rpar: ")",
    rsqb: "]",
    semi: ";",
    sol: "/",
    tab: "\t",
    underbar: "_",
    verbar: "|",
    vert: "|",
    verticalline: "|",
  }),
);

/** Escapes of URLs, JSON, programs, HTML and Markdown. `\U0000` comes before the shorter one. */
const ESCAPES = each(
  /%u[0-9a-f]{4}|%[0-9a-f]{2}|\\U0000[0-9a-f]{4}|\\u[0-9a-f]{4}|\\u\{[0-9a-f]{1,6}\}|\\x[0-9a-f]{2}|\\[0-3]?[0-7]{1,2}|\\[!-/:-@[-`{-~nrt]|&#x0{0,8}[0-9a-f]{1,6};?|&#0{0,8}\d{1,7};?|&[a-z]{2,16};/gi,
  unescapeChar,
);

const LETTERS: ReadonlyMap<string, string> = new Map([
  ["\\n", "\n"],
  ["\\r", "\r"],
  ["\\t", "\t"],
]);

function unescapeChar(escape: string): string {
  const lower = escape.toLowerCase();
  const named = LETTERS.get(lower) ?? SIGNS.get(lower.slice(1, -1));
  if (named !== undefined) return named;
  if (/^&[a-z]/.test(lower)) return escape;
  if (/^\\[^\w]$/.test(escape) || escape === "\\_") return escape.slice(1);
  const digits = escape.replace(/^(?:%u?|\\[ux]?\{?|&#x?)/i, "").replace(/[;}]$/, "");
  const code = Number.parseInt(digits, escapeBase(escape));
  return code > 0x10_ff_ff ? escape : String.fromCodePoint(code);
}

function escapeBase(escape: string): number {
  if (/^\\\d/.test(escape)) return 8;
  return /^&#\d/.test(escape) ? 10 : 16;
}

const PARTS_PER_STEP = 1_024;

/** The view with one encoding decoded; null: it has nothing in this encoding. */
function* replacedIn(view: View, form: Form): Steps<View | null> {
  const replaced: Replaced[] = [];
  let text = "";
  let end = 0;
  for (const [sourceAt, sourceChars, by] of form(view.text)) {
    text += view.text.slice(end, sourceAt);
    replaced.push({ at: text.length, chars: by.length, sourceAt, sourceChars });
    text += by;
    end = sourceAt + sourceChars;
    if (replaced.length % PARTS_PER_STEP === 0) yield PARTS_PER_STEP;
  }
  return replaced.length === 0 ? null : { text: text + view.text.slice(end), source: { view, replaced } };
}

/** Where a start in the view is in the original text; within a replaced part, the start of that part. */
function sourceStart({ source }: View, at: number): number {
  if (source === null) return at;
  const last = lastBefore(source.replaced, at + 1);
  if (last === undefined) return sourceStart(source.view, at);
  const behind = at - last.at - last.chars;
  return sourceStart(source.view, behind < 0 ? last.sourceAt : last.sourceAt + last.sourceChars + behind);
}

/** Where an end in the view is in the original text; within a replaced part, the end of that part. */
function sourceEnd({ source }: View, at: number): number {
  if (source === null) return at;
  const last = lastBefore(source.replaced, at);
  if (last === undefined) return sourceEnd(source.view, at);
  const behind = Math.max(0, at - last.at - last.chars);
  return sourceEnd(source.view, last.sourceAt + last.sourceChars + behind);
}

/** The last part that begins before this position in the view. */
function lastBefore(replaced: readonly Replaced[], place: number): Replaced | undefined {
  let [low, high] = [0, replaced.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((replaced[middle]?.at ?? place) < place) low = middle + 1;
    else high = middle;
  }
  return replaced[low - 1];
}

/** Where the original text has the needle that is in the view. `searched`: the view in lower case. */
function* findRanges(view: View, searched: string, needle: Needle): Steps<readonly Range[]> {
  const ranges: Range[] = [];
  for (let at = searched.indexOf(needle.text); at !== -1; at = searched.indexOf(needle.text, at + 1)) {
    ranges.push(rangeIn(view, at, at + needle.text.length, needle));
    if (ranges.length % PARTS_PER_STEP === 0) yield PARTS_PER_STEP;
  }
  return ranges;
}

/** The source of a part of a view, up to where the view's next character begins. */
function rangeIn(view: View, start: number, end: number, { isLoose }: Needle): Range {
  const isBase64 = (at: number) => isLoose && /[\w+/=-]/.test(view.text.charAt(at));
  const from = start > 0 && isBase64(start - 1) ? start - 1 : start;
  const to = end < view.text.length && isBase64(end) ? end + 1 : end;
  return [sourceStart(view, from), sourceEnd(view, to)];
}

/** Whether the body of this answer is whole and can be searched as text. */
function isPlain({ status, headers }: AnswerHead): boolean {
  // With ranges, which begin and end where the request says, an agent could read the secret a few letters at a time.
  const isRange = status === PARTIAL_CONTENT || headers.has("content-range");
  if (isRange || /^\s*multipart\/byteranges/i.test(headers.get("content-type") ?? "")) return false;
  const coding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  const charset = /charset\s*=\s*"?([^\s;"]*)/i.exec(headers.get("content-type") ?? "")?.[1]?.toLowerCase();
  return (coding === "" || coding === "identity") && (charset === undefined || READABLE.has(charset));
}

const PARTIAL_CONTENT = 206;

/** Charsets in which ASCII stays ASCII. */
const READABLE: ReadonlySet<string> = new Set([
  "",
  "utf-8",
  "utf8",
  "us-ascii",
  "ascii",
  "iso-8859-1",
  "latin1",
  "windows-1252",
]);

/** Decodes UTF-8; null: it isn't. UTF-16 would pass as UTF-8, with a NUL beside every letter. */
function plainText(bytes: Uint8Array, isCut: boolean): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
