import type { Static, TObject, TSchema } from "typebox";
import { Compile } from "typebox/compile";
import type { TLocalizedValidationError } from "typebox/error";
import Format from "typebox/format";
import { Settings } from "typebox/system";
import { DomainError, type Issue, invalidFields } from "../core/domain-error.ts";
import { isJsonObject } from "../core/json.ts";
import { EMAIL_CHARS_MAX, JSON_MEMBERS_MAX } from "../core/limits.ts";
import { PATTERN_MESSAGES } from "./schema-helpers.ts";

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
  const compiledSchema = () => (compiled ??= Compile(schema));
  const known = knownMembers(schema);
  return {
    accepts: (value): value is Static<S> => compiledSchema().Check(value),
    issues(value) {
      const validator = compiledSchema();
      if (validator.Check(value)) return [];
      const { unknown, rest } = split(value, known);
      const unknownIssues = unknown.map((field) => ({ field, message: UNKNOWN }));
      return onePerField([...validator.Errors(rest).flatMap(toIssues), ...unknownIssues]);
    },
  };
}

const UNKNOWN = "Is unknown. Check its name, or leave it out.";

/** The member names of a closed object schema; null for any other schema. */
function knownMembers(schema: object): ReadonlySet<string> | null {
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

/** The issues of an error of typebox, which can name several fields, as in AJV. */
function toIssues(error: TLocalizedValidationError): readonly Issue[] {
  const field = fieldName(error.instancePath);
  const each = (names: readonly string[], message: string) =>
    names.map((name) => ({ field: field === "" ? name : `${field}.${name}`, message }));
  if (error.keyword === "required") return each(error.params.requiredProperties, "Is required.");
  if (error.keyword === "additionalProperties") return each(error.params.additionalProperties, UNKNOWN);
  // typebox reports it for each unknown member besides "additionalProperties".
  if (error.keyword === "boolean") return [];
  return [{ field, message: issueMessage(error) }];
}

const FORMAT_NAMES: ReadonlyMap<string, string> = new Map([
  ["email", "email address"],
  ["date-time", "date and time with a time zone, like 2026-03-04T12:00:00Z"],
]);

const counted = (count: number | bigint, what: string) => `${count} ${what}${Number(count) === 1 ? "" : "s"}`;

function issueMessage(error: TLocalizedValidationError): string {
  if (error.keyword === "enum") return `Must be one of ${error.params.allowedValues.join(", ")}.`;
  if (error.keyword === "type") return `Must be ${named(error.params.type)}.`;
  if (error.keyword === "format")
    return `Must be ${named(FORMAT_NAMES.get(error.params.format) ?? error.params.format)}.`;
  if (error.keyword === "minimum") return `Must be at least ${error.params.limit}.`;
  if (error.keyword === "maximum") return `Must be at most ${error.params.limit}.`;
  const isOfLength = error.keyword === "minLength" || error.keyword === "minItems";
  if (isOfLength && error.params.limit === 1) return "Must not be empty.";
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
function fieldName(pointer: string): string {
  const names = pointer.split("/").slice(1);
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~")).join(".");
}

/**
 * Checks the query of a request by the schema of its route. Throws `invalid_query` with every issue: unknown parameters,
 * repeated ones, values out of range, integers that are not plain decimal digits.
 */
export function queryCheck<Schema extends TObject>(schema: Schema): (search: string) => Static<Schema> {
  const compiled = compile<Schema>(schema);
  const types = new Map(Object.entries(schema.properties).map(([name, property]) => [name, propertyType(property)]));
  return (search) => {
    const given = search === "" ? NO_PARAMETERS : Map.groupBy(new URLSearchParams(search), ([name]) => name);
    const repeated: Issue[] = [];
    const values = [...given].map(([name, pairs]) => {
      const [text = "", ...more] = pairs.map(([, one]) => one);
      const type = types.get(name);
      if (type === "array") return [name, [text, ...more]];
      if (more.length > 0) repeated.push({ field: name, message: "Is given more than once." });
      return [name, type === "integer" && DIGITS.test(text) ? Number(text) : text];
    });
    const value: unknown = Object.fromEntries(values);
    if (repeated.length === 0 && compiled.accepts(value)) return value;
    const issues = onePerField(compiled.issues(value).map(byParameter));
    throw new DomainError("invalid_query", "The query is not valid.", [...repeated, ...issues]);
  };
}

const NO_PARAMETERS: ReadonlyMap<string, readonly [string, string][]> = new Map();

const DIGITS = /^\d{1,15}$/;

function propertyType(property: object): unknown {
  return "type" in property ? property.type : null;
}

/** Reports an element of a repeated parameter under the parameter's name. */
function byParameter({ field, message }: Issue): Issue {
  return { field: field.replace(/\.\d+$/, ""), message };
}
