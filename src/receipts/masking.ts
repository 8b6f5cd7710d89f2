import type { Viewer } from "../core/roles.ts";
import { BASE64_START, type FormPair } from "../core/body.ts";
import { jsonIn } from "../core/json.ts";
import { endOfString } from "../core/json-values.ts";
import { ECHO_CHARS_MIN, ECHOES_MAX } from "../core/limits.ts";
import { readHeaders } from "./response-headers.ts";
import { EditedText, isNamedMember, isNamingMember, isVisibleHeader, MASK, Masking, secretKind } from "./mask-rules.ts";
import { findSecrets } from "./find-secrets.ts";
import { hasMembers, maskMembers } from "./mask-members.ts";
import { maskCommand } from "./mask-commands.ts";
import { maskEntities, withoutEntities } from "./mask-encoded.ts";
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

/** Masks a target's stored answer like `maskJsonText`, but hides binary data entirely. */
export function maskResponseText(json: string, viewer: For): string {
  return json.startsWith(BASE64_START) ? `${BASE64_START}${MASK}"}` : maskJsonText(json, viewer);
}

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
    return [name, name === "location" ? maskUrl(text, viewer) : text];
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
  const repeated = secretsOf(headers ?? {}, more).filter((secret) => answer.includes(secret));
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
 * The values of headers with names of secrets, and their words, longest first, in all spellings in which targets repeat them:
 * as JSON, with `\/` for `/` as PHP does, in base64, in hex, and percent-encoded.
 */
function secretsOf(headers: Readonly<Record<string, string>>, more: readonly string[]): readonly string[] {
  const values = Object.entries(headers).flatMap(([name, value]) => (secretKind(name) === null ? [] : [value]));
  const all = new Set([...values.flatMap((value) => [value, ...value.split(WORDS)]), ...more]);
  const long = [...all].filter(({ length }) => length >= ECHO_CHARS_MIN);
  const sorted = long.toSorted((one, other) => other.length - one.length).slice(0, ECHOES_MAX);
  return sorted.flatMap((secret) => {
    const written = JSON.stringify(secret).slice(1, -1);
    const bytes = Buffer.from(secret);
    const base64 = bytes.toString("base64").replaceAll("=", "");
    const encoded = [base64, bytes.toString("base64url"), bytes.toString("hex"), encodeURIComponent(secret)];
    return [...new Set([written, written.replaceAll("/", String.raw`\/`), ...encoded])];
  });
}

const WORDS = /[\s;,=]+/;

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
  const columns = maskColumns(text, masking);
  const written = columns.includes("<") ? maskAttributes(maskElements(columns, masking), masking) : columns;
  const formatted = maskFormats(isQuoted ? maskMembers(written, masking, inner) : written, masking);
  // Quotes end a value only in texts with members; elsewhere they may be part of a secret.
  const named = maskTextPairs(maskCommand(formatted, masking), isQuoted, masking, inner);
  return maskEntities(named, isQuoted, inner);
}

/** A line with the names of at least two columns, separated by commas, semicolons or tabs. */
const COLUMNS =
  /^"?[\w\u0080-\uffff .-]{1,64}"?(?:([,;\t])"?[\w\u0080-\uffff .-]{1,64}"?)(?:\1"?[\w\u0080-\uffff .-]{1,64}"?){0,62}\r?$/;

const COLUMNS_CHARS_MAX = 4_096;

