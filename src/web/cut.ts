import { counted, number } from "./words.ts";

/** The beginning of a text, and how much of it is not shown. */
export interface CutText {
  readonly shown: string;
  /** Null: all of it is shown. "57 more lines (3,210 characters)" */
  readonly rest: string | null;
}

export interface CutLimits {
  readonly lines: number;
  readonly chars: number;
}

/** As much of a text as stands below each other without a window, and what is left of it in words. */
export function cutText(text: string, limits: CutLimits): CutText {
  let end = Math.min(text.length, limits.chars);
  for (let line = 0, at = -1; line < limits.lines; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at === -1 || at >= end) break;
    if (line === limits.lines - 1) end = at;
  }
  return cutAt(text, end);
}

/** The same of a text that is cut at a place. */
export function cutAt(text: string, end: number): CutText {
  if (end >= text.length) return { shown: text, rest: null };
  const isPair = /[\ud800-\udbff]/.test(text.charAt(end - 1));
  const shown = text.slice(0, isPair ? end - 1 : end);
  const left = text.slice(shown.length).replace(/^\n/, "");
  const lines = left.split("\n").length;
  const chars = `${number(left.length)} ${left.length === 1 ? "character" : "characters"}`;
  // A line that was cut within it goes on, and is no further one.
  const isWithin = text.charAt(shown.length) !== "\n";
  if (isWithin && lines === 1) return { shown, rest: `${chars} more` };
  return { shown, rest: `${counted(lines, "more line")} (${chars})` };
}
