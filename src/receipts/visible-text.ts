/**
 * Characters that are invisible, reorder text or end a line: control, format and bidirectional characters, tags, fillers, lone
 * surrogates, and the sign for an object, which browsers don't draw. Written without look-around, which took four times as long.
 */
const UNSEEN = String.raw`[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800\ufffc]`;

/** As many accents on one letter need no more room than a line has (UTS 39, 5.4). More would be drawn over what stands above or below. */
const MARKS_MAX = 4;

/** Including vowel signs that stand beside the letter. No line is broken between them, so more would be drawn beyond its end. */
const MARKS_IN_ALL_MAX = 8;

/** Signs that stand beside their letter, which may be accents of their own in Thai and Lao (UAX 29). */
const BESIDE = String.raw`\p{Mc}\u0e33\u0eb3`;

const MARK = String.raw`[[\p{M}${BESIDE}]--\p{Default_Ignorable_Code_Point}]`;

/** What joins with its like into one syllable or letter, however many they are: the parts of Hangul's syllables, and signs before a letter. */
const JOINED = String.raw`[\u1100-\u115e\ua960-\ua97c]{5,}|[\u1161-\u11a7\ud7b0-\ud7c6]{5,}|[\u11a8-\u11ff\ud7cb-\ud7fb]{5,}|[\u0d4e\u{111c2}\u{111c3}\u{113d1}\u{1193f}\u{11941}\u{11a3a}\u{11a84}-\u{11a89}\u{11d46}\u{11f02}]{5,}`;

const PILED = `${MARK}{5,}|(?:${JOINED})${MARK}*`;

/** A quotation mark, in HTML too, or an escape of JSON: with an accent it would look like another sign. Or the start of a line. */
const BARE = String.raw`[\n\t"]|&quot;|\\(?:u[\da-fA-F]{4}|&quot;|["\\\/bfnrt])?`;

const AFTER_BARE = `(${BARE})${MARK}+`;

/** Runs of any of them. Accents behind a character that is shown by its code would be drawn over that. */
const CODED = new RegExp(`${UNSEEN}+${MARK}*|${PILED}|${AFTER_BARE}`, "gv");

const CODED_IN_LINES = new RegExp(`[${UNSEEN}--[\\n\\t]]+${MARK}*|${PILED}|${AFTER_BARE}`, "gv");

const UNSEEN_IN_LINES = new RegExp(`[${UNSEEN}--[\\n\\t]]+`, "gv");

const IS_PILED = new RegExp(`^(?:${PILED})`, "v");

const IS_BESIDE = new RegExp(`[${BESIDE}]`, "v");

/** Accents without a letter of their own, which would be drawn over ours. */
const LEADING = new RegExp(`^${MARK}+`, "v");

/** Joiners and variation selectors, which stay after an emoji. */
const OF_EMOJI = /^\ufe0f?\u200d?$/;

const EMOJI = /(?:\p{Extended_Pictographic}|\p{Emoji_Modifier})$/u;

/**
 * Joiners where the spelling of Persian and of languages of India needs them (RFC 5892, A.1 and A.2), and the signs of a keycap, which
 * stand out by its frame.
 */
const SPELLED =
  /^(?:[بپتٹثجچحخسشصضطظعغفقكکگلمنهھيیئ]\u200c[\p{Script=Arabic}&&\p{L}]|[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca][\u200c\u200d]\p{L}|[0-9#*]\ufe0f\u20e3)$/v;

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

/** Replaces by its code each invisible character in a text, and each accent that is beyond `MARKS_MAX` on one letter, or on none. */
export function visibleText(
  text: string,
  { mark = (code) => `<${code}>`, keepsLines = false }: VisibleOptions = {},
): string {
  const leading = LEADING.exec(text)?.[0] ?? "";
  let shown = leading === "" ? "" : shownCodes(leading, mark);
  let shownTo = leading.length;
  let runs = 0;
  const coded = keepsLines ? CODED_IN_LINES : CODED;
  for (const { 0: run, 1: bare = "", index } of text.matchAll(coded)) {
    if (index < shownTo || isVisible(run, text, index)) continue;
    const kept = IS_PILED.test(run) ? keptText(run) : bare;
    shown += text.slice(shownTo, index) + kept;
    if (kept.length < run.length) shown += shownCodes(run.slice(kept.length), mark);
    shownTo = index + run.length;
    if ((runs += 1) < RUNS_SHOWN_MAX) continue;
    return shown + text.slice(shownTo).replace(coded, `$1${REPLACEMENT}`);
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
  for (const { 0: run, index } of text.matchAll(UNSEEN_IN_LINES)) if (!isVisible(run, text, index)) return true;
  return false;
}

/** Whether a run changes what is seen around it, so that it needs no codes. */
function isVisible(run: string, text: string, at: number): boolean {
  if (OF_EMOJI.test(run) && EMOJI.test(text.slice(Math.max(0, at - 2), at))) return true;
  // To the end of the run: behind a keycap, accents would be drawn over what stands above or below.
  return at > 0 && SPELLED.test(text.slice(at - 1, at + Math.max(run.length, 2)));
}

/** The beginning of a run of marks that is shown as it is: most runs of a language to their end. */
function keptText(run: string): string {
  let kept = "";
  let piled = 0;
  for (const character of cutRun(run, MARKS_IN_ALL_MAX)) {
    if (!IS_BESIDE.test(character)) piled += 1;
    if (piled > MARKS_MAX) break;
    kept += character;
  }
  return kept;
}

function shownCodes(run: string, mark: (code: string) => string): string {
  if (run.length === 1) return mark(characterCode(run));
  const shown = cutRun(run, CODES_SHOWN_MAX);
  const rest = run.length - shown.length;
  const codes = Array.from(shown, (character) => mark(characterCode(character)));
  return codes.join("") + (rest === 0 ? "" : mark(`${rest} more`));
}

function cutRun(run: string, characters: number): string {
  // A character has two units at most.
  return Array.from(run.slice(0, 2 * characters))
    .slice(0, characters)
    .join("");
}

function characterCode(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
