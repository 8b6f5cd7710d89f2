import { DAY_MS, HOUR_MS, MINUTE_MS } from "./limits.ts";

/** A timer that rings so much later was held up with the whole process. */
const STALL_MS_MIN = 500;

/** A longer timer rings at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

/** The machine's own clocks. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, Math.min(delayMs, TIMER_MS_MAX));
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

/** Resolves after the delay. */
export function sleep(clock: Pick<Clock, "after">, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.after(delayMs, resolve));
}

/**
 * Calls `run` after the delay, unless it was cancelled. If the process itself stood still, as by SIGSTOP, what is waited for had
 * no time either and may come at once: then it waits once more.
 */
export function afterRunning(
  clock: Pick<Clock, "after" | "monotonicMs">,
  delayMs: number,
  run: () => void,
): () => void {
  const dueMs = clock.monotonicMs() + delayMs;
  let cancel = clock.after(delayMs, () => {
    if (clock.monotonicMs() - dueMs < STALL_MS_MIN) run();
    else cancel = clock.after(delayMs, run);
  });
  return () => cancel();
}

/** What the work resolves with, or null if it takes longer; it goes on all the same. */
export async function within<T>(clock: Pick<Clock, "after">, limitMs: number, work: Promise<T>): Promise<T | null> {
  const isOver = Promise.withResolvers<null>();
  const cancel = clock.after(limitMs, () => isOver.resolve(null));
  return Promise.race([work, isOver.promise]).finally(cancel);
}

/** Source of time. Due times use the wall clock, durations the monotonic one. */
export interface Clock {
  now(): Date;
  monotonicMs(): number;
  /** Calls `run` once after the delay, or after 24 days if that is sooner, unless the returned function is called first. */
  after(delayMs: number, run: () => void): () => void;
}

/** Formats times in UTC. The format is made at its first use: a process's first one takes 8 ms, which a start can do without. */
export function utcFormat(parts: Intl.DateTimeFormatOptions): (at: Date) => string {
  let format: Intl.DateTimeFormat | null = null;
  return (at) => (format ??= new Intl.DateTimeFormat("en-GB", { timeZone: "UTC", ...parts })).format(at);
}

/** "5 min ago". */
export function timeAgo(ms: number): string {
  return ms < MINUTE_MS ? "just now" : `${timeSpan(ms)} ago`;
}

/** "in 38 s", "in 6 d". */
export function timeUntil(ms: number): string {
  return ms < 1_000 ? "now" : `in ${timeSpan(ms)}`;
}

/** The largest whole unit: "38 s", "6 d". */
export function timeSpan(ms: number): string {
  if (ms < MINUTE_MS) return `${Math.floor(ms / 1_000)} s`;
  if (ms < HOUR_MS) return `${Math.floor(ms / MINUTE_MS)} min`;
  return ms < DAY_MS ? `${Math.floor(ms / HOUR_MS)} h` : `${Math.floor(ms / DAY_MS)} d`;
}
