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
