import { checkList, ListQuery } from "../contract/page.ts";
import { compileQuery } from "../contract/query.ts";
import { DomainError, type Issue } from "../domain/errors.ts";
import { readQuery } from "./query.ts";

const LIST = compileQuery(ListQuery);

/** What the page of a list is asked for: as it was typed, and as the desk is asked. */
export interface Filters {
  readonly query: ListQuery;
  readonly asked: ReturnType<typeof checkList>;
  readonly typed: ReadonlyMap<string, string>;
}

/** The same parameters as those of `GET /v1/actions`. Throws `invalid_query`. */
export function readFilters(search: string): Filters {
  const query = readQuery(search, LIST);
  return { query, asked: checkList(query), typed: typedIn(search) };
}

/** The same, or what is wrong with it, for a page that says so and lets people mend it. */
export function tryFilters(search: string): Filters | { readonly problems: readonly Issue[] } {
  try {
    return readFilters(search);
  } catch (error) {
    if (error instanceof DomainError && error.code === "invalid_query") return { problems: error.issues };
    throw error;
  }
}

export function typedIn(search: string): ReadonlyMap<string, string> {
  return new Map(new URLSearchParams(search));
}

/** A day and a time as a browser sends them, without a zone. */
const LOCAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?$/;

/**
 * The query that a form meant, since forms send what was left empty, and times without a zone: so that every list has
 * one address, and that is one of the API's. Null: it is that already.
 */
export function plainSearch(search: string): string | null {
  const given = [...new URLSearchParams(search)];
  const plain = given
    .filter(([, text]) => text !== "")
    .map(([name, text]): [string, string] => [name, zoned(name, text)]);
  const isPlain = plain.length === given.length && plain.every(([, text], at) => text === given[at]?.[1]);
  return isPlain ? null : new URLSearchParams(plain).toString();
}

function zoned(name: string, text: string): string {
  const [, seconds] = LOCAL_TIME.exec(name.startsWith("created_") ? text : "") ?? [null, null];
  if (seconds === null) return text;
  return seconds === undefined ? `${text}:00Z` : `${text}Z`;
}
