import type { Viewer } from "../core/roles.ts";
import { BASE64_START, type FormPair } from "../core/body.ts";
import { jsonIn } from "../core/json.ts";
import { endOfString } from "../core/json-values.ts";
import { CUT_SECRET_CHARS_MAX, ECHO_CHARS_MIN, ECHOES_MAX } from "../core/limits.ts";
import { CUT_SIGN, readHeaders } from "./response-headers.ts";
import { EditedText, endOfMask, isVisibleHeader, MASK, Masking, secretKind } from "./mask-rules.ts";
import { findSecrets } from "./find-secrets.ts";
import { hasMembers, maskMembers } from "./mask-members.ts";
import { maskCommand } from "./mask-commands.ts";
import { maskEntities } from "./mask-encoded.ts";
import { maskMarkup } from "./mask-markup.ts";
import { mayHoldPairs, maskTextPairs, maskUrlPairs } from "./mask-pairs.ts";

/**
 * Masks secrets in what is shown; stored and sent data never changes. Two rules: a value with the **format** of a secret is
 * hidden from everybody; a value with the **name** of a secret is hidden from the public, but from deciders only if it looks
 * generated, since they must see what they approve. Pure; never throws; linear in the text; masking twice changes nothing
 * more. With a `Masking` instead of a viewer, hidden values are counted.
 */
type For = Viewer | Masking;

/** Masks any text by format, and by names if it contains members or parameters. */
export function maskText(text: string, viewer: For): string {
  return maskNested(text, maskingFor(viewer), 0);
}

/** Masks a JSON text. The result is JSON, and everything except secrets keeps its spelling. */
export function maskJsonText(json: string, viewer: For): string {
  const masking = maskingFor(viewer);
  return maskMembers(json, masking, (text) => maskNested(text, masking, 1));
}

/** Masks a target's stored answer like `maskJsonText`, but hides binary data entirely. `isCut`: the answer was longer. */
export function maskResponseText(json: string, viewer: For, isCut = false): string {
  if (json.startsWith(BASE64_START)) return `${BASE64_START}${MASK}"}`;
  const masked = maskJsonText(json, viewer);
  // Whatever was cut is stored as a text.
  return isCut && masked.startsWith('"') ? JSON.stringify(withoutCutEnd(String(JSON.parse(masked)))) : masked;
}

/**
 * A masked text that was cut before, without its last word: that may be the beginning of a secret, which has neither the format
 * nor the end by which it would have been found.
 */
export function withoutCutEnd(masked: string): string {
  const mask = masked.lastIndexOf(MASK);
  const from = Math.max(mask === -1 ? 0 : endOfMask(masked, mask), masked.length - CUT_SECRET_CHARS_MAX);
  const end = masked.slice(from);
  let start = end.length;
  while (start > 0 && !WORD_ENDS.test(end.charAt(start - 1))) start -= 1;
  // From there on the end may begin within a character.
  return start === end.length ? masked : masked.slice(0, from + start).toWellFormed() + MASK;
}

/** What no usual token or password has in it, besides the signs that end a sentence where no spaces are written. */
const WORD_ENDS = /[\s"'<>;,&=\u3001-\u3011\uff01\uff0c\uff1a\uff1b\uff1f]/;

/** Masks a name and its value. `kind`: the kind of secret that the name means, or null. */
export function maskPair([name, value]: FormPair, kind: string | null, masking: Masking): FormPair {
  const maskParts = (text: string) => maskText(text, masking);
  return [maskParts(name), kind === null ? maskParts(value) : masking.hideNamed(value, kind, maskParts)];
}

/** Masks a form body, or an absolute or relative URL. Spaces are part of it. */
export function maskUrl(url: string, viewer: For): string {
  const masking = maskingFor(viewer);
  const inner = (nested: string) => maskNested(nested, masking, 1);
  const masked = maskFormats(hasMembers(url) ? maskMembers(url, masking, inner) : url, masking);
  return maskUrlPairs(masked, masking, inner);
}

/** Masks each header by its name. */
export function maskHeaders(headers: Readonly<Record<string, string>>, viewer: For): Readonly<Record<string, string>> {
  const masking = maskingFor(viewer);
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, maskHeader(name, value, masking)]));
}

