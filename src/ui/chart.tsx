/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { listedTime } from "./parts.tsx";

/**
 * Charts as SVG from the server. Libraries draw on a canvas by script (uPlot, Chart.js) or write inline styles that our
 * content security policy refuses (ECharts). The drawing stretches with the window, so texts are HTML beside it.
 */

export interface ChartSlot {
  readonly at: Date;
  /** One value for each series; null for none. */
  readonly values: readonly (number | null)[];
  /** Where it links to; null for no link. */
  readonly href: string | null;
  /** The text on hover; null for none. */
  readonly tip: string | null;
}

interface Series {
  readonly name: string;
  readonly look: "good" | "bad" | "main" | "second";
  /** The total over all slots, shown beside the name. */
  readonly total: Child;
}

interface ChartProps {
  readonly id: string;
  readonly title: string;
  readonly series: readonly Series[];
  readonly slots: readonly ChartSlot[];
  /** Whether a slot's bars are stacked. Otherwise a lower one is drawn in front of a higher one. */
  readonly isStacked: boolean;
  /** The text of a tick. */
  readonly label: (value: number) => string;
  /** Milliseconds between two labels of the time axis, and whether they are times of day. */
  readonly labelEveryMs: number;
  readonly labelsTimes: boolean;
  readonly summary: string;
  /** The text in place of an empty chart. */
  readonly empty: string;
}

const SLOT = 10;

export function Chart(props: ChartProps) {
  const { id, title, series, slots, isStacked, label, summary, empty } = props;
  const heights = slots.map(({ values }) => {
    const known = values.map((value) => value ?? 0);
    return isStacked ? known.reduce((sum, value) => sum + value, 0) : Math.max(...known);
  });
  const highest = Math.max(0, ...heights);
  const scale = chartScale(highest);
  const width = slots.length * SLOT;
  return (
    <figure class="card" aria-labelledby={id}>
      <figcaption class="between">
        <h2 id={id}>{title}</h2>
        <ul class="legend small">
          {series.map(({ name, look, total }) => (
            <li class={`key-${look}`}>
              {name} <b>{total}</b>
            </li>
          ))}
        </ul>
      </figcaption>
      <div class="plot">
        <div class="plot-ticks small" aria-hidden="true">
          {scale.ticks.map((tick) => (
            <span>{highest > 0 || tick === 0 ? label(tick) : ""}</span>
          ))}
        </div>
        <div class="plot-area">
          <svg viewBox={`0 0 ${width} 100`} preserveAspectRatio="none" role="img" aria-label={summary}>
            <path
              class="plot-grid"
              d={scale.ticks.map((tick) => `M0 ${100 - (tick / scale.top) * 100}h${width}`).join("")}
            />
            <Bars {...props} scale={scale} />
          </svg>
          {highest > 0 ? null : <p class="plot-empty quiet">{empty}</p>}
          <Slots {...props} />
        </div>
      </div>
    </figure>
  );
}

type BarsProps = Pick<ChartProps, "series" | "slots" | "isStacked"> & { readonly scale: Scale };

/** Draws all bars of a series as one path, which takes a tenth of the bytes of separate elements. */
function Bars({ series, slots, isStacked, scale }: BarsProps) {
  const paths = series.map(() => "");
  for (const [index, { values }] of slots.entries()) {
    let ground = 100;
    for (const [at, value] of values.entries()) {
      const height = Math.min(barHeight(value ?? 0, scale), ground);
      if (height === 0) continue;
      const top = Math.round((ground - height) * 10) / 10;
      paths[at] += `M${index * SLOT + 1} ${top}h${SLOT - 2}v${height}h-${SLOT - 2}z`;
      if (isStacked) ground = top;
    }
  }
  return (
    <>
      {series.map(({ look }, at) => (
        <path class={`bar-${look}`} d={paths[at]} />
      ))}
    </>
  );
}

/** The first slot with a label: earlier labels would touch those of the other axis. */
const LABEL_SLOT_MIN = 2;

