import type { ActionStatus } from "../domain/action.ts";
import { isTerminal } from "../domain/action.ts";
import type { TimelineEvent, TimelineEntry } from "../domain/timeline.ts";

/** What a stretch of time was spent with. */
export type SpanKind = "approval" | "wait" | "running" | "good" | "bad";

/** A stretch in the life of an action. */
export interface Span {
  readonly kind: SpanKind;
  readonly from: Date;
  readonly to: Date;
  /** Of an attempt. */
  readonly attempt: number | null;
}

/** One run, from its beginning to its end, or to now. */
export interface RunSpans {
  readonly run: number;
  readonly from: Date;
  readonly to: Date;
  readonly spans: readonly Span[];
}

/** Takes the timeline of an action, oldest first, apart into runs and what each was spent with. Pure. */
export function runsOf(timeline: readonly TimelineEntry[], now: Date): readonly RunSpans[] {
  const runs = Map.groupBy(timeline.filter(isOfState), ({ run }) => run);
  return [...runs].map(([run, entries]) => {
    const [first] = entries;
    const spans = spansOf(entries, now);
    const from = first?.at ?? now;
    return { run, from, to: spans.at(-1)?.to ?? from, spans };
  });
}

/** Callbacks and mails are told of beside what happens to the action. */
function isOfState({ event }: TimelineEntry): boolean {
  return event.type !== "callback" && event.type !== "mail";
}

function spansOf(entries: readonly TimelineEntry[], now: Date): readonly Span[] {
  const spans: Span[] = [];
  for (const [index, entry] of entries.entries()) {
    if (isTerminal(entry.status)) break;
    const next = entries[index + 1];
    const { kind, attempt } = kindOf(entry.status, next?.event);
    const to = next?.at ?? now;
    const last = spans.at(-1);
    if (last !== undefined && last.kind === kind && attempt === null) spans[spans.length - 1] = { ...last, to };
    else spans.push({ kind, from: entry.at, to, attempt });
  }
  return spans.filter(({ from, to, attempt }) => attempt !== null || to > from);
}

/** By the status in between, and for an attempt by how it ended. */
function kindOf(status: ActionStatus, end: TimelineEvent | undefined): Pick<Span, "kind" | "attempt"> {
  if (end?.type === "attempt") return { kind: end.error === null ? "good" : "bad", attempt: end.attempt };
  return { kind: KINDS[status], attempt: null };
}

const KINDS: Readonly<Record<ActionStatus, SpanKind>> = {
  awaiting_approval: "approval",
  pending: "wait",
  active: "running",
  completed: "wait",
  failed: "wait",
  cancelled: "wait",
};
