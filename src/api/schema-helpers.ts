import Type, {
  type Static,
  type TSchema,
  type TObject,
  type TObjectOptions,
  type TProperties,
  type TString,
  type TStringOptions,
} from "typebox";
import {
  EMAIL_CHARS_MAX,
  KEY_CHARS_MAX,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
  NAME_CHARS_MAX,
  REASON_CHARS_MAX,
  URL_CHARS_MAX,
  JSON_MEMBERS_MAX,
} from "../core/limits.ts";
import { isStorableText } from "../core/json.ts";
import { Compile } from "typebox/compile";
import type { TLocalizedValidationError } from "typebox/error";
import Format from "typebox/format";
import { Settings } from "typebox/system";
import { DomainError, type Issue, invalidFields } from "../core/domain-error.ts";

/** Printable ASCII, for keys and names. */
const PRINTABLE = "^[ -~]*$";

/** A text with an example. `more`: further keywords. */
export const plainText = (description: string, example: string, more: TStringOptions = {}) =>
  Type.String({ description, examples: [example], ...more });

const printable = (maxLength: number, description: string, example: string) =>
  plainText(description, example, { minLength: 1, maxLength, pattern: PRINTABLE });

/** Keywords that only the API description shows: other code enforces them (`test/api/enforced.test.ts`). */
export const DESCRIBED_ONLY = "x-enforced";

export const describedOnly = (words: Readonly<Record<string, unknown>>) => ({ [DESCRIBED_ONLY]: words });

/** http or https, without white space and backslashes. */
const TARGET_URL = String.raw`^[Hh][Tt][Tt][Pp][Ss]?://[^\s\\]+$`;

/** Allows internationalised names, as people type them. */
const HOST = "^[^\\x00-\\x20/\\x7f-\\xa0]{1,260}$";

/** No control characters and no other line breaks. */
export const ONE_LINE = "^[^\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]*$";

/** A target's status, or a class such as `5xx`. */
export const RESPONSE_CODE = "^[1-5]([0-9][0-9]|xx)$";

/** Lower case and ASCII only, so that no two names look alike. */
export const CREDENTIAL_NAME = "^[a-z0-9][a-z0-9_.-]{0,62}$";

/** The word in front of a credential in its header. */
export const AUTH_SCHEME = "^[A-Za-z][A-Za-z0-9._-]{0,63}$";

export const BASIC_USERNAME = "^[^:\\x00-\\x1f\\x7f]*$";

export const TIME_OF_DAY = "^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$";

/** A metadata name (`METADATA_NAME_PATTERN`), alone or before a colon. */
export const METADATA_FILTER = "^[A-Za-z0-9_.-]{1,64}(:|$)";

/** The id of a key or a person. */
export const MAKER_ID = "^(?:key|per)_[A-Za-z0-9_-]{1,64}$";

/** Messages by pattern, instead of one that quotes the regular expression. */
const PATTERN_MESSAGES: ReadonlyMap<string, string> = new Map([
  [
    CREDENTIAL_NAME,
    "Must be 1 to 63 lower-case letters, digits and _ . or -, and begin with a letter or digit, like stripe-live.",
  ],
  [AUTH_SCHEME, "Must be one word that begins with a letter, like Token."],
  [BASIC_USERNAME, "May not have a colon or control characters."],
  [TIME_OF_DAY, "Must be a time of day from 00:00 to 24:00, like 09:30."],
  [METADATA_FILTER, "Must be a name of metadata, or name:value, like customer:4711."],
  [MAKER_ID, "Must be the id of a key or person: it begins with key_ or per_."],
  [PRINTABLE, "May hold only printable ASCII characters."],
  [ONE_LINE, "Must be one line without control characters."],
  [HOST, "Must be a host name, with or without a port."],
  [RESPONSE_CODE, "Must be a status such as 422, or a class of them such as 4xx."],
]);

