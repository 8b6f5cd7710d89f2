/**
 * Characters that are invisible, reorder text or end a line: control, format and bidirectional characters, tags, fillers, lone
 * surrogates. Written without look-around, which took four times as long.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]+/gv;

const UNSEEN_IN_LINES = /[[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]--[\n\t]]+/gv;

/** Joiners and variation selectors, which stay after an emoji. */
const OF_EMOJI = /^\ufe0f?\u200d?$/;

const EMOJI = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier})$/u;

/** The rest of a longer run is shown as a count. */
const CODES_SHOWN_MAX = 8;

/** After this many runs, each becomes one replacement character: a megabyte of codes would block the event loop for 0.3 s. */
const RUNS_SHOWN_MAX = 4_000;

const REPLACEMENT = "\ufffd";

interface VisibleOptions {
  /** Formats a code; default: `<U+202E>`. */
  readonly mark?: (code: string) => string;
  /** Keeps newlines and tabs. */
  readonly keepsLines?: boolean;
}

/** Replaces each invisible character in a text by its code. */
export function visibleText(text: string, { mark = inAngles, keepsLines = false }: VisibleOptions = {}): string {
  let shown = "";
  let shownTo = 0;
  let runs = 0;
  const unseen = keepsLines ? UNSEEN_IN_LINES : UNSEEN;
  for (const { 0: run, index } of text.matchAll(unseen)) {
    if (isOfEmoji(run, text, index)) continue;
    shown += text.slice(shownTo, index) + codesOf(run, mark);
    shownTo = index + run.length;
    if ((runs += 1) === RUNS_SHOWN_MAX) return shown + text.slice(shownTo).replace(unseen, REPLACEMENT);
  }
  return shown + text.slice(shownTo);
}

/** Adds brackets so that no client makes a link of the text, which stays readable: `https[:]//evil[.]example`. */
export function withoutLinks(text: string): string {
  return text.replaceAll("://", "[:]//").replaceAll(DOT_OF_NAME, "[$&]");
}

/** The dots in host names, in all scripts. */
const DOT_OF_NAME = /[.\u3002\uff0e\uff61](?=\p{L})/gu;

/** Whether the text has invisible characters other than newlines and tabs. */
export function hasUnseen(text: string): boolean {
  for (const { 0: run, index } of text.matchAll(UNSEEN_IN_LINES)) if (!isOfEmoji(run, text, index)) return true;
  return false;
}

function isOfEmoji(run: string, text: string, at: number): boolean {
  return OF_EMOJI.test(run) && EMOJI.test(text.slice(Math.max(0, at - 2), at));
}

function codesOf(run: string, mark: (code: string) => string): string {
  if (run.length === 1) return mark(codeOf(run));
  // A character has two units at most.
  const shown = Array.from(run.slice(0, 2 * CODES_SHOWN_MAX)).slice(0, CODES_SHOWN_MAX);
  const rest = run.length - shown.join("").length;
  return shown.map((character) => mark(codeOf(character))).join("") + (rest === 0 ? "" : mark(`${rest} more`));
}

function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}

function inAngles(code: string): string {
  return `<${code}>`;
}
