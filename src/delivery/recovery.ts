import { RESCUE_ROWS_MAX, BROKEN_ROWS_MAX } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../observability/log.ts";
import { type Queue, StoreUnavailable } from "../../db/store.ts";

interface RescueDeps<Row> {
  /** What the rows are, in the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "orphans">;
  readonly clock: Clock;
  /** Ends the interrupted attempt. False: another process has done so already. */
  readonly end: (row: Row) => Promise<boolean>;
  /** Called with the number of rows ended, when there were any. */
  readonly onRescued: (count: number) => void;
}

/** Which active rows nobody is working on. */
export interface Orphaned {
  /** All active rows, whatever their lease: at the start of the only process of this store. */
  readonly everything: boolean;
  /** Rows that this process works on: a clock that jumped ahead must not end their leases. */
  readonly isOurs: (id: string) => boolean;
}

/**
 * Ends what dead processes left active as interrupted attempts, so that retries follow the usual rules. Returns how
 * many it ended. A row that can't be ended is logged, left to the next rescue, and blocks no other. Rejects when the
 * store is away; the rest is left for the next time.
 */
export function createRescue<Row extends { readonly id: string }>(deps: RescueDeps<Row>) {
  const { name, log, queue, clock, end, onRescued } = deps;
  const ended = async (row: Row): Promise<boolean> => {
    try {
      return await end(row);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      log.error("rescue.failed", { of: name, id: row.id, error: error instanceof Error ? error.name : "unknown" });
      return false;
    }
  };
  return async ({ everything, isOurs }: Orphaned): Promise<number> => {
    let rescued = 0;
    try {
      for (let after: Row | null = null; ;) {
        // Paged, so that rows of our own and rows that can't be written don't hide those behind them.
        const found: readonly Row[] = await queue.orphans(everything ? null : clock.now(), RESCUE_ROWS_MAX, after);
        const last = found.at(-1) ?? null;
        // An altered row that the cursor can't pass; `createSetAside` ends it.
        if (last === null || last.id === after?.id) break;
        after = last;
        const results = await Promise.allSettled(found.filter(({ id }) => !isOurs(id)).map(ended));
        rescued += results.filter((result) => result.status === "fulfilled" && result.value).length;
        const failed = results.find((result) => result.status === "rejected");
        if (failed !== undefined) throw failed.reason;
      }
    } finally {
      if (rescued > 0) onRescued(rescued);
    }
    return rescued;
  };
}

interface SetAsideDeps<Row> {
  /** What the rows are, in the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "broken">;
  /** Ends the row and logs its id. False: it is not broken any more. */
  readonly end: (row: Row) => Promise<boolean>;
}

/** Ids that were logged because they could not be ended; beyond this some are logged again. */
const LOGGED_MAX = 1_000;

/**
 * Ends rows that were altered in the database, except those this process has in flight. One that can't be ended is
 * logged once, retried the next time, and blocks no other. Rejects when the store is away.
 */
export function createSetAside<Row extends { readonly id: string }>(deps: SetAsideDeps<Row>) {
  const { name, log, queue, end } = deps;
  const logged = new Set<string>();
  const ended = async (row: Row): Promise<void> => {
    try {
      await end(row);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (logged.size >= LOGGED_MAX) logged.clear();
      if (!logged.has(row.id)) {
        log.error("row.not_set_aside", {
          of: name,
          id: row.id,
          error: error instanceof Error ? error.name : "unknown",
        });
      }
      logged.add(row.id);
    }
  };
  return async (isOurs: (id: string) => boolean): Promise<void> => {
    for (let after = ""; ;) {
      const found = await queue.broken(BROKEN_ROWS_MAX, after);
      const last = found.at(-1);
      if (last === undefined) return;
      after = last.id;
      for (const row of found) if (!isOurs(row.id)) await ended(row);
    }
  };
}