const FORMAT_NAMES: ReadonlyMap<string, string> = new Map([
  ["email", "email address"],
  ["date-time", "date and time with a time zone, like 2026-03-04T12:00:00Z"],
]);

/** A filter by the host of a URL. */
export const hostSchema = (description: string) => plainText(description, "api.example.com", { pattern: HOST });

/** A key that callers choose: `dedupe`, `Idempotency-Key`. */
export const key = (description: string) => printable(KEY_CHARS_MAX, description, "order-4711");

/** A name that people choose, for example for a key. */
export const nameSchema = (description: string) => visible(printable(NAME_CHARS_MAX, description, "ci"));

export const emailSchema = (description: string) =>
  plainText(description, "ann@example.com", { format: "email", maxLength: EMAIL_CHARS_MAX });

/** Text without the characters that a database can't store. */
export const storable = (text: TString) =>
  Type.Refine(text, isStorableText, () => "Must be well-formed Unicode without NUL.");

/** Text by which people recognise something in a list. */
const visible = (text: TString) =>
  Type.Refine(
    text,
    (value) => value === "" || value.trim() !== "",
    () => "May not be only spaces.",
  );

/** Free text from people and agents: any well-formed Unicode without NUL. */
export const reason = (description: string) =>
  storable(
    plainText(`${description} Well-formed Unicode without NUL.`, "Agreed with Ann.", { maxLength: REASON_CHARS_MAX }),
  );

/** Free text of one line, not empty. */
export const line = (maxLength: number, description: string, example: string) =>
  storable(visible(plainText(description, example, { minLength: 1, maxLength, pattern: ONE_LINE })));

/** The run of an action; a manual retry begins the next one. */
export const run = (description: string) => Type.Integer({ minimum: 1, description, examples: [1] });

export const url = (description: string, example = "https://api.example.com/orders") =>
  plainText(description, example, { format: "uri" });

/** The URL of a target in a request. The format is not enough: `checkTarget` checks it. */
export const targetUrl = (description: string, example = "https://api.example.com/orders") =>
  plainText(description, example, {
    format: "uri",
    ...describedOnly({ maxLength: URL_CHARS_MAX, pattern: TARGET_URL }),
  });

export const choice = <const Value extends string>(
  values: readonly Value[],
  description: string,
  example: Value,
  more: { readonly title?: string; readonly default?: Value } = {},
  // `type` beside `enum`: clients that generate forms from a schema need it.
) => Type.Enum([...values], { type: "string", description, examples: [example], ...more });

/** A member or header with exactly one value. */
export const constant = <const Value extends string | number | boolean>(value: Value, description: string) =>
  Type.Literal(value, { description, examples: [value] });

export const yesNo = (description: string, example: boolean) => Type.Boolean({ description, examples: [example] });

/** A whole number from 0. */
export const quantity = (description: string, example: number) =>
  Type.Integer({ minimum: 0, description, examples: [example] });

export const integer = (
  minimum: number,
  maximum: number,
  description: string,
  example: number,
  more: { readonly default?: number } = {},
) => Type.Integer({ minimum, maximum, description, examples: [example], ...more });

/** A whole number from 1. */
export const positive = (description: string, example: number) =>
  Type.Integer({ minimum: 1, description, examples: [example] });

/** A text in a request: not empty, and at most so many characters. */
export const shortText = (maxLength: number, description: string, example: string) =>
  plainText(description, example, { minLength: 1, maxLength });

/** A list in a request: not empty, and at most so many items. */
export const shortList = <Item extends TSchema>(
  item: Item,
  maxItems: number,
  description: string,
  example: readonly Static<Item>[],
) => Type.Array(item, { minItems: 1, maxItems, description, examples: [[...example]] });

export const pageLimit = (description: string) =>
  integer(1, LIST_LIMIT_MAX, description, 50, { default: LIST_LIMIT_DEFAULT });

