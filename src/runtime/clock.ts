/** The machine's own clocks. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** The same clock, but errors thrown by timers go to `onError`: uncaught, they would end the process. */
export function catchTimerErrors(clock: Clock, onError: (error: unknown) => void): Clock {
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

/** Source of time. Due times use the wall clock, durations the monotonic one. */
export interface Clock {
  now(): Date;
  monotonicMs(): number;
  /** Calls `run` once after the delay unless the returned function is called first. */
  after(delayMs: number, run: () => void): () => void;
}
