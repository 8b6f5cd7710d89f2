import type { Requirement } from "./requirement.ts";

/** One id in one `verifies(...)` call of a test file. */
export interface Citation {
  readonly id: string;
  readonly file: string;
}

/** What a test file says that it verifies. */
export interface Reading {
  readonly citations: readonly Citation[];
  /** Calls whose arguments are no string literals: the gate can't see what they verify. */
  readonly unreadable: readonly string[];
}

/** The state of the manifest beside its tests. No problem = the gate is open. */
export interface Verdict {
  readonly total: number;
  readonly tested: number;
  readonly later: number;
  readonly problems: readonly string[];
}

/**
 * Comments and strings come first, so that a call inside one of them is no call. Strings end at their line: a quote
 * inside a regular expression costs at most the rest of that line.
 */
const TOKEN =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|\bverifies\(([^)]*)\)/g;
const LITERAL = /^(["'`])([^"'`$]+)\1$/;

/** Finds every `verifies("...", ...)` call of a source text, on one line or many. */
export function readCitations(file: string, source: string): Reading {
  const citations: Citation[] = [];
  const unreadable: string[] = [];
  for (const [call, list] of source.matchAll(TOKEN)) {
    if (list === undefined) continue;
    const parts = list.split(",").map((part) => part.trim());
    for (const part of parts.filter((text, at) => text !== "" || at === 0)) {
      const id = LITERAL.exec(part)?.[2];
      if (id === undefined) unreadable.push(`${file}: ${call.replace(/\s+/g, " ")}`);
      else citations.push({ id, file });
    }
  }
  return { citations, unreadable };
}

/** Holds the manifest against the tests; every way in which they may disagree is a line of `problems`. */
export function judge(requirements: readonly Requirement[], readings: readonly Reading[]): Verdict {
  const known = new Map(requirements.map((requirement) => [requirement.id, requirement]));
  const citations = readings.flatMap((reading) => reading.citations);
  const cited = new Set(citations.map((citation) => citation.id));
  const now = requirements.filter((requirement) => requirement.later === undefined);
  return {
    total: requirements.length,
    tested: now.filter(({ id }) => cited.has(id)).length,
    later: requirements.length - now.length,
    problems: [
      ...twice(requirements).map((id) => `defined twice: ${id}`),
      ...now.filter(({ id }) => !cited.has(id)).map(({ id, sentence }) => `no test: ${id}: ${sentence}`),
      ...citations.filter(({ id }) => !known.has(id)).map(({ id, file }) => `unknown id: ${id} (cited in ${file})`),
      ...citations.flatMap(({ id, file }) => marked(known.get(id), file)),
      ...readings
        .flatMap((reading) => reading.unreadable)
        .map((call) => `only string literals can be counted: ${call}`),
    ],
  };
}

function twice(requirements: readonly Requirement[]): readonly string[] {
  const ids = requirements.map((requirement) => requirement.id);
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))];
}

function marked(requirement: Requirement | undefined, file: string): readonly string[] {
  if (requirement?.later === undefined) return [];
  return [`tested already, remove the mark "later ${requirement.later}: " of ${requirement.id} (cited in ${file})`];
}
