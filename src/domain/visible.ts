/**
 * What takes no place on a page, moves the text around it, or ends a line unseen: control, format and bidirectional
 * characters, tags, fillers, halves of surrogate pairs. Newline and tab are left to whoever shows lines.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]/u;
const EACH_UNSEEN = new RegExp(UNSEEN.source, "gu");

/** A stretch of text as it can be shown: as it is, or a character that could not be seen, by its code. */
export type VisiblePart = { readonly text: string } | { readonly code: string };

/** A text in parts, so that a page can mark the codes. `keepsLines`: newlines and tabs are text. */
export function visibleParts(text: string, { keepsLines = false } = {}): readonly VisiblePart[] {
  if (!UNSEEN.test(text)) return text === "" ? [] : [{ text }];
  const parts: VisiblePart[] = [];
  let shownTo = 0;
  for (const { 0: character, index } of text.matchAll(EACH_UNSEEN)) {
    if (keepsLines && (character === "\n" || character === "\t")) continue;
    if (index > shownTo) parts.push({ text: text.slice(shownTo, index) });
    parts.push({ code: codeOf(character) });
    shownTo = index + character.length;
  }
  if (shownTo < text.length) parts.push({ text: text.slice(shownTo) });
  return parts;
}

/** The same as one line of plain text, with a code as `<U+202E>`. */
export function visibleText(text: string): string {
  return visibleParts(text)
    .map((part) => ("text" in part ? part.text : `<${part.code}>`))
    .join("");
}

function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