/** Masks table columns with the name of a secret, as in `email,password` and the lines below it (RFC 4180). */
function maskColumns(text: string, masking: Masking): string {
  const end = text.indexOf("\n");
  const sign = end === -1 || end > COLUMNS_CHARS_MAX ? undefined : COLUMNS.exec(text.slice(0, end))?.[1];
  if (sign === undefined) return text;
  const kinds = fieldsOf(text.slice(0, end), sign).map(({ value }) => secretKind(value));
  if (kinds.every((kind) => kind === null)) return text;
  const masked = new EditedText(text);
  for (let start = end + 1; start < text.length;) {
    const lineEnd = text.indexOf("\n", start);
    const stop = lineEnd === -1 ? text.length : lineEnd;
    const fields = fieldsOf(text.slice(start, stop), sign);
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
function fieldsOf(line: string, sign: string): readonly { readonly from: number; readonly value: string }[] {
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

/** The start of an XML element and the text in it. Each part ends at the next `<`, so that no text is read twice. */
const ELEMENT =
  /<(?:[A-Za-z_][\w.-]{0,127}:)?([A-Za-z_\u0080-\uffff][\w.\u0080-\uffff-]{0,127})(\s[^<>]*)?>(?:<!\[CDATA\[)?([^<]+)/g;

/** `<entry key="password">`, `<string name="api_key">`, `<textarea name=password>` */
const NAMED_ELEMENT = /\s(?:name|key|id)\s{0,8}=\s{0,8}(?:["']([^"'<>]{1,256})|([^\s"'<>]{1,256}))/i;

const CDATA_END = "]]>";

/** Masks XML elements with the name of a secret in any text, as in `<wsse:Password>…</wsse:Password>`. */
function maskElements(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  for (const { 0: whole, 1: name = "", 2: attributes = "", 3: content = "", index } of text.matchAll(ELEMENT)) {
    const [, quoted, bare = ""] = NAMED_ELEMENT.exec(attributes) ?? [];
    const kind = secretKind(name) ?? secretKind(withoutEntities(quoted ?? bare));
    if (kind === null) continue;
    const end = content.indexOf(CDATA_END);
    const value = (end === -1 ? content : content.slice(0, end)).trim();
    if (value === "" || !masking.hidesNamed(value)) continue;
    const start = index + whole.length - content.length + content.indexOf(value);
    masked.replace(start, start + value.length, masking.hide(value, kind));
  }
  return masked.toString();
}

/** An attribute that may hold what another one names. */
const VALUED = /[\s"'](?:value|val|content)\s{0,8}=/gi;

/** Masks values that another attribute of their element names as secret, in any order: `<input type=password value=…>`. */
function maskAttributes(text: string, masking: Masking): string {
  const masked = new EditedText(text);
  let next = 0;
  for (const { index } of text.matchAll(VALUED)) {
    const tag = index < next ? -1 : text.indexOf("<", Math.max(next, text.lastIndexOf("<", index)));
    if (tag === -1) continue;
    next = indexOrEnd(text, "<", tag + 1);
    const attributes = attributesIn(text.slice(tag, next));
    const kind = attributes.reduce((known: string | null, attribute) => known ?? kindMeantBy(attribute), null);
    for (const { name, start, value } of kind === null ? [] : attributes) {
      const shown = kind !== null && isNamedMember(name) ? masking.hideIn(value, kind) : value;
      if (shown !== value) masked.replace(tag + start, tag + start + value.length, shown);
    }
  }
  return masked.toString();
}

interface Attribute {
  readonly name: string;
  readonly value: string;
  /** Where the value begins. */
  readonly start: number;
}

/** The kind of secret that other attributes hold by this one; null: none. */
function kindMeantBy({ name, value }: Attribute): string | null {
  if (name === "type") return value.toLowerCase() === "password" ? "password" : null;
  const isNaming = isNamingMember(name) || name === "id" || name === "autocomplete";
  return isNaming ? secretKind(withoutEntities(value)) : null;
}

/** What quotes are around a value; JSON that is read without decoding escapes them. */
const ATTRIBUTE_QUOTES = ['"', "'", '\\"'];

/** The attributes of a start tag. One pass: a quote that is never closed is searched for once. */
function attributesIn(tag: string): readonly Attribute[] {
  const found: Attribute[] = [];
  let tagEnd = -1;
  for (let from = 0, sign = tag.indexOf("="); sign !== -1; sign = tag.indexOf("=", from)) {
    let nameEnd = sign;
    while (nameEnd > from && isSpace(tag, nameEnd - 1)) nameEnd -= 1;
    let nameStart = nameEnd;
    while (nameStart > from && !isSpace(tag, nameStart - 1) && !AROUND_NAME.has(tag.charAt(nameStart - 1)))
      nameStart -= 1;
    if (tagEnd < from) tagEnd = indexOrEnd(tag, ">", from);
    if (tagEnd < sign) break;
    let start = sign + 1;
    while (isSpace(tag, start)) start += 1;
    const quote = ATTRIBUTE_QUOTES.find((one) => tag.startsWith(one, start)) ?? "";
    const close = quote === "" ? -1 : tag.indexOf(quote, start + quote.length);
    if (close !== -1) start += quote.length;
    let end = close === -1 ? start : close;
    while (close === -1 && end < tag.length && !isSpace(tag, end) && tag[end] !== ">") end += 1;
    found.push({ name: tag.slice(nameStart, nameEnd).toLowerCase(), value: tag.slice(start, end), start });
    from = Math.max(end, sign + 1);
  }
  return found;
}

const AROUND_NAME: ReadonlySet<string> = new Set(['"', "'", "/"]);

function indexOrEnd(text: string, sign: string, from: number): number {
  const at = text.indexOf(sign, from);
  return at === -1 ? text.length : at;
}

function isSpace(text: string, at: number): boolean {
  return text.charCodeAt(at) <= 0x20;
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
