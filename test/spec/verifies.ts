import { DECISIONS } from "./decisions.ts";
import { HOSTILE } from "./hostile.ts";
import type { Requirement } from "./requirement.ts";
import { SPEC } from "./spec.ts";

/** The whole manifest, in the order of the documents. */
export const REQUIREMENTS: readonly Requirement[] = [...SPEC, ...DECISIONS, ...HOSTILE];

const IDS: ReadonlySet<string> = new Set(REQUIREMENTS.map((requirement) => requirement.id));

/**
 * First line of a test body: says which requirements this test holds. Arguments are string literals, because
 * `coverage.test.ts` reads them from the source. Throws on an id that the manifest does not have.
 */
export function verifies(...ids: readonly [string, ...string[]]): void {
  const unknown = ids.filter((id) => !IDS.has(id));
  if (unknown.length > 0) throw new Error(`No such requirement in test/spec: ${unknown.join(", ")}`);
}
