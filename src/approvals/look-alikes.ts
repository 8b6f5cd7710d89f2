import type { SeenAction } from "../receipts/seen-action.ts";
import { usedBodyMember, formPairs, isJsonMember } from "../core/body.ts";
import {
  LOOK_ALIKE_BODY_CHARS_MAX,
  LOOK_ALIKE_COLUMNS_MAX,
  LOOK_ALIKE_FIELDS_MAX,
  LOOK_ALIKE_VALUE_CHARS_MAX,
  LOOK_ALIKES_MIN,
} from "../core/limits.ts";
import { type RequesterTextName, requesterTexts, withoutTexts } from "../core/action.ts";
import { mayBeSentBefore } from "../core/changes.ts";
import { jsonLeaves } from "../core/json-tree.ts";
import { visibleText } from "../receipts/visible-text.ts";
import { utcMinute } from "./facts.ts";
import { mayBeId } from "../core/rejections.ts";

/** A held request as an approver sees it. */
export interface SeenRequest {
  /** Masked, with its URL as it is sent. */
  readonly action: SeenAction;
  readonly reason: string | null;
  /** The sentences about its risks. */
  readonly risks: readonly string[];
  /** It was rejected or asked for again before, so it is shown alone, never in a row with others. */
  readonly hasHistory: boolean;
}

/** Which part of a request a field is in. */
type FieldPlace = RequesterTextName | "expires" | "path" | "query" | "header" | "body";

interface Field {
  readonly place: FieldPlace;
  /** Untrusted. */
  readonly name: string;
  /** Untrusted. */
  readonly value: string;
}

/** A field in which requests that look alike differ. */
export interface DifferingField extends Pick<Field, "place" | "name"> {
  /** One value for each request, in their order. Untrusted. */
  readonly values: readonly string[];
}

/** A field of requests that look alike. */
export interface GroupField extends Pick<Field, "place" | "name"> {
  /** Untrusted; null: they differ in it. */
  readonly value: string | null;
}

/** One request, or several that look alike. */
export interface RequestGroup<Request extends SeenRequest> {
  /** In the order given; never empty. */
  readonly requests: readonly [Request, ...Request[]];
  /** Everything in which they differ except their age; empty for one request and for equal ones. */
  readonly differing: readonly DifferingField[];
  /** All fields, in the order of the request; null: there are too many, or it is too large. */
  readonly fields: readonly GroupField[] | null;
}

/**
 * Groups requests that look alike: of one key, with the same method, host, fields, risks, and path except for ids. All
 * differences are shown in full, so a group hides nothing; requests that differ in too much stay alone.
 */
export function groupAlike<Request extends SeenRequest>(
  requests: readonly Request[],
): readonly RequestGroup<Request>[] {
  const described = requests.map((request) => ({ request, described: describe(request) }));
  const byShape = Map.groupBy(described, ({ described: one }, at) => one?.shape ?? at);
  return [...byShape.values()].flatMap((some) => {
    const alone = some.map(({ request, described: one }): RequestGroup<Request> => ({
      requests: [request],
      differing: [],
      fields: one?.fields ?? null,
    }));
    const [first, ...others] = some.map(({ request }) => request);
    if (first === undefined || some.length < LOOK_ALIKES_MIN) return alone;
    const fields = some.map(({ described: one }) => one?.fields ?? []);
    const differing = differences(fields);
    if (differing.length > LOOK_ALIKE_COLUMNS_MAX || differing.some(looksEqual)) return alone;
    return [{ requests: [first, ...others], differing, fields: sharedIn(fields) }];
  });
}

/** Whether different values look the same in a table, since they differ only in white space or invisible characters. */
function looksEqual({ values }: DifferingField): boolean {
  const shown = values.map((value) => visibleText(value).normalize("NFC").replaceAll(/\s+/g, " ").trim());
  return new Set(shown).size < new Set(values).size;
}

interface Described {
  /** Equal for requests that look alike. */
  readonly shape: string;
  /** In the same order for all requests of one shape. */
  readonly fields: readonly Field[];
}

