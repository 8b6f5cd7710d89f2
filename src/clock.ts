import type { Clock } from "./ports/clock.ts";

/** The machine's own clocks. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  after(delayMs, ring) {
    const timer = setTimeout(ring, delayMs);
    return () => clearTimeout(timer);
  },
};
