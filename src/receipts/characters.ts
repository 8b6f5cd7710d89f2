/** What each character can mean around names and values: bits, by its code. */
export const [BLANK, LINE_END, QUOTE, DOUBLE, SEPARATOR, QUERY, AMPERSAND, PARAMETER_END, SIGN, SLASHES, LIST_SIGN] = [
  1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024,
];

export const [OPENS, CLOSES, NO_NAME, MARKUP] = [2_048, 4_096, 8_192, 16_384];

const MEANINGS = meanings();

function meanings(): Uint16Array {
  const table = new Uint16Array(128);
  table.fill(BLANK, 0, 0x21);
  const add = (chars: string, bits: number) => {
    for (const code of Buffer.from(chars)) table[code] = (table[code] ?? 0) | bits;
  };
  add("\n\r", LINE_END);
  add("\"'`", QUOTE);
  add('"', DOUBLE);
  add("=:", SEPARATOR);
  add("?#", QUERY);
  add("&", AMPERSAND);
  add("&#;", PARAMETER_END);
  add("&?#;=", SIGN);
  // Browsers read a backslash as a slash.
  add("/\\", SLASHES);
  add(",", LIST_SIGN);
  add("({[", OPENS);
  add(")}]", CLOSES);
  add("({", NO_NAME);
  add("<>\"'", MARKUP);
  return table;
}

/** Whether a character has one of these meanings. */
export function means(code: number, bits: number): boolean {
  return code < 128 && ((MEANINGS[code] ?? 0) & bits) !== 0;
}

/** What ends a word. */
export const WORD_END = SIGN | SLASHES | LIST_SIGN;

/** The codes of single characters. */
export const [TAB, SPACE, DOUBLE_QUOTE, PERCENT, PLUS, COMMA, SLASH] = [0x09, 0x20, 0x22, 0x25, 0x2b, 0x2c, 0x2f];

export const [COLON, SEMICOLON, EQUALS, GREATER, AT, BACKSLASH, BULLET] = [0x3a, 0x3b, 0x3d, 0x3e, 0x40, 0x5c, 0x2022];

/** The position of the next character with one of these meanings, or the end of the text. */
export function characterEnd(text: string, start: number, ends: number): number {
  let at = start;
  while (at < text.length && !means(text.charCodeAt(at), ends)) at += 1;
  return at;
}

/** Like `indexOf` of a string, but returns the end of the text if there is none. */
export function indexOrEnd(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at === -1 ? text.length : at;
}
