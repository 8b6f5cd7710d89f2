import type { Happening, TimelineEntry } from "../domain/timeline.ts";

/** What a person or program has decided, and why. */
export type Decided = Extract<Happening, { readonly actor: string }>;

const NO_DECISIONS: ReadonlySet<Happening["type"]> = new Set(["created", "paused", "resumed"]);

/** The newest decision of a timeline; its creation is none, and neither is a pause. Null: nobody has decided anything. */
export function lastDecision(timeline: readonly TimelineEntry[]): Decided | null {
  const decisions = timeline.flatMap(({ happening }) => ("actor" in happening ? [happening] : []));
  return decisions.findLast(({ type }) => !NO_DECISIONS.has(type)) ?? null;
}
