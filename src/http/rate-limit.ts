import { DomainError } from "../domain/errors.ts";
import { RATE_WINDOW_MS } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";

/** Counts requests of an account; throws `rate_limited` when they are too many. Refused requests count too. */
export type RateLimit = (accountId: string, requests: number) => void;

/** Windows of one second, of this process alone; `perSecond` 0 turns it off. */
export function createRateLimit(clock: Clock, perSecond: number): RateLimit {
  let window = Number.NEGATIVE_INFINITY;
  let counts = new Map<string, number>();
  return (accountId, requests) => {
    if (perSecond === 0) return;
    const now = Math.floor(clock.monotonicMs() / RATE_WINDOW_MS);
    if (now !== window) {
      // One map for all accounts, thrown away with its window: nothing to sweep.
      window = now;
      counts = new Map();
    }
    const count = (counts.get(accountId) ?? 0) + requests;
    counts.set(accountId, count);
    if (count > perSecond) {
      throw new DomainError("rate_limited", `This account may make ${perSecond} requests a second; wait a second.`);
    }
  };
}
