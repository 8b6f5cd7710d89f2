/** In place of what an answer has of a secret. It is a mask like any other, so that nothing masks it again. */
export const ECHO_MASK = "••••";

/** What an answer may not show, found in every form in which targets write back what they were sent. */
export class Echo {
  readonly #needles: readonly Needle[];
  /** How much of the end of a text may be the beginning of a needle. */
  readonly #startChars: number;
  /** How many times it was found. */
  count = 0;

  /** `secrets`: the secret, and what was sent that holds it in a form of its own. */
  constructor(secrets: readonly string[]) {
    const needles = secrets.flatMap(needlesOf);
    this.#needles = [...new Map(needles.map((needle) => [needle.text, needle])).values()];
    this.#startChars = Math.max(0, ...this.#needles.map(({ text }) => text.length));
  }

  /**
   * A text without it. `isCut`: there was more of it, so that it may end in the beginning of the secret. Such an end is never
   * shown, whatever it is: were it masked only where it is that beginning, an agent that chooses the text and where it is cut
   * could guess the secret letter by letter.
   */
  mask(text: string, isCut = false): string {
    const ranges: Range[] = [];
    let shownTo = text.length;
    for (const view of viewsOf(text)) {
      if (isCut) shownTo = Math.min(shownTo, sourceOf(view, this.#startIn(view.text)));
      const searched = lowerCase(view.text);
      for (const needle of this.#needles) {
        for (let at = searched.indexOf(needle.text); at !== -1; at = searched.indexOf(needle.text, at + 1)) {
          ranges.push(rangeIn(view, at, at + needle.text.length, needle));
        }
      }
    }
    const found = merged(ranges);
    this.count += found.length;
    return masked(text, shownTo < text.length ? merged([...found, [shownTo, text.length]]) : found);
  }

  /**
   * A body as text without it; null: it can't be told whether it has it, so that it is withheld. Targets compress what they
   * send back, or write it in another encoding, in which no search finds it.
   */
  maskBody(bytes: Uint8Array, isCut: boolean, headers: Pick<Headers, "get" | "has">): string | null {
    const text = isPlain(headers) ? plainText(bytes, isCut) : null;
    return text === null ? null : this.mask(text, isCut);
  }

  /** Where the beginning of a needle may start that goes on behind the end, or behind half an escape or the end of a line there. */
  #startIn(text: string): number {
    return Math.max(0, text.trimEnd().length - this.#startChars - ESCAPE_CHARS_MAX);
  }
}

type Range = readonly [start: number, end: number];

/** In order, those that touch as one. */
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

/** A text to look for, in lower case. `isLoose`: a base64 character on either side of it may hold bits of the secret too. */
interface Needle {
  readonly text: string;
  readonly isLoose: boolean;
}

function needlesOf(secret: string): readonly Needle[] {
  const bytes = Buffer.from(secret);
  const plain = [secret, bytes.toString("latin1"), bytes.toString("hex")];
  const encoded = [0, 1, 2].flatMap((offset) => {
    const core = base64Core(bytes, offset);
    return [core, core.replaceAll("+", "-").replaceAll("/", "_")];
  });
  return [
    ...plain.map((text) => ({ text: lowerCase(text), isLoose: false })),
    ...encoded.map((text) => ({ text: lowerCase(text), isLoose: true })),
  ].filter(({ text }) => text.length >= NEEDLE_CHARS_MIN);
}

/** Shorter ones would be found in any text. */
const NEEDLE_CHARS_MIN = 4;

/** What of the base64 of a longer text depends on these bytes alone, which begin at this place of a group of three. */
function base64Core(bytes: Buffer, offset: number): string {
  const whole = Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64");
  return whole.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
}

/** ASCII only: other letters may change their length. */
function lowerCase(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

/** Of half an escape, as of `&#x10ffff;`. */
const ESCAPE_CHARS_MAX = 10;

/** A text with its escapes read, and where each piece of it comes from. */
interface View {
  readonly text: string;
  /** Where pieces begin in the view and in the source, in order. Within a piece both go on alike, up to the next one. */
  readonly pieces: readonly (readonly [at: number, source: number])[];
  readonly sourceLength: number;
}

/** The text as it is, with its escapes read once, twice and three times, and each with lines of base64 joined. */
function viewsOf(text: string): readonly View[] {
  const views: View[] = [{ text, pieces: [[0, 0]], sourceLength: text.length }];
  for (let times = 0; times < ESCAPED_TIMES_MAX; times += 1) {
    const before = views.at(-1);
    const read = before === undefined ? null : replacedIn(before, ESCAPE, charOf);
    if (read === null) break;
    views.push(read);
  }
  return views.flatMap((view) => {
    const joined = replacedIn(view, LINE_END, () => "");
    return joined === null ? [view] : [view, joined];
  });
}

const ESCAPED_TIMES_MAX = 3;

const LINE_END = /(?<=[\w+/=-])[ \t]*\r?\n[ \t]*(?=[\w+/=-])/g;

const ESCAPE =
  /%[0-9a-f]{2}|\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|\\[/"\\]|\\[nrt]|&#x[0-9a-f]{1,6};|&#\d{1,7};|&(?:amp|lt|gt|quot|apos);/gi;

const NAMED: Readonly<Record<string, string>> = {
  "&amp;": "&",
  "&lt;": "<",
  "&gt;": ">",
  "&quot;": '"',
  "&apos;": "'",
  "\\n": "\n",
  "\\r": "\r",
  "\\t": "\t",
};

function charOf(escape: string): string {
  const named = NAMED[escape.toLowerCase()];
  if (named !== undefined) return named;
  if (/^\\[/"\\]$/.test(escape)) return escape.slice(1);
  const digits = escape.replace(/^(?:%|\\[ux]|&#x?)/i, "").replace(/;$/, "");
  const isDecimal = /^&#\d/.test(escape);
  const code = Number.parseInt(digits, isDecimal ? 10 : 16);
  return code > 0x10_ff_ff ? escape : String.fromCodePoint(code);
}

/** The view with what a pattern finds replaced; null: it finds nothing. */
function replacedIn(view: View, pattern: RegExp, replace: (found: string) => string): View | null {
  const pieces: (readonly [number, number])[] = [[0, sourceOf(view, 0)]];
  let text = "";
  let end = 0;
  for (const { 0: found, index } of view.text.matchAll(pattern)) {
    copyPieces(pieces, view, end, index, text.length);
    text += view.text.slice(end, index);
    pieces.push([text.length, sourceOf(view, index)]);
    text += replace(found);
    end = index + found.length;
    pieces.push([text.length, sourceOf(view, end)]);
  }
  if (end === 0) return null;
  copyPieces(pieces, view, end, view.text.length, text.length);
  return { text: text + view.text.slice(end), pieces, sourceLength: view.sourceLength };
}

/** The pieces of a part of the view that goes on in another one at this place. */
function copyPieces(into: (readonly [number, number])[], view: View, from: number, to: number, at: number): void {
  for (let n = pieceAt(view, from) + 1; n < view.pieces.length; n += 1) {
    const [start = 0, source = 0] = view.pieces[n] ?? [];
    if (start >= to) return;
    into.push([at + start - from, source]);
  }
}

/** The last piece that begins at this place of the view or before it. */
function pieceAt({ pieces }: View, at: number): number {
  let [low, high] = [0, pieces.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((pieces[middle]?.[0] ?? 0) <= at) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Where a place of the view lies in the source. */
function sourceOf(view: View, at: number): number {
  const [start = 0, source = 0] = view.pieces[pieceAt(view, at)] ?? [];
  return Math.min(view.sourceLength, source + at - start);
}

/** The part of the source that a part of a view comes from: up to where the next character of the view begins. */
function rangeIn(view: View, start: number, end: number, { isLoose }: Needle): Range {
  const isBase64 = (at: number) => isLoose && /[\w+/=-]/.test(view.text.charAt(at));
  const from = start > 0 && isBase64(start - 1) ? start - 1 : start;
  const to = end < view.text.length && isBase64(end) ? end + 1 : end;
  return [sourceOf(view, from), to >= view.text.length ? view.sourceLength : sourceOf(view, to)];
}

/** Whether a body is said to be text that a search can read, from its beginning. */
function isPlain(headers: Pick<Headers, "get" | "has">): boolean {
  // A range begins and ends wherever the request says: an agent would read the secret a few letters at a time.
  if (headers.has("content-range") || /^\s*multipart\/byteranges/i.test(headers.get("content-type") ?? ""))
    return false;
  const coding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  const charset = /charset\s*=\s*"?([^\s;"]*)/i.exec(headers.get("content-type") ?? "")?.[1]?.toLowerCase();
  return (coding === "" || coding === "identity") && (charset === undefined || READABLE.has(charset));
}

/** Those in which ASCII is ASCII. */
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

/** Null: it is no UTF-8. UTF-16 would be, with a NUL beside every letter. */
function plainText(bytes: Uint8Array, isCut: boolean): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes, { stream: isCut });
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}
