import { timeOf } from "./core.ts";

/** Twice the input may at most triple the time: four times the input takes at most nine times as long. */
export const GROWTH_MAX = 9;

/** Linear work takes four times as long, quadratic work sixteen times. */
const TIMES_THE_INPUT = 4;

/** A first turn is slow, since nothing is compiled then. */
const PAIRS_MIN = 3;

/** Other work may take the caches for a while: too much growth counts only when it lasts this long. */
const MEASURE_MS_MAX = 3_000;

/**
 * How many times as long the work takes with four times the input: of the least own times of interleaved turns, since other
 * work on the machine may hold up any of them. More than `GROWTH_MAX` is measured again and again.
 */
export function growthOf(workOn: (size: number) => () => unknown, size: number): number {
  const [few, many] = [workOn(size), workOn(TIMES_THE_INPUT * size)];
  few();
  many();
  const endMs = performance.now() + MEASURE_MS_MAX;
  let [fewMs, manyMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let pair = 1; ; pair += 1) {
    fewMs = Math.min(fewMs, timeOf(few));
    manyMs = Math.min(manyMs, timeOf(many));
    const isEnough = manyMs <= GROWTH_MAX * fewMs || performance.now() > endMs;
    if (isEnough && pair >= PAIRS_MIN) return manyMs / fewMs;
  }
}
