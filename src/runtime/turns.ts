import { setImmediate as nextTurn } from "node:timers/promises";
import type { Clock } from "../core/clock.ts";
import { TURN_MS_MAX } from "../core/limits.ts";

/** What a long loop awaits after each step: others get their turn where this one has held the event loop for `TURN_MS_MAX`. */
export type YieldTurn = () => Promise<void>;

export function createYield(clock: Pick<Clock, "monotonicMs">): YieldTurn {
  let since = clock.monotonicMs();
  return async () => {
    if (clock.monotonicMs() - since < TURN_MS_MAX) return;
    await nextTurn();
    since = clock.monotonicMs();
  };
}
