import { type Static, type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import type { TLocalizedValidationError } from "typebox/error";
import Format from "typebox/format";
import { Settings } from "typebox/system";
import type { Issue } from "../domain/errors.ts";
import { EMAIL_CHARS_MAX, JSON_MEMBERS_MAX } from "../domain/limits.ts";
import { FORMAT_NAMES, PATTERN_MESSAGES } from "./kinds.ts";

const EMAIL = /^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/i;

// A caller sees everything that is wrong at once: each member can have one error and one in its parent's summary.
Settings.Set({ maxErrors: 2 * JSON_MEMBERS_MAX });
// Where a URL may lead is judged by `Targets`, which parses it once; typebox's own check refuses international hosts.
Format.Set("uri", () => true);
Format.Set("uri-reference", () => true);
// One address as HTML forms take it. typebox's own lets control characters through, and a megabyte of it took 300 ms.
Format.Set("email", (text) => text.length <= EMAIL_CHARS_MAX && EMAIL.test(text));

/** A schema, compiled once: whether a value fits, and if not, everything that is wrong with it. */
export interface Check<T> {
  accepts(value: unknown): value is T;
  /** One issue for each field; none when the value fits. Nothing is converted, cut or filled in. */
  issues(value: unknown): readonly Issue[];
}

/** Compiles a schema of the contract. */
export function compile<S extends TSchema>(schema: S): Check<Static<S>> {
  const validator = Compile(schema);
  const known = knownOf(schema);
  return {
    accepts: (value): value is Static<S> => validator.Check(value),
    issues(value) {
      if (validator.Check(value)) return [];
      const { unknown, rest } = split(value, known);
      const others = unknown.map((field) => ({ field, message: UNKNOWN }));
      return onePerField([...validator.Errors(rest).flatMap(issuesOf), ...others]);
    },
  };
}

const UNKNOWN = "Is not known.";

/** The members of an object that takes no others; null: it takes any, or is none. */
function knownOf(schema: object): ReadonlySet<string> | null {
  const isClosed = "additionalProperties" in schema && schema.additionalProperties === false;
  return isClosed && "properties" in schema && isJsonObject(schema.properties)
    ? new Set(Object.keys(schema.properties))
    : null;
}

/** Unknown members are told apart here: typebox, which speaks of each twice, took 30 ms for ten thousand. */
function split(value: unknown, known: ReadonlySet<string> | null) {
  if (known === null || !isJsonObject(value)) return { unknown: [], rest: value };
  const members = Map.groupBy(Object.entries(value), ([name]) => known.has(name));
  return {
    unknown: (members.get(false) ?? []).map(([name]) => name),
    rest: Object.fromEntries(members.get(true) ?? []),
  };
}

/** The first issue of each field: the others say the same in other words. */
export function onePerField(issues: readonly Issue[]): readonly Issue[] {
  const first = new Map<string, Issue>();
  for (const issue of issues) if (!first.has(issue.field)) first.set(issue.field, issue);
  return [...first.values()];
}

/**
 * The same object without those of its known members that are null: null means absent in every field of ours (decisions
 * 3), and an unknown member is unknown whatever it is.
 */
export function withoutNulls(value: unknown, known: object): unknown {
  if (!isJsonObject(value) || !Object.values(value).includes(null)) return value;
  const left = Object.entries(value).filter(([name, member]) => member !== null || !Object.hasOwn(known, name));
  // `fromEntries` defines members: assigned, a `__proto__` among them would become a prototype.
  return Object.fromEntries(left);
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** typebox speaks like AJV: what it says of one field is spread over several errors. */
function issuesOf(error: TLocalizedValidationError): readonly Issue[] {
  const field = fieldOf(error.instancePath);
  const each = (names: readonly string[], message: string) =>
    names.map((name) => ({ field: field === "" ? name : `${field}.${name}`, message }));
  if (error.keyword === "required") return each(error.params.requiredProperties, "Is required.");
  if (error.keyword === "additionalProperties") return each(error.params.additionalProperties, UNKNOWN);
  // Said of each unknown member, which the summary names too.
  if (error.keyword === "boolean") return [];
  return [{ field, message: messageOf(error) }];
}

function messageOf(error: TLocalizedValidationError): string {
  if (error.keyword === "enum") return `Must be one of ${error.params.allowedValues.join(", ")}.`;
  if (error.keyword === "type") return `Must be ${named(error.params.type)}.`;
  if (error.keyword === "format")
    return `Must be ${named(FORMAT_NAMES.get(error.params.format) ?? error.params.format)}.`;
  if (error.keyword === "minLength" && error.params.limit === 1) return "May not be empty.";
  if (error.keyword === "~refine") return error.params.message;
  const inWords = error.keyword === "pattern" ? PATTERN_MESSAGES.get(String(error.params.pattern)) : undefined;
  if (inWords !== undefined) return inWords;
  return `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`;
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