export const pageParameters = (cursorExample: string) => ({
  limit: Type.Optional(pageLimit("Most entries of a page.")),
  cursor: Type.Optional(plainText("The next_cursor of the page before.", cursorExample)),
});

/** An id with this prefix. With a title, it becomes a schema of its own in the API description. */
export const idSchema = (prefix: string, description: string, title?: string) =>
  plainText(description, `${prefix}_01kjwa5v00e7v8c9x2m4n6p8qr`, {
    ...(title !== undefined && { title }),
    pattern: `^${prefix}_[A-Za-z0-9_-]{1,64}$`,
  });

export const dateTime = (description: string) =>
  plainText(description, "2026-03-04T12:00:00.000Z", { format: "date-time" });

/** For responses, which always contain the field. */
export const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

/** An object in responses, with its name and sentence in the API description. */
export const answerObject = <Members extends TProperties>(title: string, description: string, members: Members) =>
  Type.Object(members, { title, description });

/** The body of a request. Refuses members that it does not name. */
export const requestObject = <Members extends TProperties>(
  title: string,
  description: string,
  members: Members,
  more: TObjectOptions = {},
) => Type.Object(members, { title, additionalProperties: false, description, ...more });

/** The parameters of a query, or part of a body. Refuses members that it does not name. */
export const closedObject = <Members extends TProperties>(members: Members) =>
  Type.Object(members, { additionalProperties: false });

/** An empty body. Refuses any member: a rotation that ignored an origin in the body would replace all secrets. */
export const NoBody = Type.Object(
  {},
  { additionalProperties: false, description: "Empty: path and query say everything." },
);

export const anyObject = (description: string, example: Readonly<Record<string, unknown>> = { order: 7 }) =>
  Type.Unsafe<Readonly<Record<string, unknown>>>({ type: "object", description, examples: [example] });

export const stringMap = (description: string, more: Readonly<Record<string, unknown>> = {}) =>
  // Not `Type.Record`: its pattern `^.*$` doesn't check names that contain a newline.
  Type.Unsafe<Readonly<Record<string, string>>>({
    type: "object",
    additionalProperties: { type: "string" },
    description,
    examples: [{ "X-Order": "7" }],
    ...more,
  });

const EMAIL = /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;

// Reports all errors at once: each member can have its own, and one more in its parent's summary.
Settings.Set({ maxErrors: 2 * JSON_MEMBERS_MAX });

// Accepts everything: `checkTarget` checks URLs, and typebox's own check refuses internationalised hosts.
Format.Set("uri", () => true);

Format.Set("uri-reference", () => true);

// Addresses as HTML forms define them. typebox's own check accepts control characters and takes 300 ms for a megabyte.
Format.Set("email", (text) => text.length <= EMAIL_CHARS_MAX && EMAIL.test(text));

/** A schema, compiled. */
export interface Check<T> {
  accepts(value: unknown): value is T;
  /** One issue for each wrong field; empty if the value is valid. Never converts or fills in values. */
  issues(value: unknown): readonly Issue[];
}

/** What a check accepts. */
export type Checked<Of> = Of extends Check<infer Value> ? Value : never;

/** A check by a schema. Compiles when first used, because compiling a hundred takes a tenth of a second. */
export function compile<S extends TSchema>(schema: S): Check<Static<S>> {
  let compiled: ReturnType<typeof Compile<S>> | null = null;
  const validatorOf = () => (compiled ??= Compile(schema));
  const known = knownOf(schema);
  return {
    accepts: (value): value is Static<S> => validatorOf().Check(value),
    issues(value) {
      const validator = validatorOf();
      if (validator.Check(value)) return [];
      const { unknown, rest } = split(value, known);
      const unknownIssues = unknown.map((field) => ({ field, message: UNKNOWN }));
      return onePerField([...validator.Errors(rest).flatMap(issuesOf), ...unknownIssues]);
    },
  };
}

const UNKNOWN = "Is unknown. Check its name, or leave it out.";

