import { RESCUE_ROWS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { ActionStore } from "../ports/store.ts";
import type { Settle } from "./settlement.ts";

export interface RescueDeps {
  readonly actions: ActionStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly settle: Settle;
}

/** Which active actions nobody is working on. */
export interface Orphaned {
  /** Whatever its lease says: at the start of the only process of this store. */
  readonly everything: boolean;
  /** Not those that this process has in flight: a clock that jumped ahead ends no lease of ours. */
  readonly isOurs: (actionId: string) => boolean;
}

/**
 * Ends the attempts of whoever died in the middle of one: `unknown`, "interrupted; the target may have received it", and
 * then the ordinary way, so that what may be sent again is, and no more often than allowed. Tells how many.
 */
export function createRescue({ actions, clock, log, metrics, settle }: RescueDeps) {
  return async ({ everything, isOurs }: Orphaned): Promise<number> => {
    let rescued = 0;
    while (true) {
      const found = await actions.orphans(everything ? null : clock.now(), RESCUE_ROWS_MAX);
      const orphans = found.filter(({ id }) => !isOurs(id));
      // A pass that finds only our own would find them again for ever.
      if (orphans.length === 0) break;
      await Promise.all(
        orphans.map((action) =>
          settle(action, { outcome: { kind: "unknown", fault: "interrupted" }, durationMs: null }),
        ),
      );
      rescued += orphans.length;
      if (found.length < RESCUE_ROWS_MAX) break;
    }
    if (rescued > 0) {
      metrics.rescued(rescued);
      log.warn("actions.rescued", { count: rescued });
    }
    return rescued;
  };
}
