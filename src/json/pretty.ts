const INDENT = "  ";

/**
 * A longer text is returned as it is: formatting would block the event loop (20 ms for a list of lists with one digit
 * each).
 */
const CHARS_MAX = 262_144;

/**
 * The formatted text may be this many times as long, or as long as `CHARS_GROWN_MAX`; otherwise it is returned as it
 * is.
 */
const GROWTH_MAX = 1.5;

const CHARS_GROWN_MAX = 65_536;

/** A list of plain values up to this length stays on one line. */
const LIST_CHARS_MAX = 72;

const [QUOTE, BACKSLASH, COLON, COMMA] = [0x22, 0x5c, 0x3a, 0x2c];

const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];

const SPACE = 0x20;

/** An empty object, or a list without objects or lists inside. */
const SHORT_LIST = /^(?:\{\s*\}|\[(?:[^[\]{}"\n]|"(?:[^"\\]|\\.)*")*\])/;

/**
 * Formats a JSON text with one member per line. Only white space changes: numbers and escapes stay as they are sent.
 * Linear in the text; the output is bounded, since deep nesting needs much white space.
 */
export function prettyPrint(json: string): string {
  if (json.length > CHARS_MAX) return json;
  const charsMax = Math.max(CHARS_GROWN_MAX, GROWTH_MAX * json.length);
  let text = "";
  let depth = 0;
  let at = skipSpace(json, 0);
  const newLine = () => `\n${INDENT.repeat(depth)}`;
  while (at < json.length && text.length <= charsMax) {
    const end = endOfToken(json, at);
    const token = json.slice(at, end);
    at = skipSpace(json, end);
    if (token === "{" || token === "[") depth += 1;
    if (token === "}" || token === "]") {
      depth -= 1;
      text += newLine() + token;
    } else text += token === ":" ? ": " : token;
    if (token === "{" || token === "[" || token === ",") text += newLine();
  }
  return text.length <= charsMax ? text : json;
}

/** End of the token or short list that begins here. */
function endOfToken(json: string, at: number): number {
  const code = json.charCodeAt(at);
  if (code === QUOTE) return endOfString(json, at);
  if (code === OPEN_OBJECT || code === OPEN_LIST) {
    return at + (SHORT_LIST.exec(json.slice(at, at + LIST_CHARS_MAX))?.[0].length ?? 1);
  }
  let end = at + 1;
  if (!isPunctuation(code)) while (end < json.length && !isPunctuation(json.charCodeAt(end))) end += 1;
  return end;
}

function endOfString(json: string, start: number): number {
  let end = json.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(json, end)) end = json.indexOf('"', end + 1);
  return end === -1 ? json.length : end + 1;
}

/** A quote after an odd number of backslashes is part of the string. */
function isEscaped(json: string, quote: number): boolean {
  let first = quote;
  while (json.charCodeAt(first - 1) === BACKSLASH) first -= 1;
  return (quote - first) % 2 === 1;
}

function isPunctuation(code: number): boolean {
  const isBracket = code === OPEN_OBJECT || code === OPEN_LIST || code === CLOSE_OBJECT || code === CLOSE_LIST;
  return isBracket || code === COLON || code === COMMA || code === QUOTE || code <= SPACE;
}

function skipSpace(json: string, start: number): number {
  let at = start;
  while (json.charCodeAt(at) <= SPACE) at += 1;
  return at;
}
