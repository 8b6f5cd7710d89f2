const COLORS = { red: 31, green: 32, yellow: 33, blue: 34, grey: 90, bold: 1 } as const;

export type Color = keyof typeof COLORS;

/** Colours text if a terminal reads it. */
export type Paint = (text: string, color: Color) => string;

interface TerminalOutput {
  readonly isTty: boolean;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Colours on a terminal, unless NO_COLOR is set (no-color.org). */
export function createPaint({ isTty, env }: TerminalOutput): Paint {
  const isColored = isTty && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  return (text, color) => (isColored && text !== "" ? `\u001b[${COLORS[color]}m${text}\u001b[0m` : text);
}

/** Characters that nobody sees; the variation selector of an emoji or a keycap stays behind it. */
const UNSEEN = String.raw`[\p{Cf}\p{Zl}\p{Zp}\p{Cs}\u2800\ufffc[\p{Default_Ignorable_Code_Point}--\ufe0f]]|(?<!\p{Extended_Pictographic}|[0-9#*](?=\ufe0f\u20e3))\ufe0f`;

/** Control, invisible and bidirectional characters, which can control a terminal or hide text. */
const UNSAFE = new RegExp(String.raw`\p{Cc}|${UNSEEN}`, "gv");

/** The same, but for line breaks. */
export const UNSAFE_IN_LINES = new RegExp(String.raw`[\p{Cc}--\n]|${UNSEEN}`, "gv");

/** Untrusted text for a terminal: unsafe characters are shown as codes. */
export function visible(text: string, keepsLines = false): string {
  return text.replaceAll(keepsLines ? UNSAFE_IN_LINES : UNSAFE, showCode);
}

function showCode(character: string): string {
  return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** Characters that a terminal shows in two columns: East Asian ones and emoji. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u;

const PLAIN = /^[ -~]*$/;

/** How many columns a text takes in a terminal, after `visible` and before it is coloured. */
export function columnCount(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let columns = 0;
  for (const character of text) columns += columnsOfOne(character);
  return columns;
}

/** The columns of one character; a combining mark takes none. */
function columnsOfOne(character: string): number {
  if (/\p{M}/u.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Cuts a text to a width. `mark` is at the end of a cut text. */
export function shortened(text: string, room: number, mark = "…"): string {
  if (columnCount(text) <= room) return text;
  const left = room - mark.length;
  let [kept, columns] = ["", 0];
  for (const character of text) {
    columns += columnsOfOne(character);
    if (columns > left) break;
    kept += character;
  }
  return kept + mark;
}

/** Pads a text with spaces to a width. */
export function padded(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - columnCount(text)));
}

/** The local time of day: `14:02:11`. */
export function clockTime(at: Date): string {
  return [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, "0")).join(":");
}
