/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";

/** A piece of the time that a chart shows: what stands in it, from the ground up, and in words. */
export interface Bar {
  readonly values: readonly number[];
  readonly words: string;
}

export interface ChartProps {
  readonly id: string;
  readonly title: string;
  /** What the layers are, from the ground up; the class of each gives its colour. */
  readonly layers: readonly { readonly name: string; readonly look: "good" | "bad" | "busy" | "faint" }[];
  /** Layers stand on each other, or in front of each other, the first in front. */
  readonly isStacked: boolean;
  /** Oldest first. */
  readonly bars: readonly Bar[];
  /** What the highest bar says. */
  readonly top: (value: number) => string;
  /** What stands under the first and the last bar. */
  readonly ends: readonly [Child, Child];
  /** All of it, for whoever does not see it. */
  readonly summary: string;
  /** The same as a table. */
  readonly children?: Child;
}

const [BAR_WIDTH, BAR_GAP, HEIGHT] = [8, 2, 100];

/** Bars over time, drawn here, so that there is nothing to load or to run; the same stands below as a table. */
export function Chart(props: ChartProps) {
  const { id, title, layers, isStacked, bars, top, ends, children } = props;
  const heights = bars.map(({ values }) => (isStacked ? sum(values) : Math.max(0, ...values)));
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
      <details>
        <summary>The same as a table</summary>
        {children}
      </details>
    </figure>
  );
}

function Bars({ layers, isStacked, bars, summary, highest }: ChartProps & { readonly highest: number }) {
  const width = bars.length * (BAR_WIDTH + BAR_GAP);
  return (
    <svg class="chart" viewBox={`0 0 ${width} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={summary}>
      {bars.map(({ values, words }, at) => (
        <g>
          <title>{words}</title>
          <rect class="bar-ground" x={at * (BAR_WIDTH + BAR_GAP)} y={0} width={BAR_WIDTH} height={HEIGHT} />
          {pieces(values, isStacked, highest).map(({ layer, y, height }) => (
            <rect
              class={`bar-${layers[layer]?.look ?? "busy"}`}
              x={at * (BAR_WIDTH + BAR_GAP)}
              y={y}
              width={BAR_WIDTH}
              height={height}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}

interface Piece {
  readonly layer: number;
  readonly y: number;
  readonly height: number;
}

/** What is there can be seen, however small it is beside the rest. */
const HEIGHT_MIN = 1.5;

function pieces(values: readonly number[], isStacked: boolean, highest: number): readonly Piece[] {
  const heightOf = (value: number) => round(Math.max(HEIGHT_MIN, (value / highest) * HEIGHT));
  const drawn: Piece[] = [];
  let ground = HEIGHT;
  values.forEach((value, layer) => {
    if (value === 0) return;
    const height = Math.min(heightOf(value), ground);
    drawn.push({ layer, y: round(ground - height), height });
    if (isStacked) ground = round(ground - height);
  });
  // The last one drawn stands in front.
  return isStacked ? drawn : drawn.toReversed();
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

function sum(values: readonly number[]): number {
  return values.reduce((all, value) => all + value, 0);
}
