/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import { heightOf, type Scale, scaleOf } from "./chart-scale.ts";
import { SlotTime } from "./parts.tsx";

/**
 * Charts as SVG from the server. Libraries draw on a canvas by script (uPlot, Chart.js), or write inline styles that the
 * content security policy refuses (ECharts). The drawing stretches with the window; texts stand beside it in HTML, so they
 * don't.
 */

/** A slot of the axis of time. */
export interface ChartSlot {
  readonly at: Date;
  /** One for each series; null: no value. */
  readonly values: readonly (number | null)[];
  /** Where it leads; null: nowhere. */
  readonly href: string | null;
  /** What is shown on hover; null: nothing. */
  readonly tip: string | null;
}

interface Series {
  readonly name: string;
  readonly look: "good" | "bad" | "main" | "second";
  /** Beside its name: the number over all slots. */
  readonly total: Child;
}

interface ChartProps {
  readonly id: string;
  readonly title: string;
  readonly series: readonly Series[];
  readonly slots: readonly ChartSlot[];
  /** Bars on top of each other, or lines. */
  readonly kind: "bars" | "lines";
  /** The words of a tick. */
  readonly label: (value: number) => string;
  /** Milliseconds between two labels of the axis of time, and whether they are times of the day. */
  readonly labelEveryMs: number;
  readonly labelsTimes: boolean;
  /** For screen readers. */
  readonly summary: string;
  /** What is said in place of an empty chart. */
  readonly empty: string;
}

const SLOT = 10;

export function Chart(props: ChartProps) {
  const { id, title, series, slots, kind, label, summary, empty } = props;
  const scale = scaleOf(highestOf(props), 1);
  const hasValues = slots.some(({ values }) => values.some((value) => (value ?? 0) > 0));
  const width = slots.length * SLOT;
  return (
    <figure class="card" aria-labelledby={id}>
      <figcaption class="chart-head">
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
            <span>{hasValues || tick === 0 ? label(tick) : ""}</span>
          ))}
        </div>
        <div class="plot-area">
          <svg viewBox={`0 0 ${width} 100`} preserveAspectRatio="none" role="img" aria-label={summary}>
            <path class="plot-grid" d={gridOf(scale, width)} />
            {kind === "bars" ? <Bars {...props} scale={scale} /> : <Lines {...props} scale={scale} />}
          </svg>
          {hasValues ? null : <p class="plot-empty quiet">{empty}</p>}
          <Slots {...props} />
        </div>
      </div>
    </figure>
  );
}

function highestOf({ slots, kind }: Pick<ChartProps, "slots" | "kind">): number {
  const known = slots.map(({ values }) => values.map((value) => value ?? 0));
  const join = (values: readonly number[]) => values.reduce((one, other) => one + other, 0);
  return Math.max(0, ...known.map((values) => (kind === "bars" ? join(values) : Math.max(0, ...values))));
}

function gridOf({ ticks, top }: Scale, width: number): string {
  return ticks.map((tick) => `M0 ${100 - (tick / top) * 100}h${width}`).join("");
}

type Drawn = Pick<ChartProps, "series" | "slots"> & { readonly scale: Scale };

/** One path for all bars of a series, which is a tenth of the size of separate elements. */
function Bars({ series, slots, scale }: Drawn) {
  const paths = series.map(() => "");
  for (const [index, { values }] of slots.entries()) {
    let ground = 100;
    for (const [at, value] of values.entries()) {
      const height = Math.min(heightOf(value ?? 0, scale), ground);
      if (height === 0) continue;
      ground = Math.round((ground - height) * 10) / 10;
      paths[at] += `M${index * SLOT + 1} ${ground}h${SLOT - 2}v${height}h-${SLOT - 2}z`;
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

/** A line ends where a slot has no value. A value alone is a dot: the line has round ends. */
function Lines({ series, slots, scale }: Drawn) {
  return (
    <>
      {series.map(({ look }, at) => {
        let isOpen = false;
        const parts = slots.map(({ values }, index) => {
          const value = values[at] ?? null;
          const before = isOpen;
          isOpen = value !== null;
          if (value === null) return "";
          const y = Math.round((100 - heightOf(value, scale)) * 10) / 10;
          const isAlone = !before && (slots[index + 1]?.values[at] ?? null) === null;
          // A point between gaps is a dash as wide as its slot, or nobody would see it.
          if (isAlone) return `M${index * SLOT} ${y}h${SLOT}`;
          return `${before ? "L" : "M"}${index * SLOT + SLOT / 2} ${y}`;
        });
        return <path class={`line-${look}`} d={parts.join("")} />;
      })}
    </>
  );
}

/** A label of an earlier slot would touch those of the other axis. */
const LABEL_SLOT_MIN = 2;

/** What the pointer meets: a column for each slot, with few bytes, as there are many. Keyboards and screen readers have the table. */
function Slots({ slots, labelEveryMs, labelsTimes }: Pick<ChartProps, "slots" | "labelEveryMs" | "labelsTimes">) {
  return (
    <div class="plot-slots" aria-hidden="true">
      {slots.map(({ at, href, tip }, index) => {
        const inside = (
          <>
            {index >= LABEL_SLOT_MIN && at.getTime() % labelEveryMs === 0 ? (
              <span class="plot-label small">
                <SlotTime at={at} as={labelsTimes ? "minute" : "date"} />
              </span>
            ) : null}
            {tip === null ? null : (
              <i>
                <SlotTime at={at} as={labelsTimes ? "minute" : "short"} /> {tip}
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

/** The course of a figure, without axes. */
export function Sparkline({ values }: { readonly values: readonly number[] }) {
  const highest = Math.max(...values) || 1;
  const points = values.map((value, index) => `${index} ${Math.round((1 - value / highest) * 240) / 10 + 1}`);
  return (
    <svg class="spark" viewBox={`0 0 ${values.length - 1} 26`} preserveAspectRatio="none" aria-hidden="true">
      <path d={`M${points.join("L")}`} />
    </svg>
  );
}
