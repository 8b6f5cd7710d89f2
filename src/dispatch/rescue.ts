import { RESCUE_ROWS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Queue } from "../ports/store.ts";

export interface RescueDeps<Row> {
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
 * no more often than allowed. Tells how many.
 */
export function createRescue<Row extends { readonly id: string }>(deps: RescueDeps<Row>) {
  const { queue, clock, end, onRescued } = deps;
  return async ({ everything, isOurs }: Orphaned): Promise<number> => {
    let rescued = 0;
    const tried = new Set<string>();
    while (true) {
      const found = await queue.orphans(everything ? null : clock.now(), RESCUE_ROWS_MAX);
      // What is our own, or could not be written down, would be found again for ever: it is left to the next rescue.
      const orphans = found.filter(({ id }) => !isOurs(id) && !tried.has(id));
      if (orphans.length === 0) break;
      for (const { id } of orphans) tried.add(id);
      await Promise.all(orphans.map(end));
      rescued += orphans.length;
      if (found.length < RESCUE_ROWS_MAX) break;
    }
    if (rescued > 0) onRescued(rescued);
    return rescued;
  };
}
