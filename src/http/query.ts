import type { QueryCheck } from "../api/schema-helpers.ts";
import { DomainError, type Issue } from "../api/domain-error.ts";
import { NEXT_CHARS_MAX } from "../config/limits.ts";

/**
 * Reads the query of a request by the schema of its route. Throws `invalid_query` with every issue: unknown parameters,
 * repeated ones, values out of range, integers that are not plain decimal digits.
 */
export function readQuery<T>(search: string, check: QueryCheck<T>): T {
  const given = search === "" ? EMPTY : collect(search, check);
  const value: unknown = given.value;
  if (given.repeated.length === 0 && check.accepts(value)) return value;
  const issues: Issue[] = given.repeated.map((field) => ({ field, message: "Is given more than once." }));
  throw new DomainError("invalid_query", "The query is not valid.", [...issues, ...check.issues(value)]);
}

interface Given {
  readonly value: object;
  readonly repeated: readonly string[];
}

const EMPTY: Given = { value: {}, repeated: [] };

const DIGITS = /^\d{1,15}$/;

function collect(search: string, check: QueryCheck<unknown>): Given {
  const texts = new Map<string, string[]>();
  for (const [name, text] of new URLSearchParams(search)) {
    const before = texts.get(name);
    if (before === undefined) texts.set(name, [text]);
    else before.push(text);
  }
  const value = [...texts].map(([name, all]) => [name, valueOf(check.kindOf(name), all)] as const);
  const repeated = [...texts].filter(([name, all]) => all.length > 1 && check.kindOf(name) !== "array");
  return { value: Object.fromEntries(value), repeated: repeated.map(([name]) => name) };
}

function valueOf(kind: "integer" | "array" | "text", all: readonly string[]): unknown {
  if (kind === "array") return all;
  const text = all[0] ?? "";
  return kind === "integer" && DIGITS.test(text) ? Number(text) : text;
}

/** Where people go after log-in. */
export const HOME_PATH = "/approvals";

/** One slash, not followed by a slash or backslash; only visible ASCII, since browsers drop a tab and read `/\t/` as `//`. */
const OWN_PATH = /^\/(?![/\\])[!-[\]-~]*$/;

/** A `next` that is a path of this service; null for any other, so that nobody is redirected to another site. */
export function nextOf(text: string | null | undefined): string | null {
  return text !== null && text !== undefined && text.length <= NEXT_CHARS_MAX && OWN_PATH.test(text) ? text : null;
}

/** The same from a query. */
export function nextIn(search: string): string | null {
  return nextOf(new URLSearchParams(search).get("next"));
}

/** Whether a request prefers JSON to HTML (RFC 9110, 12.5.1): it names JSON, with at least the weight of HTML. */
export function prefersJson({ headers }: Request): boolean {
  const accept = headers.get("accept") ?? "";
  const json = weightOf(accept, "application/json");
  return json > 0 && json >= weightOf(accept, "text/html");
}

/** Whether it prefers NDJSON to JSON. */
export function prefersNdjson({ headers }: Request): boolean {
  const accept = headers.get("accept") ?? "";
  const lines = weightOf(accept, "application/x-ndjson");
  return lines > 0 && lines >= weightOf(accept, "application/json");
}

/** Whether it names HTML, as browsers do and programs don't. */
export function acceptsHtml({ headers }: Request): boolean {
  return weightOf(headers.get("accept") ?? "", "text/html") > 0;
}

/** Whether a path always answers JSON, whatever the request accepts. */
export function isApiPath(path: string): boolean {
  return /^\/(v1|mcp)(\/|$)/.test(path);
}

/** Whether it accepts gzip: named, and not with a weight of 0 (RFC 9110, 12.5.3). */
export function acceptsGzip({ headers }: Request): boolean {
  return GZIP.test(headers.get("accept-encoding") ?? "");
}

const GZIP = /(?:^|,)\s*gzip\s*(?!;\s*q=0(?:\.0*)?\s*(?:,|$))(?:[,;]|$)/i;

/** The weight of a media type; 0 where it is missing or refused. Wildcards are ignored. */
function weightOf(accept: string, type: string): number {
  for (const entry of accept.split(",")) {
    const [name, ...parameters] = entry.split(";").map((part) => part.trim().toLowerCase());
    if (name !== type) continue;
    const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    return weight === undefined ? 1 : Number(weight) || 0;
  }
  return 0;
}