/** The shape and fields of a request. Null: it is too large to compare, or must be shown alone. */
function describe({ action, reason, risks, hasHistory }: SeenRequest): Described | null {
  const start = action.url.indexOf("//") + 2;
  const body = bodyFields(action);
  if (hasHistory || body === null || !action.url.startsWith(action.host, start)) return null;
  const rest = action.url.slice(start + action.host.length);
  const [path = "", ...afterPath] = rest.split("?");
  const query = afterPath.join("?");
  const { keyId, createdBy, method, host, callback, run, retries, onUnknown, extras, expiresAt } = action;
  const fields: readonly Field[] = [
    ...requesterTexts(action, reason).map(({ name, note, text }) => ({ place: name, name: note, value: text ?? "" })),
    { place: "expires", name: "", value: expiresAt === null ? "" : utcMinute(expiresAt) },
    ...path.split("/").map((value, at): Field => ({ place: "path", name: String(at), value })),
    ...named("query", queryPairs(query)),
    ...named("header", Object.entries(action.headers ?? {})),
    ...body,
  ];
  if (fields.length > LOOK_ALIKE_FIELDS_MAX) return null;
  if (fields.some(({ value }) => value.length > LOOK_ALIKE_VALUE_CHARS_MAX)) return null;
  const names = fields.map((field) => [field.place, field.name, fixedPart(field)]);
  // Tells `/a`, `/a?`, `/a?b` and `/a?b=` apart, whose fields look the same.
  const marks = [afterPath.length > 0, ...query.split("&").map((pair) => pair.includes("="))];
  const scheme = action.url.slice(0, start);
  const settings = [scheme, callback, run, mayBeSentBefore(action), retries, onUnknown, withoutTexts(extras)];
  return { shape: JSON.stringify([keyId, createdBy, method, host, settings, risks, marks, names]), fields };
}

/** What must be equal in requests that look alike: path segments that are no ids, and whether a title or expiry is given. */
function fixedPart({ place, value }: Field): string | boolean | null {
  if (place === "title" || place === "expires") return value !== "";
  return place === "path" && !mayBeId(value) ? value : null;
}

function named(place: FieldPlace, pairs: readonly (readonly [name: string, value: string])[]): readonly Field[] {
  return pairs.map(([name, value]) => ({ place, name, value }));
}

/** Pairs as they are written: two spellings of a value are two values. */
function queryPairs(query: string): readonly (readonly [name: string, value: string])[] {
  if (query === "") return [];
  return query.split("&").map((pair) => {
    const end = pair.includes("=") ? pair.indexOf("=") : pair.length;
    return [pair.slice(0, end), pair.slice(end + 1)];
  });
}

/** The fields of a body; null: it can't be compared. */
function bodyFields(action: SeenAction): readonly Field[] | null {
  const { body } = action;
  const member = usedBodyMember(action);
  if (body === null || member === null) return [];
  if (body.length > LOOK_ALIKE_BODY_CHARS_MAX || member === "base64") return null;
  if (member === "form") return named("body", formPairs(body));
  if (!isJsonMember(member)) return [{ place: "body", name: "", value: body }];
  const leaves = jsonLeaves(body, "", LOOK_ALIKE_FIELDS_MAX);
  return leaves?.map(({ path, text }) => ({ place: "body", name: path, value: text })) ?? null;
}

function differences(described: readonly (readonly Field[])[]): readonly DifferingField[] {
  const [first = []] = described;
  return first.flatMap(({ place, name }, at): DifferingField[] => {
    const values = described.map((fields) => fields[at]?.value ?? "");
    return new Set(values).size === 1 ? [] : [{ place, name, values }];
  });
}

/** The fields of several requests; the value is null where they differ. */
function sharedIn(described: readonly (readonly Field[])[]): readonly GroupField[] {
  const [first = []] = described;
  return first.map((field, at) => {
    const isShared = described.every((fields) => fields[at]?.value === field.value);
    return { ...field, value: isShared ? field.value : null };
  });
}

/** Whether a field is part of what is sent. The others are the requester's texts and the expiry. */
export function isSent({ place }: Pick<GroupField, "place">): boolean {
  return place === "path" || place === "query" || place === "header" || place === "body";
}

/**
 * The differing fields in the order in which a person reads them: of what is sent, first the one that tells the requests apart,
 * then an amount, then the others; the requester's texts come last.
 */
export function inReadingOrder(differing: readonly DifferingField[]): readonly DifferingField[] {
  const sent = differing.filter(isSent);
  const identifier = sent.find(({ name, place }) => place === "path" || isIdentifier(name));
  const distinct = sent.find(({ name, values }) => !AMOUNT.test(name) && new Set(values).size === values.length);
  const leading = [identifier ?? distinct, sent.find(({ name }) => AMOUNT.test(name))];
  return [...new Set([...leading, ...sent, ...differing])].filter((field) => field !== undefined);
}

/** A value that stands out from those of the other requests. */
interface Outlier {
  readonly field: DifferingField;
  /** Which request has it. */
  readonly at: number;
  /** Why it stands out, shown after the value: "highest, 470 times the median". */
  readonly why: string;
}

