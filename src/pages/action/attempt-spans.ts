import { type ActionStatus, isTerminal } from "../../core/action.ts";
import type { PastAttempt } from "../../core/changes.ts";
import { isTooLate, type TimelineEntry, type TimelineEvent } from "../../core/timeline.ts";

/** The kinds of periods, in words. */
export const SPAN_NAMES = {
  approval: "Awaiting approval",
  wait: "Waiting to be sent",
  running: "Being sent",
  bad: "Failed attempt",
  good: "Successful attempt",
} as const;

type SpanKind = keyof typeof SPAN_NAMES;

export interface Span {
  readonly kind: SpanKind;
  readonly from: Date;
  readonly to: Date;
  /** The attempt's number; null for other periods. */
  readonly attempt: number | null;
}

interface RunSpans {
  readonly run: number;
  readonly from: Date;
  readonly to: Date;
  readonly spans: readonly Span[];
}

/** Events that don't change the state. */
const NOTIFICATIONS: ReadonlySet<string> = new Set(["callback", "mail", "message"]);

/** Splits a timeline, oldest first, into runs and their periods. An unfinished run lasts until now. */
export function runSpans(timeline: readonly TimelineEntry[], now: Date): readonly RunSpans[] {
  const changes = timeline.filter(({ event }) => !NOTIFICATIONS.has(event.type) && !isTooLate(event));
  const runs = Map.groupBy(changes, ({ run }) => run);
  return [...runs].map(([run, entries]) => {
    const [first] = entries;
    const spans = attemptSpans(entries, now);
    const from = first?.at ?? now;
    return { run, from, to: spans.at(-1)?.to ?? from, spans };
  });
}

function attemptSpans(entries: readonly TimelineEntry[], now: Date): readonly Span[] {
  const spans: Span[] = [];
  for (const [index, entry] of entries.entries()) {
    if (isTerminal(entry.status)) break;
    const next = entries[index + 1];
    const { kind, attempt } = spanKind(entry.status, next?.event);
    const to = next?.at ?? now;
    const last = spans.at(-1);
    if (last !== undefined && last.kind === kind && attempt === null) spans[spans.length - 1] = { ...last, to };
    else spans.push({ kind, from: entry.at, to, attempt });
  }
  return spans.filter(({ from, to, attempt }) => attempt !== null || to > from);
}

function spanKind(status: ActionStatus, end: TimelineEvent | undefined): Pick<Span, "kind" | "attempt"> {
  if (end?.type === "attempt" && end.late === undefined)
    return { kind: end.error === null ? "good" : "bad", attempt: end.attempt };
  return { kind: KIND_OF_STATUS[status], attempt: null };
}

const KIND_OF_STATUS: Readonly<Record<ActionStatus, SpanKind>> = {
  awaiting_approval: "approval",
  pending: "wait",
  active: "running",
  completed: "wait",
  failed: "wait",
  cancelled: "wait",
};

/** The periods before and during an attempt. `attempt` is null if it has not ended yet. */
export interface AttemptRow {
  readonly attempt: number | null;
  readonly code: number | null;
  /** As measured; null if it goes on or is unknown. */
  readonly durationMs: number | null;
  readonly spans: readonly Span[];
}

interface RunRows extends Pick<RunSpans, "run" | "from" | "to"> {
  readonly rows: readonly AttemptRow[];
}

/** Splits the periods of the runs into rows: one for each of the newest attempts, and one for what goes on now. */
export function runRows(
  timeline: readonly TimelineEntry[],
  attempts: readonly PastAttempt[],
  now: Date,
): readonly RunRows[] {
  const isOver = isTerminal(timeline.findLast(({ event }) => !("delivered" in event))?.status ?? "failed");
  const runs = runSpans(timeline, now);
  return runs.map(({ run, to, spans }, at) => {
    const rows: AttemptRow[] = [];
    let before: Span[] = [];
    for (const span of spans) {
      before.push(span);
      if (span.attempt === null) continue;
      const past = attempts.findLast((one) => one.run === run && one.attempt === span.attempt);
      if (past !== undefined) {
        const { response_code: code, duration_ms: durationMs } = past.made;
        rows.push({ attempt: span.attempt, code, durationMs, spans: before });
      }
      before = [];
    }
    if (at === runs.length - 1 && !isOver && before.length > 0)
      rows.push({ attempt: null, code: null, durationMs: null, spans: before });
    return { run, from: rows[0]?.spans[0]?.from ?? to, to, rows };
  });
}