/** Columns for the pointer, one for each slot, in few bytes. Keyboards and screen readers have the table. */
function Slots({ slots, labelEveryMs, labelsTimes }: Pick<ChartProps, "slots" | "labelEveryMs" | "labelsTimes">) {
  return (
    <div class="plot-slots" aria-hidden="true">
      {slots.map(({ at, href, tip }, index) => {
        const inside = (
          <>
            {index >= LABEL_SLOT_MIN && at.getTime() % labelEveryMs === 0 ? (
              <span class="plot-label small">{listedTime(at, labelsTimes ? "minute" : "date")}</span>
            ) : null}
            {tip === null ? null : (
              <i>
                {listedTime(at, labelsTimes ? "minute" : "short")} {tip}
              </i>
            )}
          </>
        );
        return href === null ? (
          <span>{inside}</span>
        ) : (
          <a href={href} tabindex={-1}>
            {inside}
          </a>
        );
      })}
    </div>
  );
}

/**
 * The height of an hour's cell: no calls, no failures, failed attempts, failed actions. The higher, the worse. Cells are
 * centred on a line.
 */
const STRIP_HEIGHTS = { none: 2, good: 8, wait: 11, bad: 14 };

export type StripCell = keyof typeof STRIP_HEIGHTS;

/** A row of cells of equal width, oldest first. Draws them as dashes of thick lines, which takes few bytes. */
export function Strip({ cells, label }: { readonly cells: readonly StripCell[]; readonly label: string }) {
  const paths: Record<StripCell, string> = { none: "", good: "", wait: "", bad: "" };
  for (let from = 0, to = 0; from < cells.length; from = to) {
    const look = cells[from] ?? "none";
    while (cells[to] === look) to += 1;
    paths[look] += `M${from * 4} ${14 - STRIP_HEIGHTS[look] / 2}h${(to - from) * 4 - 1}`;
  }
  return (
    <svg class="strip" viewBox={`0 0 ${cells.length * 4 - 1} 14`} preserveAspectRatio="none" role="img">
      <title>{label}</title>
      {Object.entries(paths).map(([look, path]) => (path === "" ? null : <path class={`strip-${look}`} d={path} />))}
    </svg>
  );
}

/** A bar for each day, without axes. A day with a value shows at least a line. */
export function DayBars({ days, label }: { readonly days: readonly number[]; readonly label: string }) {
  const highest = Math.max(...days) || 1;
  const path = days.map((value, index) => {
    const height = value === 0 ? 0 : Math.max(1, Math.round((value / highest) * 14));
    return height === 0 ? "" : `M${index * 5} ${14 - height}h4v${height}h-4z`;
  });
  return (
    <svg class="day-bars" viewBox={`0 0 ${days.length * 5 - 1} 15`} role="img">
      <title>{label}</title>
      <path class="day-bars-ground" d={`M0 14.5h${days.length * 5 - 1}`} />
      <path d={path.join("")} />
    </svg>
  );
}

/** A line of a figure over time, without axes. */
export function Sparkline({ values }: { readonly values: readonly number[] }) {
  const highest = Math.max(...values) || 1;
  const points = values.map((value, index) => `${index} ${Math.round((1 - value / highest) * 240) / 10 + 1}`);
  return (
    <svg class="spark" viewBox={`0 0 ${values.length - 1} 26`} preserveAspectRatio="none" aria-hidden="true">
      <path d={`M${points.join("L")}`} />
    </svg>
  );
}

/** The grid of an axis, from 0 to at least the highest value, in round steps. */
export type Scale = ReturnType<typeof chartScale>;

const LINES_MAX = 4;

const STEPS = [1, 2, 5, 10];

export function chartScale(highest: number) {
  const least = Math.max(1, highest / LINES_MAX);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * (STEPS.find((one) => one * power >= least) ?? 10);
  const lines = Math.max(1, Math.ceil(highest / step));
  const ticks = Array.from({ length: lines + 1 }, (_, line) => line * step);
  return { top: lines * step, ticks };
}

/** The height, 0 to 100, of a value from 0 to `top`. Small values stay visible. */
export function barHeight(value: number, { top }: Scale): number {
  return value === 0 ? 0 : Math.round(Math.max(HEIGHT_MIN, (value / top) * 100) * 10) / 10;
}

const HEIGHT_MIN = 1.5;