/**
 * The sent values that stand out: a number far from the median, what is no number among numbers, or one value where all other
 * requests share another.
 */
export function outliersIn(differing: readonly DifferingField[]): readonly Outlier[] {
  return differing.filter(isSent).flatMap((field) => {
    const isAmount = !isIdentifier(field.name) && field.place !== "path";
    const far = isAmount ? farFromOthers(field) : [];
    return far.length > 0 ? far : oddOneOut(field);
  });
}

function farFromOthers(field: DifferingField): readonly Outlier[] {
  const numbers = field.values.map(numberIn);
  const others = numbers.flatMap((number, at) => (number === null ? [{ field, at, why: "not a plain number" }] : []));
  if (others.length === 0) return farFromMedian(field, numbers.map(Number));
  return 2 * others.length < numbers.length ? others : [];
}

/** A number stands out from this many times the median on. */
const FAR_TIMES = 3;

function farFromMedian(field: DifferingField, numbers: readonly number[]): readonly Outlier[] {
  const sorted = numbers.toSorted((a, b) => a - b);
  const median = ((sorted[(sorted.length - 1) >> 1] ?? 0) + (sorted[sorted.length >> 1] ?? 0)) / 2;
  const [least = 0, most = 0] = [sorted[0], sorted.at(-1)];
  const outlier = (value: number, why: string): Outlier => ({ field, at: numbers.indexOf(value), why });
  return [
    ...(median > 0 && most >= FAR_TIMES * median ? [outlier(most, `highest, ${times(most / median)} the median`)] : []),
    ...(median > 0 && least < 0 ? [outlier(least, "lowest, below zero")] : []),
    ...(median > 0 && least > 0 && median >= FAR_TIMES * least
      ? [outlier(least, `lowest, the median is ${times(median / least)} as much`)]
      : []),
  ];
}

function times(ratio: number): string {
  return `${ratio < 10 ? Number(ratio.toFixed(1)) : Math.round(ratio).toLocaleString("en-GB")} times`;
}

function oddOneOut(field: DifferingField): readonly Outlier[] {
  const counts = Map.groupBy(field.values, (value) => value);
  const odd = [...counts.values()].find((same) => same.length === 1)?.[0];
  const other = [...counts.keys()].find((value) => value !== odd);
  if (counts.size !== 2 || odd === undefined || other === undefined || field.values.length < LOOK_ALIKES_MIN) return [];
  return [{ field, at: field.values.indexOf(odd), why: `only here; the others have ${other}` }];
}

/** The number in a value, which may be a JSON string; null: it is no number. */
function numberIn(value: string): number | null {
  const text = /^"(.*)"$/.exec(value)?.[1] ?? value;
  return NUMBER.test(text) ? Number(text) : null;
}

/** The smallest and the largest number of a field, as written. */
interface NumberRange {
  /** Untrusted. */
  readonly name: string;
  readonly least: string;
  readonly most: string;
}

/** The range to show for a group, of an amount if there is one. Null: no number in the bodies differs. */
export function numberRange(differing: readonly DifferingField[]): NumberRange | null {
  const ranges = differing.filter(({ place }) => place === "body").flatMap(rangeIn);
  const isAmount = ({ name }: NumberRange) => AMOUNT.test(name);
  return ranges.find(isAmount) ?? ranges.find(({ name }) => !isIdentifier(name)) ?? null;
}

const AMOUNT = /amount|total|price|sum|cost|quantity|value/i;

/** Whether a field names something: `order_id`, also without the underscore, but not `amount_paid` or `bid`. */
function isIdentifier(name: string): boolean {
  return /(?:^|[^a-z])id$|number$|code$|key$/i.test(name) || /[a-z\d]I[dD]$/.test(name);
}

/** A number, as JSON or in a field of a form: the requester may also write a large amount as `1e9`. */
const NUMBER = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i;

function rangeIn({ name, values }: DifferingField): readonly NumberRange[] {
  if (!values.every((value) => NUMBER.test(value))) return [];
  const sorted = values.toSorted((a, b) => Number(a) - Number(b));
  return [{ name, least: sorted[0] ?? "", most: sorted.at(-1) ?? "" }];
}

/** The words that all titles share, with "…" for the words in which they differ; null: they share none. */
export function commonTitle(titles: readonly (string | null)[]): string | null {
  const [first = [], ...others] = titles.map((title) => (title ?? "").split(" "));
  if (others.some(({ length }) => length !== first.length)) return null;
  const words = first.map((word, at) => (others.every((other) => other[at] === word) ? word : "…"));
  return words.every((word) => word === "…" || word === "") ? null : words.join(" ");
}
