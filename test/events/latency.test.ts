import { expect, test } from "bun:test";
import { LATENCY_STEPS, latencyStepOf, percentileMs } from "../../src/events/tally.ts";

/** Numbers that look like chance and are the same every time. */
function* durations(count: number) {
  for (let seed = 7, made = 0; made < count; made += 1) {
    seed = (seed * 48_271) % 2_147_483_647;
    yield 1 + 10 ** (5 * (seed / 2_147_483_647));
  }
}

test("a percentile is right within a tenth, from a millisecond to minutes", () => {
  const all = [...durations(5_000)].toSorted((a, b) => a - b);
  const counts = new Uint32Array(LATENCY_STEPS);
  for (const ms of all) counts[latencyStepOf(ms)] = (counts[latencyStepOf(ms)] ?? 0) + 1;
  for (const share of [0.1, 0.5, 0.95, 0.99, 1]) {
    const exact = all[Math.ceil(all.length * share) - 1] ?? 0;
    const told = percentileMs(counts, share) ?? 0;
    // Below ten milliseconds a whole number can't be nearer.
    expect({ share, off: Math.abs(told - exact) <= Math.max(1, exact * 0.1) }).toEqual({ share, off: true });
  }
});

test("any duration has a step, and nothing counted has no percentile", () => {
  const steps = [0, 0.2, 1, 3_600_000, 1e12, Number.MAX_SAFE_INTEGER].map(latencyStepOf);
  for (const step of steps) expect(step >= 0 && step < LATENCY_STEPS).toBe(true);
  expect(steps).toEqual(steps.toSorted((a, b) => a - b));
  expect(percentileMs(new Uint32Array(LATENCY_STEPS), 0.5)).toBeNull();
});
