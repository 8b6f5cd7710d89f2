/**
 * PostgreSQL's texts can't have U+0000. It is written as U+001A and "0", and U+001A itself, which is as rare, as U+001A
 * and "1": different texts stay different, and every text comes back as it was.
 */
const ESCAPE = "\u001a";

export function escapeText(text: string): string {
  if (!text.includes("\0") && !text.includes(ESCAPE)) return text;
  return text.replaceAll(ESCAPE, `${ESCAPE}1`).replaceAll("\0", `${ESCAPE}0`);
}

export function unescapeText(text: string): string {
  if (!text.includes(ESCAPE)) return text;
  return text.replaceAll(`${ESCAPE}0`, "\0").replaceAll(`${ESCAPE}1`, ESCAPE);
}
