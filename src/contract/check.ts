import { type Static, type TSchema } from "typebox";
import { Compile } from "typebox/compile";
import type { TLocalizedValidationError } from "typebox/error";
import Format from "typebox/format";
import { Settings } from "typebox/system";
import type { Issue } from "../domain/errors.ts";
import { JSON_MEMBERS_MAX } from "../domain/limits.ts";

// A caller sees everything that is wrong at once: each member can have one error and one in its parent's summary.
Settings.Set({ maxErrors: 2 * JSON_MEMBERS_MAX });
// Where a URL may lead is judged by `Targets`, which parses it once; typebox's own check refuses international hosts.
Format.Set("uri", () => true);
Format.Set("uri-reference", () => true);

/** A schema, compiled once: whether a value fits, and if not, everything that is wrong with it. */
export interface Check<T> {
  accepts(value: unknown): value is T;
  /** One issue for each field; none when the value fits. Nothing is converted, cut or filled in. */
  issues(value: unknown): readonly Issue[];
}

/** Compiles a schema of the contract. */
export function compile<S extends TSchema>(schema: S): Check<Static<S>> {
  const validator = Compile(schema);
  return {
    accepts: (value): value is Static<S> => validator.Check(value),
    issues: (value) => (validator.Check(value) ? [] : onePerField(validator.Errors(value).flatMap(issuesOf))),
  };
}

/** The first issue of each field: the others say the same in other words. */
export function onePerField(issues: readonly Issue[]): readonly Issue[] {
  const first = new Map<string, Issue>();
  for (const issue of issues) if (!first.has(issue.field)) first.set(issue.field, issue);
  return [...first.values()];
}

/** The same object without its members that are null: null means absent in every field of ours (decisions 3). */
export function withoutNulls(value: unknown): unknown {
  if (!isJsonObject(value) || !Object.values(value).includes(null)) return value;
  // `fromEntries` defines members: assigned, a `__proto__` among them would become a prototype.
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
}

export function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** typebox speaks like AJV: what it says of one field is spread over several errors. */
function issuesOf(error: TLocalizedValidationError): readonly Issue[] {
  const at = fieldOf(error.instancePath);
  switch (error.keyword) {
    case "required":
      return error.params.requiredProperties.map((name) => ({ field: join(at, name), message: "Is required." }));
    case "additionalProperties":
      return error.params.additionalProperties.map((name) => ({ field: join(at, name), message: "Is not known." }));
    case "boolean":
      // Said of each unknown member, which the summary above names too.
      return [];
    case "enum":
      return [{ field: at, message: `Must be one of ${error.params.allowedValues.join(", ")}.` }];
    case "type":
      return [{ field: at, message: `Must be ${named(error.params.type)}.` }];
    case "~refine":
      return [{ field: at, message: error.params.message }];
    default:
      return [{ field: at, message: `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.` }];
  }
}

function named(type: string | readonly string[]): string {
  const names = typeof type === "string" ? [type] : type;
  return names.map((name) => `${/^[aio]/.test(name) ? "an" : "a"} ${name}`).join(" or ");
}

/** `/headers/X~1Name` (RFC 6901) as users write it: `headers.X/Name`. */
function fieldOf(pointer: string): string {
  const names = pointer.split("/").slice(1);
  return names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~")).join(".");
}

function join(parent: string, name: string): string {
  return parent === "" ? name : `${parent}.${name}`;
}
