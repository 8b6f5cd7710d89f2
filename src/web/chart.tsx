/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";

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
        <p class="chart-top small quiet">{highest === 0 ? "Nothing yet" : top(highest)}</p>
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
