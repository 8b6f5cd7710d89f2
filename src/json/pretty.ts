const INDENT = "  ";

/** A longer text is shown as it is: setting it out would hold the event loop (20 ms for so many lists of one figure). */
const CHARS_MAX = 262_144;

/** Set out, a text may be this many times as long, or as long as this; what would grow more is shown as it is. */
const GROWTH_MAX = 1.5;

const CHARS_GROWN_MAX = 65_536;

/** A list of plain values that is no longer stays on its line. */
const LIST_CHARS_MAX = 72;

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];

const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];

const SPACE = 0x20;

/** An empty object, or a list without objects and lists in it. */
const PIECE = /^(?:\{\s*\}|\[(?:[^[\]{}"\n]|"(?:[^"\\]|\\.)*")*\])/;

/**
 * A JSON text with a member a line. Only white space is changed: numbers and escapes stay as they are written, because
 * they are what is sent. Pure; linear in the text, and bounded: depth costs a lot of white space.
 */
export function prettyPrint(json: string): string {
  if (json.length > CHARS_MAX) return json;
  const charsMax = Math.max(CHARS_GROWN_MAX, GROWTH_MAX * json.length);
  let text = "";
  let depth = 0;
  let at = skipSpace(json, 0);
  const newLine = () => `\n${INDENT.repeat(depth)}`;
  while (at < json.length && text.length <= charsMax) {
    const end = endOfPiece(json, at);
    const piece = json.slice(at, end);
    at = skipSpace(json, end);
    if (piece === "{" || piece === "[") depth += 1;
    if (piece === "}" || piece === "]") {
      depth -= 1;
      text += newLine() + piece;
    } else text += piece === ":" ? ": " : piece;
    if (piece === "{" || piece === "[" || piece === ",") text += newLine();
  }
  return text.length <= charsMax ? text : json;
}

/** Behind the mark, string, number, name or short list that begins here. */
function endOfPiece(json: string, at: number): number {
  const code = json.charCodeAt(at);
  if (code === QUOTE) return endOfString(json, at);
  if (code === OPEN_OBJECT || code === OPEN_LIST) {
    return at + (PIECE.exec(json.slice(at, at + LIST_CHARS_MAX))?.[0].length ?? 1);
  }
  let end = at + 1;
  if (!isMark(code)) while (end < json.length && !isMark(json.charCodeAt(end))) end += 1;
  return end;
}

function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end === -1 ? json.length : end + 1;
}

/** A quote behind an odd number of backslashes belongs to its string. */
function isEscaped(json: string, quote: number): boolean {
  let first = quote;
  while (json.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (quote - first) % 2 === 1;
}

function isMark(code: number): boolean {
  const isBracket = code === OPEN_OBJECT || code === OPEN_LIST || code === CLOSE_OBJECT || code === CLOSE_LIST;
  return isBracket || code === COLON || code === COMMA || code === QUOTE || code <= SPACE;
}

function skipSpace(json: string, start: number): number {
  let at = start;
  while (json.charCodeAt(at) <= SPACE) at += 1;
  return at;
}
