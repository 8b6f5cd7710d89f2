import { DomainError } from "../domain/errors.ts";
import { RATE_WINDOW_MS, REFUSALS_HELD_MAX, REFUSAL_HELD_MS } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";

/** How many requests an account may make (spec "Limits"). */
export interface RateLimit {
  /** Counts requests of an account; throws `rate_limited` when they are too many. Refused requests count too. */
  count(accountId: string, requests: number): void;
  /**
   * Resolves when a refusal may go out: at once, or about a second later where the account has been refused as often in
   * this one as it may ask, and asks on. Who waits for an answer before it asks again is then slow enough for others.
   */
  slowDown(accountId: string): Promise<void>;
}

interface Count {
  requests: number;
  refusals: number;
}

/** Windows of one second, of this process alone; `perSecond` 0 turns it off. */
export function createRateLimit(clock: Clock, perSecond: number): RateLimit {
  let window = Number.NEGATIVE_INFINITY;
  let counts = new Map<string, Count>();
  let held = 0;
  let heldEver = 0;
  return {
    count(accountId, requests) {
      if (perSecond === 0) return;
      const now = Math.floor(clock.monotonicMs() / RATE_WINDOW_MS);
      if (now !== window) {
        // One map for all accounts, thrown away with its window: nothing to sweep.
        window = now;
        counts = new Map();
      }
      const count = counts.get(accountId) ?? { requests: 0, refusals: 0 };
      counts.set(accountId, count);
      count.requests += requests;
      if (count.requests <= perSecond) return;
      count.refusals += 1;
      throw new DomainError("rate_limited", `This account may make ${perSecond} requests a second; wait a second.`);
    },
    async slowDown(accountId) {
      if ((counts.get(accountId)?.refusals ?? 0) <= perSecond || held >= REFUSALS_HELD_MAX) return;
      held += 1;
      heldEver += 1;
      // Spread by the golden ratio: let go together they would come back together, and what is taken of them be one burst.
      const waitMs = REFUSAL_HELD_MS * (0.5 + ((heldEver * 0.618_034) % 1));
      await new Promise<void>((resolve) => void clock.after(waitMs, resolve));
      held -= 1;
    },
  };
}