/** Masks stored response headers. Values that may be secret are not stored; this finds secrets in the others. */
export function maskResponseHeaders(json: string, viewer: For): string {
  const masked = readHeaders(json).map(([name, value]) => {
    const text = maskText(value, viewer);
    const shown = name === "location" ? maskUrl(text, viewer) : text;
    return [name, value.endsWith(CUT_SIGN) ? withoutCutEnd(shown.slice(0, -CUT_SIGN.length)) : shown];
  });
  return JSON.stringify(masked);
}

/**
 * Hides in a target's answer, a JSON text, the secrets of the request's headers that it repeats, and `more` secrets: in texts
 * or as numbers.
 */
export function hideEchoes(
  answer: string,
  headers: Readonly<Record<string, string>> | null,
  more: readonly string[] = [],
): string {
  if (headers === null && more.length === 0) return answer;
  const repeated = headerSecrets(headers ?? {}, more).filter((secret) => answer.includes(secret));
  if (repeated.length === 0) return answer;
  const numbers = new Set(repeated.filter((secret) => /^\d+$/.test(secret)));
  const hideNumbers = (part: string) =>
    numbers.size === 0
      ? part
      : part.replaceAll(/(?<![\d.eE+-])\d+(?![\d.eE])/g, (digits) => (numbers.has(digits) ? `"${MASK}"` : digits));
  // A loop, since any pattern for texts with escapes takes 50 ms for a quarter of a megabyte of some characters.
  const parts: string[] = [];
  let end = 0;
  for (let at = answer.indexOf('"'); at !== -1; at = answer.indexOf('"', end)) {
    const textEnd = endOfString(answer, at);
    const text = answer.slice(at, textEnd);
    const hidden = repeated.reduce((left, secret) => left.replaceAll(secret, MASK), text);
    // A secret may begin within an escape, as `/` does within `\/`: of such a text nothing is left.
    const isText = hidden === text || jsonIn(hidden) !== undefined;
    parts.push(hideNumbers(answer.slice(end, at)), isText ? hidden : `"${MASK}"`);
    end = textEnd;
  }
  return parts.join("") + hideNumbers(answer.slice(end));
}

/**
 * The values of headers with names of secrets, their words, and the parts of `Basic` credentials, longest first, in all spellings
 * in which targets repeat them: as JSON, with `\/` for `/` as PHP does, in base64, in hex, and percent-encoded.
 */
function headerSecrets(headers: Readonly<Record<string, string>>, more: readonly string[]): readonly string[] {
  // Cookies come last: they may have more words than are searched for.
  const kinds = Object.entries(headers).map(([name, value]) => [secretKind(name), value] as const);
  const credentials = kinds.filter(([kind]) => kind !== null && kind !== "cookie");
  const cookies = kinds.filter(([kind]) => kind === "cookie");
  const spoken = (values: typeof kinds) =>
    values.flatMap(([, value]) => [value, ...value.split(WORDS), ...basicParts(value)]);
  const all = new Set([...spoken(credentials), ...more, ...spoken(cookies)]);
  const searched = [...all].filter(({ length }) => length >= ECHO_CHARS_MIN).slice(0, ECHOES_MAX);
  const sorted = searched.toSorted((one, other) => other.length - one.length);
  return sorted.flatMap((secret) => {
    const written = JSON.stringify(secret).slice(1, -1);
    const bytes = Buffer.from(secret);
    const base64 = bytes.toString("base64").replaceAll("=", "");
    const encoded = [base64, bytes.toString("base64url"), bytes.toString("hex"), encodeURIComponent(secret)];
    return [...new Set([written, written.replaceAll("/", String.raw`\/`), ...encoded])];
  });
}

const WORDS = /[\s;,=]+/;

/** What `Basic` credentials hold (RFC 7617): the user with the password, and the password alone. */
function basicParts(value: string): readonly string[] {
  const encoded = /^basic +([\w+/=-]+)$/i.exec(value.trim())?.[1];
  if (encoded === undefined) return [];
  const pair = Buffer.from(encoded, "base64").toString();
  return pair.includes(":") ? [pair, pair.slice(pair.indexOf(":") + 1)] : [];
}

function maskHeader(name: string, value: string, masking: Masking): string {
  if (isVisibleHeader(name)) return maskNested(value, masking, 0);
  const kind = secretKind(name) ?? "header";
  if (masking.viewer !== "decider") return value === "" ? value : masking.hide(value, kind);
  return masking.hideIn(maskNested(value, masking, 0), kind);
}

function maskingFor(viewer: For): Masking {
  return viewer instanceof Masking ? viewer : new Masking(viewer);
}

