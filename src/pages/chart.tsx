/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { RUNS_DRAWN_MAX } from "../config/limits.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import { Time } from "./parts.tsx";
import { runsOf, type RunSpans, type Span, type SpanKind } from "./code.tsx";
import { counted, duration } from "./words.ts";

export interface ChartProps {
  readonly id: string;
  readonly title: string;
  /** What the layers are, from the ground up; the class of each gives its colour. */
  readonly layers: readonly { readonly name: string; readonly look: "good" | "bad" | "busy" | "faint" }[];
  /** Layers stand on each other, or in front of each other, the first in front. */
  readonly isStacked: boolean;
  /** What each bar says, layer by layer; oldest first. */
  readonly bars: readonly (readonly number[])[];
  /** What the highest bar says. */
  readonly top: (value: number) => string;
  /** What stands under the first and the last bar. */
  readonly ends: readonly [Child, Child];
  /** All of it, for whoever does not see it. */
  readonly summary: string;
}

const [BAR_WIDTH, BAR_GAP, HEIGHT] = [8, 2, 100];

/** Bars over time, drawn here, so that there is nothing to load or to run. The page has the same as a table. */
export function Chart(props: ChartProps) {
  const { id, title, layers, isStacked, bars, top, ends } = props;
  const heights = bars.map((values) => (isStacked ? sumOf(values) : Math.max(0, ...values)));
  const highest = Math.max(0, ...heights);
  return (
    <figure class="card" aria-labelledby={id}>
      <figcaption class="chart-head">
        <h2 id={id}>{title}</h2>
        <ul class="legend small">
          {layers.map(({ name, look }) => (
            <li class={`key-${look}`}>{name}</li>
          ))}
        </ul>
      </figcaption>
      <div>
        <p class="chart-top small quiet">{highest === 0 ? "No data yet" : top(highest)}</p>
        <Bars {...props} highest={highest} />
        <p class="chart-ends small quiet">
          <span>{ends[0]}</span>
          <span>{ends[1]}</span>
        </p>
      </div>
    </figure>
  );
}

function Bars({ layers, isStacked, bars, summary, highest }: ChartProps & { readonly highest: number }) {
  const width = bars.length * (BAR_WIDTH + BAR_GAP);
  const drawn = bars.map((values) => pieces(values, isStacked, highest));
  const shown = layers.map(({ look }, layer) => (
    <path class={`bar-${look}`} d={drawn.map((bar, at) => outline(at, bar[layer] ?? null)).join("")} />
  ));
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary}>
      <path class="bar-ground" d={bars.map((_, at) => outline(at, { y: 0, height: HEIGHT })).join("")} />
      {/* What is drawn last stands in front. */}
      {isStacked ? shown : shown.toReversed()}
    </svg>
  );
}

/** One path for all bars of a layer: a tenth of what as many elements would take. */
function outline(at: number, piece: Piece | null): string {
  if (piece === null) return "";
  return `M${at * (BAR_WIDTH + BAR_GAP)} ${piece.y}h${BAR_WIDTH}v${piece.height}h-${BAR_WIDTH}z`;
}

interface Piece {
  readonly y: number;
  readonly height: number;
}

/** What is there can be seen, however small it is beside the rest. */
const HEIGHT_MIN = 1.5;

/** Where each layer of a bar is drawn; null: it has nothing to show. */
function pieces(values: readonly number[], isStacked: boolean, highest: number): readonly (Piece | null)[] {
  let ground = HEIGHT;
  return values.map((value) => {
    if (value === 0) return null;
    const height = Math.min(round(Math.max(HEIGHT_MIN, (value / highest) * HEIGHT)), ground);
    const y = round(ground - height);
    if (isStacked) ground = y;
    return { y, height };
  });
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function sumOf(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}

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
  wait: "Waiting to be sent",
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
