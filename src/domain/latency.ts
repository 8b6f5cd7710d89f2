/** Four steps to the double: a percentile is off by a tenth at most. */
const STEPS_PER_DOUBLING = 4;

/** As many as it takes from a millisecond to an hour, the longest attempt that the settings allow. */
export const LATENCY_STEPS = 22 * STEPS_PER_DOUBLING;

/** The step in which a duration is counted. */
export function latencyStepOf(ms: number): number {
  const step = ms < 1 ? 0 : Math.floor(Math.log2(ms) * STEPS_PER_DOUBLING);
  return Math.min(step, LATENCY_STEPS - 1);
}

/** The duration that this share of the counted ones does not exceed, in milliseconds; null: none was counted. */
export function percentileMs(counts: Uint32Array, share: number): number | null {
  const all = counts.reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  const wanted = Math.max(1, Math.ceil(all * share));
  let seen = 0;
  const step = counts.findIndex((count) => (seen += count) >= wanted);
  // The middle of the step.
  return Math.round(2 ** ((step + 0.5) / STEPS_PER_DOUBLING));
}
