import { RESCUE_ROWS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import { type Queue, StoreUnavailable } from "../ports/store.ts";

export interface RescueDeps<Row> {
  /** What the rows are, in the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "orphans">;
  readonly clock: Clock;
  /** Ends the attempt of whoever died in the middle of it. */
  readonly end: (row: Row) => Promise<void>;
  /** Hears how many there were, when there were any. */
  readonly onRescued: (count: number) => void;
}

/** Which active rows nobody is working on. */
export interface Orphaned {
  /** Whatever its lease says: at the start of the only process of this store. */
  readonly everything: boolean;
  /** Not those that this process has in flight: a clock that jumped ahead ends no lease of ours. */
  readonly isOurs: (id: string) => boolean;
}

/**
 * Ends what dead processes left active, as interrupted, and then the ordinary way: so that what may be sent again is, and
 * no more often than allowed. Tells how many. A row that can't be ended holds up no other: it is written down, and left to
 * the next rescue. Rejects where the store is away.
 */
export function createRescue<Row extends { readonly id: string }>(deps: RescueDeps<Row>) {
  const { name, log, queue, clock, end, onRescued } = deps;
  const ended = async (row: Row): Promise<number> => {
    try {
      await end(row);
      return 1;
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.error("rescue.failed", { of: name, id: row.id, error: error instanceof Error ? error.name : "unknown" });
      return 0;
    }
  };
  return async ({ everything, isOurs }: Orphaned): Promise<number> => {
    let rescued = 0;
    const tried = new Set<string>();
    while (true) {
      const found = await queue.orphans(everything ? null : clock.now(), RESCUE_ROWS_MAX);
      // What is our own, or could not be written down, would be found again for ever: it is left to the next rescue.
      const orphans = found.filter(({ id }) => !isOurs(id) && !tried.has(id));
      if (orphans.length === 0) break;
      for (const { id } of orphans) tried.add(id);
      for (const count of await Promise.all(orphans.map(ended))) rescued += count;
      if (found.length < RESCUE_ROWS_MAX) break;
    }
    if (rescued > 0) onRescued(rescued);
    return rescued;
  };
}
