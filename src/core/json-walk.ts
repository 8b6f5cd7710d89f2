/**
 * The members of an object in their order, each value as text. The text is valid JSON without white space (`compactJson`). A
 * parser would move names that are numbers, and make values of a megabyte that is refused afterwards.
 */
export function* membersIn(json: string): Generator<readonly [name: string, text: string]> {
  for (let at = 1; json[at] === '"';) {
    const end = endOfString(json, at);
    const valueEnd = endOfValue(json, end + 1);
    yield [String(JSON.parse(json.slice(at, end))), json.slice(end + 1, valueEnd)];
    at = valueEnd + 1;
  }
}

/** The elements of a list, under the same terms. */
export function* elementsIn(json: string): Generator<string> {
  for (let at = 1; at < json.length && json[at] !== "]";) {
    const end = endOfValue(json, at);
    yield json.slice(at, end);
    at = end + 1;
  }
}

export function skipSpace(text: string, start: number): number {
  let at = start;
  while (text.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

/** Where all brackets are closed; it does not check that the kinds match. Ends of what is cut are the end of the text. */
export function endOfValue(text: string, start: number): number {
  if (!isOpening(text.charCodeAt(start))) return endOfToken(text, start);
  let depth = 0;
  for (let at = start; at < text.length;) {
    const code = text.charCodeAt(at);
    at = code === QUOTE ? endOfString(text, at) : at + 1;
    if (isOpening(code)) depth += 1;
    else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth -= 1;
    if (depth === 0) return at;
  }
  return text.length;
}

function isOpening(code: number): boolean {
  return code === OPEN_OBJECT || code === OPEN_LIST;
}

/** The end of a string, number or word, or of one other character. */
export function endOfToken(text: string, start: number): number {
  if (text[start] === '"') return endOfString(text, start);
  WORD.lastIndex = start;
  return WORD.test(text) ? WORD.lastIndex : start + 1;
}

const WORD = /[^{}[\]:,"\s]+/y;

/** The index after the closing quote. */
export function endOfString(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c];

const [OPEN_OBJECT, OPEN_LIST, CLOSE_OBJECT, CLOSE_LIST] = [0x7b, 0x5b, 0x7d, 0x5d];