/** The member names of a closed object schema; null for any other schema. */
function knownOf(schema: object): ReadonlySet<string> | null {
  const isClosed = "additionalProperties" in schema && schema.additionalProperties === false;
  return isClosed && "properties" in schema && isJsonObject(schema.properties)
    ? new Set(Object.keys(schema.properties))
    : null;
}

/** Splits off unknown members: typebox reports each twice and takes 30 ms for ten thousand. */
function split(value: unknown, known: ReadonlySet<string> | null) {
  if (known === null || !isJsonObject(value)) return { unknown: [], rest: value };
  const members = Map.groupBy(Object.entries(value), ([name]) => known.has(name));
  return {
    unknown: (members.get(false) ?? []).map(([name]) => name),
    rest: Object.fromEntries(members.get(true) ?? []),
  };
}

/** The first issue of each field, since further ones repeat it in other words. */
export function onePerField(issues: readonly Issue[]): readonly Issue[] {
  const first = new Map<string, Issue>();
  for (const issue of issues) if (!first.has(issue.field)) first.set(issue.field, issue);
  return [...first.values()];
}

/** Removes known members that are null, which means absent in requests. Keeps unknown ones. */
export function withoutNulls(value: unknown, known: object): unknown {
  if (!isJsonObject(value) || !Object.values(value).includes(null)) return value;
  const kept = Object.entries(value).filter(([name, member]) => member !== null || !Object.hasOwn(known, name));
  // An assignment would make a member `__proto__` the prototype.
  return Object.fromEntries(kept);
}

