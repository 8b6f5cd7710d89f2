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
  /** From bottom to top. */
  readonly layers: readonly { readonly name: string; readonly look: "good" | "bad" | "busy" | "faint" }[];
  /** Stacked, or drawn in front of each other with the first layer in front. */
  readonly isStacked: boolean;
  /** The values of each bar, one per layer; oldest bar first. */
  readonly bars: readonly (readonly number[])[];
  /** The label of the highest bar. */
  readonly top: (value: number) => string;
  /** The labels of the first and the last bar. */
  readonly ends: readonly [Child, Child];
  /** For screen readers. */
  readonly summary: string;
}

const [BAR_WIDTH, BAR_GAP, HEIGHT] = [8, 2, 100];

/** A bar chart as SVG, without scripts. */
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

/** One path for all bars of a layer, which is a tenth of the size of separate elements. */
function outline(at: number, piece: Piece | null): string {
  if (piece === null) return "";
  return `M${at * (BAR_WIDTH + BAR_GAP)} ${piece.y}h${BAR_WIDTH}v${piece.height}h-${BAR_WIDTH}z`;
}

interface Piece {
  readonly y: number;
  readonly height: number;
}

/** Every value above 0 stays visible. */
const HEIGHT_MIN = 1.5;

/** The position of each layer of a bar; null for 0. */
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

/** The newest runs, each drawn to its own scale. The history shows the same as text. */
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

/** The smallest visible width: an attempt may take milliseconds and a wait an hour. */
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
        aria-label={`${isOne ? "" : `Run ${run}: `}${summaryWords(spans)}`}
      >
        {attemptsOverWaits(spans).map((span) => {
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

/** Attempts are drawn over waits. */
function attemptsOverWaits(spans: readonly Span[]): readonly Span[] {
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

/** Sums by kind, for screen readers. */
function summaryWords(spans: readonly Span[]): string {
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
