import type { QueryCheck } from "../contract/query.ts";
import { DomainError, type Issue } from "../domain/errors.ts";

/**
 * The query of a request against the parameters that its route knows. Throws `invalid_query` with every issue: unknown,
 * given twice, out of range, not in plain decimal digits (hostile 1).
 */
export function readQuery<T>(search: string, check: QueryCheck<T>): T {
  const given = search === "" ? NOTHING : collect(search, check);
  const value: unknown = given.value;
  if (given.repeated.length === 0 && check.accepts(value)) return value;
  const issues: Issue[] = given.repeated.map((field) => ({ field, message: "Is given more than once." }));
  throw new DomainError("invalid_query", "The query is not valid.", [...issues, ...check.issues(value)]);
}

interface Given {
  readonly value: object;
  readonly repeated: readonly string[];
}

const NOTHING: Given = { value: {}, repeated: [] };
const DIGITS = /^\d{1,15}$/;

function collect(search: string, check: QueryCheck<unknown>): Given {
  const value = new Map<string, unknown>();
  const repeated = new Set<string>();
  for (const [name, text] of new URLSearchParams(search)) {
    const kind = check.kindOf(name);
    const before = value.get(name);
    if (kind === "array") value.set(name, Array.isArray(before) ? [...before, text] : [text]);
    else if (before !== undefined) repeated.add(name);
    else value.set(name, kind === "integer" && DIGITS.test(text) ? Number(text) : text);
  }
  return { value: Object.fromEntries(value), repeated: [...repeated] };
}
