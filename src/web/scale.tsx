/** @jsxImportSource hono/jsx */
import { RUNS_DRAWN_MAX } from "../domain/limits.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import { Time } from "./parts.tsx";
import { runsOf, type RunSpans, type Span, type SpanKind } from "./spans.ts";
import { counted, duration } from "./words.ts";

export interface ScaleProps {
  readonly timeline: readonly TimelineEntry[];
  readonly now: Date;
}

/** The newest runs drawn to scale, each to its own; what is drawn stands in words in the history below. */
export function Scale({ timeline, now }: ScaleProps) {
  const runs = runsOf(timeline, now)
    .slice(-RUNS_DRAWN_MAX)
    .filter(({ from, to }) => to > from);
  if (runs.length === 0) return null;
  const kinds = KINDS.filter((kind) => runs.some(({ spans }) => spans.some((span) => span.kind === kind)));
  return (
    <section class="card" aria-labelledby="scale">
      <h2 id="scale">Where the time went</h2>
      {runs.map((run) => (
        <Run run={run} isOne={runs.length === 1} />
      ))}
      <ul class="span-legend small quiet">
        {kinds.map((kind) => (
          <li>
            <span class={`swatch swatch-${kind}`} aria-hidden="true" /> {NAMES[kind]}
          </li>
        ))}
      </ul>
    </section>
  );
}

const WIDTH = 1_000;
const SCALE_HEIGHT = 28;
/** An attempt takes milliseconds and a wait an hour: what is thinner than this could not be seen. */
const WIDTH_MIN = 5;

function Run({ run: { run, from, to, spans }, isOne }: { readonly run: RunSpans; readonly isOne: boolean }) {
  const wholeMs = to.getTime() - from.getTime();
  const xOf = (at: Date) => Math.round(((at.getTime() - from.getTime()) / wholeMs) * WIDTH);
  return (
    <figure class="stack">
      <svg
        class="scale"
        viewBox={`0 0 ${WIDTH} ${SCALE_HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${isOne ? "" : `Run ${run}: `}${wordsOf(spans)}`}
      >
        {inOrder(spans).map((span) => {
          const x = Math.min(xOf(span.from), WIDTH - WIDTH_MIN);
          return (
            <rect
              class={`span span-${span.kind}`}
              x={x}
              y={span.kind === "wait" ? SCALE_HEIGHT / 2 - 3 : 0}
              width={Math.max(xOf(span.to) - x, WIDTH_MIN)}
              height={span.kind === "wait" ? 6 : SCALE_HEIGHT}
            >
              <title>{labelOf(span)}</title>
            </rect>
          );
        })}
      </svg>
      <figcaption class="ends small quiet">
        <span>
          {isOne ? "" : `Run ${run}, `}
          <Time at={from} />
        </span>
        <span>{duration(wholeMs)}</span>
      </figcaption>
    </figure>
  );
}

/** Attempts over waits: a thin one keeps its width. */
function inOrder(spans: readonly Span[]): readonly Span[] {
  return [...spans.filter(({ kind }) => kind === "wait"), ...spans.filter(({ kind }) => kind !== "wait")];
}

const KINDS: readonly SpanKind[] = ["approval", "wait", "running", "bad", "good"];

const NAMES: Readonly<Record<SpanKind, string>> = {
  approval: "Waiting for approval",
  wait: "Waiting for its turn",
  running: "Being sent",
  bad: "Failed attempt",
  good: "Successful attempt",
};

function labelOf({ kind, from, to, attempt }: Span): string {
  const name = attempt === null ? NAMES[kind] : `${NAMES[kind]} ${attempt}`;
  return `${name}: ${duration(to.getTime() - from.getTime())}`;
}

/** Of many spans the sums: a list of a hundred would be no help to whoever hears it. */
function wordsOf(spans: readonly Span[]): string {
  const sums = KINDS.flatMap((kind) => {
    const same = spans.filter((span) => span.kind === kind);
    if (same.length === 0) return [];
    const ms = same.reduce((sum, { from, to }) => sum + to.getTime() - from.getTime(), 0);
    const what =
      kind === "bad" || kind === "good" ? counted(same.length, NAMES[kind].toLowerCase()) : NAMES[kind].toLowerCase();
    return [`${what}, ${duration(ms)}`];
  });
  return `${sums.join("; ")}.`;
}
