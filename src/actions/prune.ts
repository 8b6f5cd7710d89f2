import { PRUNE_REST_MS } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { UpkeepStore } from "../ports/upkeep.ts";

export interface PruneDeps {
  readonly upkeep: Pick<UpkeepStore, "prune">;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "info">;
}

/** Deletes what finished too long ago, step by step; ends early when it is to stop. */
export type Prune = (now: Date, stop: AbortSignal) => Promise<void>;

const PRUNE_DAY_MS = 86_400_000;

/** `RETENTION_DAYS`. Between two steps it rests, so that even a first pass over years of actions delays nobody's write. */
export function createPrune({ upkeep, clock, log }: PruneDeps, days: number): Prune {
  return async (now, stop) => {
    const times = { now, finishedUntil: new Date(now.getTime() - days * PRUNE_DAY_MS) };
    let deleted = 0;
    for (let after: string | null = ""; after !== null && !stop.aborted;) {
      const step = await upkeep.prune(times, after);
      deleted += step.deleted;
      after = step.next;
      if (step.deleted > 0) await new Promise<void>((resolve) => void clock.after(PRUNE_REST_MS, resolve));
    }
    if (deleted > 0) log.info("actions.pruned", { count: deleted });
  };
}
