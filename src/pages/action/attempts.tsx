/** @jsxImportSource hono/jsx */
import { type ActionStatus, isTerminal } from "../../core/action.ts";
import type { PastAttempt } from "../../core/changes.ts";
import { isTooLate, type TimelineEntry, type TimelineEvent } from "../../core/timeline.ts";
import { ATTEMPTS_KEPT } from "../../core/limits.ts";
import { actionPath, queryText } from "../../ui/layout.tsx";
import { Card, Dot, time, type Tone } from "../../ui/parts.tsx";
import { counted, duration } from "../../ui/text.ts";
import type { SeenAction } from "../../receipts/seen-action.ts";

/** The kinds of periods, in words. */
const SPAN_NAMES = {
  approval: "Awaiting approval",
  wait: "Waiting to be sent",
  running: "Being sent",
  bad: "Failed attempt",
  good: "Successful attempt",
} as const;

type SpanKind = keyof typeof SPAN_NAMES;

interface Span {
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
interface AttemptRow {
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

/** The attempt in the page's address, or else the last ended one of this run; null if none has ended. */
export function chosenAttempt(
  action: Pick<SeenAction, "run">,
  attempts: readonly PastAttempt[],
  search: string,
): PastAttempt | null {
  const asked = new URLSearchParams(search);
  const run = Number(asked.get("run") ?? action.run);
  // A late result says more than "unknown".
  const chosen = attempts.findLast((one) => one.run === run && one.attempt === Number(asked.get("attempt")));
  return chosen ?? attempts.findLast((one) => one.run === action.run) ?? null;
}

interface AttemptsProps {
  readonly action: SeenAction;
  readonly timeline: readonly TimelineEntry[];
  /** The newest ended attempts. */
  readonly attempts: readonly PastAttempt[];
  /** The attempt that the page shows. */
  readonly chosen: Pick<PastAttempt, "run" | "attempt"> | null;
  /** Whether rows link to their responses; false on receipts, which have only the last one. */
  readonly isLinked?: boolean;
  readonly now: Date;
}

/** The newest attempts on a time axis, a row each. */
export function Attempts({ action, timeline, attempts, chosen, isLinked = true, now }: AttemptsProps) {
  const runs = runRows(timeline, attempts, now).filter(({ rows }) => rows.length > 0);
  const isBegun = ({ attempt, spans }: AttemptRow) => attempt !== null || spans.at(-1)?.kind === "running";
  if (!runs.some(({ rows }) => rows.some(isBegun))) return null;
  const made = timeline.filter(({ event }) => event.type === "attempt").length;
  return (
    <Card
      id="attempts"
      title="Attempts"
      look="lanes"
      aside={
        made > attempts.length ? (
          <p class="quiet small">{`The last ${ATTEMPTS_KEPT} of ${made}; the timeline has all.`}</p>
        ) : null
      }
    >
      {runs.map(({ run, from, to, rows }) => (
        <div class="lanes-run">
          <p class="between small quiet">
            <span>
              {runs.length === 1 ? null : <b>{`Run ${run} · `}</b>}
              {time(from)}
            </span>
            <span>{duration(to.getTime() - from.getTime())}</span>
          </p>
          <p class="visually-hidden">{spansText(rows.flatMap(({ spans }) => spans))}</p>
          <ol>
            {rows.map((row) => (
              <li>
                {row.attempt === null || !isLinked ? (
                  // The period that goes on now has no response yet.
                  <span class="lane">{rowCells(row, from, to)}</span>
                ) : (
                  <a
                    class="lane"
                    href={`${actionPath(action.id)}${queryText({ run: run === action.run ? "" : run, attempt: row.attempt })}`}
                    aria-current={chosen?.run === run && chosen.attempt === row.attempt ? "true" : undefined}
                    {...LOADS_IN_PLACE}
                  >
                    {rowCells(row, from, to)}
                  </a>
                )}
              </li>
            ))}
          </ol>
        </div>
      ))}
    </Card>
  );
}

/** Shows another attempt's response in place, in a drawer too. */
const LOADS_IN_PLACE = {
  "hx-boost": "true",
  "hx-target": "#action",
  "hx-select": "#action",
  "hx-swap": "morph:outerHTML",
  "hx-replace-url": "true",
} as const;

function rowCells(row: AttemptRow, from: Date, to: Date) {
  return (
    <>
      <span>
        <Dot tone={rowTone(row)}>{row.attempt === null ? nameOfLast(row) : `Attempt ${row.attempt}`}</Dot>
      </span>
      <span>{row.attempt === null ? "" : (row.code ?? "–")}</span>
      {bars(row.spans, from, to)}
      <span class="lane-took">{durationText(row)}</span>
    </>
  );
}

function rowTone({ spans }: AttemptRow): Tone {
  const kind = spans.at(-1)?.kind;
  if (kind === "good" || kind === "bad") return kind;
  return kind === "approval" ? "wait" : "busy";
}

/** Names the period that goes on now. */
function nameOfLast({ spans }: AttemptRow): string {
  const kind = spans.at(-1)?.kind;
  if (kind === "approval") return SPAN_NAMES.approval;
  return kind === "running" ? "Sending" : "Waiting";
}

/** How long the attempt took, or how long the action has been waiting. */
function durationText({ durationMs, spans }: AttemptRow): string {
  const last = spans.at(-1);
  if (durationMs !== null) return duration(durationMs);
  return last === undefined ? "" : duration(last.to.getTime() - last.from.getTime());
}

const WIDTH = 1_000;

const HEIGHT = 16;

/** The smallest visible width. An attempt may take milliseconds and a wait an hour. */
const WIDTH_MIN = 8;

/** The periods of a row as bars in the time of its run. */
function bars(spans: readonly Span[], from: Date, to: Date) {
  const wholeMs = to.getTime() - from.getTime();
  const position = (at: Date) =>
    wholeMs === 0 ? 0 : Math.round(((at.getTime() - from.getTime()) / wholeMs) * (WIDTH - WIDTH_MIN));
  return (
    <svg class="lane-bars" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {spans.map((span) => {
        const x = position(span.from);
        const isThin = span.attempt === null && span.kind !== "running";
        return (
          <rect
            class={`span-${span.kind}`}
            x={x}
            y={isThin ? HEIGHT / 2 - 1 : 2}
            width={Math.max(position(span.to) - x, isThin ? 0 : WIDTH_MIN)}
            height={isThin ? 2 : HEIGHT - 4}
          >
            <title>{`${SPAN_NAMES[span.kind]}: ${duration(span.to.getTime() - span.from.getTime())}`}</title>
          </rect>
        );
      })}
    </svg>
  );
}

/** The total time of each kind of period, for screen readers. */
function spansText(spans: readonly Span[]): string {
  const sums = Object.entries(SPAN_NAMES).flatMap(([kind, name]) => {
    const same = spans.filter((span) => span.kind === kind);
    if (same.length === 0) return [];
    const ms = same.reduce((sum, { from, to }) => sum + to.getTime() - from.getTime(), 0);
    const what = name.toLowerCase();
    return [`${kind === "bad" || kind === "good" ? counted(same.length, what) : what}, ${duration(ms)}`];
  });
  return `${sums.join("; ")}.`;
}
