/** The grid of an axis: from 0 to at least the highest value, in steps that are easy to read. */
export interface Scale {
  readonly top: number;
  /** From 0 to the top. */
  readonly ticks: readonly number[];
}

/** Grid lines above 0. */
const LINES_MAX = 4;

const STEPS = [1, 2, 5, 10];

/** `leastStep` is the smallest difference between two ticks: 1 for what is counted. */
export function scaleOf(highest: number, leastStep: number): Scale {
  const least = Math.max(leastStep, highest / LINES_MAX);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = power * (STEPS.find((one) => one * power >= least) ?? 10);
  const lines = Math.max(1, Math.ceil(highest / step));
  const ticks = Array.from({ length: lines + 1 }, (_, line) => line * step);
  return { top: lines * step, ticks };
}

/** A value of 0 to `top` as a height of 0 to 100; what is little stays visible. */
export function heightOf(value: number, { top }: Scale): number {
  return value === 0 ? 0 : Math.round(Math.max(HEIGHT_MIN, (value / top) * 100) * 10) / 10;
}

const HEIGHT_MIN = 1.5;
