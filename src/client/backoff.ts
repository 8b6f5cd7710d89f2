export interface Backoff {
  readonly baseMs: number;
  readonly capMs: number;
}

/** By how much two clients that failed together may drift apart. */
const JITTER = 0.25;

/** Milliseconds to rest after so many tries in vain before this one; it doubles each time, and varies by a quarter. */
export function backoffMs(before: number, { baseMs, capMs }: Backoff, chance = Math.random()): number {
  return Math.min(capMs, baseMs * 2 ** before) * (1 + JITTER * (2 * chance - 1));
}
