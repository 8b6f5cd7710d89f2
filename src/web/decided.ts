import type { TimelineEvent, TimelineEntry } from "../domain/timeline.ts";

/** What a person or program has decided, and why. */
export type Decided = Extract<TimelineEvent, { readonly actor: string }>;

const NO_DECISIONS: ReadonlySet<TimelineEvent["type"]> = new Set(["created", "paused", "resumed"]);

/** The newest decision of a timeline; its creation is none, and neither is a pause. Null: nobody has decided anything. */
export function lastDecision(timeline: readonly TimelineEntry[]): Decided | null {
  const decisions = timeline.flatMap(({ event }) => ("actor" in event ? [event] : []));
  return decisions.findLast(({ type }) => !NO_DECISIONS.has(type)) ?? null;
}