/** Checks a body against its schema. Null members count as absent. Throws `validation_error`, with issues in the words of `worded`. */
export function bodyCheck<Schema extends TObject>(
  schema: Schema,
  worded = (issue: Issue): Issue => issue,
): (value: unknown) => Static<Schema> {
  const compiled = compile<Schema>(schema);
  return (value) => {
    const given = withoutNulls(value, schema.properties);
    if (compiled.accepts(given)) return given;
    throw invalidFields(compiled.issues(given).map(worded));
  };
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The issues of an error of typebox, which can name several fields, as in AJV. */
function issuesOf(error: TLocalizedValidationError): readonly Issue[] {
  const field = fieldOf(error.instancePath);
  const each = (names: readonly string[], message: string) =>
    names.map((name) => ({ field: field === "" ? name : `${field}.${name}`, message }));
  if (error.keyword === "required") return each(error.params.requiredProperties, "Is required.");
  if (error.keyword === "additionalProperties") return each(error.params.additionalProperties, UNKNOWN);
  // typebox reports it for each unknown member besides "additionalProperties".
  if (error.keyword === "boolean") return [];
  return [{ field, message: messageOf(error) }];
}

const counted = (count: number | bigint, what: string) => `${count} ${what}${Number(count) === 1 ? "" : "s"}`;

function messageOf(error: TLocalizedValidationError): string {
  if (error.keyword === "enum") return `Must be one of ${error.params.allowedValues.join(", ")}.`;
  if (error.keyword === "type") return `Must be ${named(error.params.type)}.`;
  if (error.keyword === "format")
    return `Must be ${named(FORMAT_NAMES.get(error.params.format) ?? error.params.format)}.`;
  if (error.keyword === "minimum") return `Must be at least ${error.params.limit}.`;
  if (error.keyword === "maximum") return `Must be at most ${error.params.limit}.`;
  const isOfLength = error.keyword === "minLength" || error.keyword === "minItems";
  if (isOfLength && error.params.limit === 1) return "May not be empty.";
  if (error.keyword === "minLength") return `Must have at least ${counted(error.params.limit, "character")}.`;
  if (error.keyword === "maxLength") return `Must have at most ${counted(error.params.limit, "character")}.`;
  if (error.keyword === "minItems") return `Must have at least ${counted(error.params.limit, "item")}.`;
  if (error.keyword === "maxItems") return `Must have at most ${counted(error.params.limit, "item")}.`;
  if (error.keyword === "~refine") return error.params.message;
  const message = error.keyword === "pattern" ? patternMessage(String(error.params.pattern)) : undefined;
  if (message !== undefined) return message;
  return `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`;
}

function patternMessage(pattern: string): string | undefined {
  const [, prefix] = /^\^([a-z]+_)\[/.exec(pattern) ?? [];
  return prefix === undefined ? PATTERN_MESSAGES.get(pattern) : `Must be an id that begins with ${prefix}.`;
}

function named(type: string | readonly string[]): string {
  const names = typeof type === "string" ? [type] : type;
  return names.map((name) => `${/^[aeio]/.test(name) ? "an" : "a"} ${name}`).join(" or ");
}

/** `/headers/X~1Name` (RFC 6901) as users write it: `headers.X/Name`. */
function fieldOf(pointer: string): string {
  const names = pointer.split("/").slice(1);
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~")).join(".");
}

/** The compiled query parameters of a route. They arrive as text, and `kindOf` says how to read each. */
export interface QueryCheck<T> extends Check<T> {
  kindOf(name: string): "integer" | "array" | "text";
}

export function compileQuery<S extends TObject>(schema: S): QueryCheck<Static<S>> {
  const check = compile(schema);
  const kinds = new Map(Object.entries(schema.properties).map(([name, property]) => [name, kindOf(property)]));
  return {
    accepts: (value): value is Static<S> => check.accepts(value),
    issues: (value) => onePerField(check.issues(value).map(byParameter)),
    kindOf: (name) => kinds.get(name) ?? "text",
  };
}

function kindOf(property: object): "integer" | "array" | "text" {
  const type = "type" in property ? property.type : null;
  return type === "integer" || type === "array" ? type : "text";
}

/** Reports an element of a repeated parameter under the parameter's name. */
function byParameter({ field, message }: Issue): Issue {
  return { field: field.replace(/\.\d+$/, ""), message };
}

/** The dates and cursor of a query, null where absent. Throws `invalid_query` for impossible dates and foreign cursors. */
export function checkListQuery<Name extends string>(
  dates: Readonly<Record<Name, string | undefined>>,
  cursor: string | undefined,
  position: RegExp,
): Readonly<Record<Name, Date | null>> & { readonly before: string | null } {
  const times = Object.entries<string | undefined>(dates).map(
    ([name, text]) => [name, text === undefined ? null : new Date(text)] as const,
  );
  const before = cursor === undefined ? null : decodeCursor(cursor, position);
  const issues = times.flatMap(([field, at]) =>
    at !== null && Number.isNaN(at.getTime()) ? [{ field, message: "Is not a date and time." }] : [],
  );
  if (cursor !== undefined && before === null) {
    issues.push({ field: "cursor", message: "Is not the next_cursor of a page." });
  }
  if (issues.length > 0) throw new DomainError("invalid_query", "The query is not valid.", issues);
  // Safe: these are the names of `dates`.
  return { ...(Object.fromEntries(times) as Record<Name, Date | null>), before };
}

/** An opaque cursor, so that callers don't build cursors from ids. */
export function encodeCursor(position: string): string {
  return Buffer.from(position).toString("base64url");
}

/** A page of rows with the cursor of the next page. `found` has one row more than fits if there is a next page. */
export function pageOf<Row extends { readonly id: string }>(found: readonly Row[], limit: number) {
  const data = found.slice(0, limit);
  const last = found.length > limit ? data.at(-1) : undefined;
  return { data, next_cursor: last === undefined ? null : encodeCursor(last.id) };
}

/** The position in a cursor; null if the cursor is not ours. */
export function decodeCursor(cursor: string, position: RegExp): string | null {
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  // Decoding is lenient, so accept only a cursor that encodes to the same text again.
  return position.test(text) && encodeCursor(text) === cursor ? text : null;
}

export const keyIdSchema = idSchema("key", "Id of a key.", "KeyId");