function maskNested(text: string, masking: Masking, depth: number): string {
  if (text.length < SECRET_CHARS_MIN) return text;
  const isQuoted = hasMembers(text);
  if (depth > NESTED_TEXTS_MAX) {
    // Don't hide it from deciders: an agent could hide a request from them by nesting it deep enough.
    const isHidden = masking.viewer === "public" && (isQuoted || mayHoldPairs(text));
    return isHidden ? masking.hide(text, "text") : maskFormats(text, masking);
  }
  // A shortcut for most names and many values: the rest takes three times as long.
  if (SHORT_WORD.test(text)) return text;
  const inner = (nested: string) => maskNested(nested, masking, depth + 1);
  const written = maskMarkup(maskColumns(text, masking), masking);
  const formatted = maskFormats(isQuoted ? maskMembers(written, masking, inner) : written, masking);
  // Quotes end a value only in texts with members; elsewhere they may be part of a secret.
  const named = maskTextPairs(maskCommand(formatted, masking), isQuoted, masking, inner);
  return maskEntities(named, isQuoted, inner);
}

/** The first column's name, and the sign behind it: a comma, a semicolon or a tab. */
const FIRST_COLUMN = /^"?[\w\u0080-\uffff .-]{1,64}"?([,;\t])/;

const COLUMN = /^[\w\u0080-\uffff .-]{1,64}$/;

/** Of a line with the names of columns, of which a table may have thousands. */
const COLUMNS_CHARS_MAX = 16_384;

/** Masks table columns with the name of a secret, as in `email,password` and the lines below it (RFC 4180). */
function maskColumns(text: string, masking: Masking): string {
  const end = text.indexOf("\n");
  const sign = end === -1 || end > COLUMNS_CHARS_MAX ? undefined : FIRST_COLUMN.exec(text)?.[1];
  if (sign === undefined) return text;
  const columns = splitFields(text.slice(0, end), sign);
  if (!columns.every(({ value }) => COLUMN.test(value))) return text;
  const kinds = columns.map(({ value }) => secretKind(value));
  if (kinds.every((kind) => kind === null)) return text;
  const masked = new EditedText(text);
  for (let start = end + 1; start < text.length;) {
    const lineEnd = text.indexOf("\n", start);
    const stop = lineEnd === -1 ? text.length : lineEnd;
    const fields = splitFields(text.slice(start, stop), sign);
    // A line with another number of fields is no row of the table.
    for (const [at, { from, value }] of fields.length === kinds.length ? fields.entries() : []) {
      const kind = kinds[at] ?? null;
      const shown = kind === null ? value : masking.hideNamed(value, kind, (whole) => whole);
      if (shown !== value) masked.replace(start + from, start + from + value.length, shown);
    }
    start = stop + 1;
  }
  return masked.toString();
}

/** The fields of a line without their quotes, and where each begins. */
function splitFields(line: string, sign: string): readonly { readonly from: number; readonly value: string }[] {
  const fields: { from: number; value: string }[] = [];
  for (let at = 0; at <= line.length;) {
    const isQuoted = line[at] === '"';
    let end = isQuoted ? line.indexOf('"', at + 1) : line.indexOf(sign, at);
    while (isQuoted && end !== -1 && line[end + 1] === '"') end = line.indexOf('"', end + 2);
    if (end === -1) end = line.length;
    const from = isQuoted ? at + 1 : at;
    fields.push({ from, value: line.slice(from, end).trimEnd() });
    const next = isQuoted ? line.indexOf(sign, end) : end;
    at = next === -1 ? line.length + 1 : next + 1;
  }
  return fields;
}

/** Up to this depth, nested texts (JSON in a string, a URL in a parameter) are checked by names. */
const NESTED_TEXTS_MAX = 4;

/** `a:b@`. Nothing shorter holds a secret. */
const SECRET_CHARS_MIN = 4;

/** A word that can be neither a pair of name and value nor, being shorter than every format, a secret. */
const SHORT_WORD = /^[\w.-]{1,13}$/;

/** Masks everything with the format of a secret, for every viewer. */
function maskFormats(text: string, masking: Masking): string {
  const found = findSecrets(text);
  if (found.length === 0) return text;
  const masked = new EditedText(text);
  let kept = 0;
  for (const { start, end, name } of found) {
    // Skip a secret inside the previous one; if it only overlaps, mask the rest of it.
    if (end <= kept) continue;
    const from = Math.max(start, kept);
    masked.replace(from, end, masking.hide(text.slice(from, end), name));
    kept = end;
  }
  return masked.toString();
}
