/** The machine's own clocks. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** The same clock, whose timers survive what they ring: an error that nobody caught there would end the process. */
export function survivingClock(clock: Clock, onError: (error: unknown) => void): Clock {
  return {
    now: () => clock.now(),
    monotonicMs: () => clock.monotonicMs(),
    after: (delayMs, run) =>
      clock.after(delayMs, () => {
        try {
          run();
        } catch (error) {
          onError(error);
        }
      }),
  };
}

/** Time comes in here. Due times are read from the wall, durations from the monotonic clock (decisions 11). */
export interface Clock {
  now(): Date;
  monotonicMs(): number;
  /** Rings once after the delay unless the returned function is called first. */
  after(delayMs: number, run: () => void): () => void;
}
