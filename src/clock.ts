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

/** The same clock, whose timers survive what they ring: an error that nobody caught there would end the process. */
export function survivingClock(clock: Clock, onError: (error: unknown) => void): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    after: (delayMs, ring) =>
      clock.after(delayMs, () => {
        try {
          ring();
        } catch (error) {
          onError(error);
        }
      }),
  };
}
