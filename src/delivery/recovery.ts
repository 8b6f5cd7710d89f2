import { RESCUE_ROWS_MAX, BROKEN_ROWS_MAX } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../observability/log.ts";
import { type Queue, StoreUnavailable } from "../../db/store.ts";

export interface RescueDeps<Row> {
  /** What the rows are, in the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "orphans">;
  readonly clock: Clock;
  /** Ends the attempt of whoever died in the middle of it. False: another process has done so before. */
  readonly end: (row: Row) => Promise<boolean>;
  /** Hears how many were ended, when there were any. */
  readonly onRescued: (count: number) => void;
}

/** Which active rows nobody is working on. */
export interface Orphaned {
  /** Whatever its lease says: at the start of the only process of this store. */
  readonly everything: boolean;
  /** Not those that this process has in flight or whose result it keeps: a clock that jumped ahead ends no lease of ours. */
  readonly isOurs: (id: string) => boolean;
}

/**
 * Ends what dead processes left active, as interrupted, and then the ordinary way: so that what may be sent again is, and
 * no more often than allowed. Tells how many it has ended and written. A row that can't be ended holds up no other: it is
 * written down, and left to the next rescue. Rejects where the store is away, with what is not ended left for the next time.
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
        // Page behind page: what is our own, or can't be written, holds up nothing that stands behind it.
        const found: readonly Row[] = await queue.orphans(everything ? null : clock.now(), RESCUE_ROWS_MAX, after);
        const last = found.at(-1) ?? null;
        // A row that can't be paged past, since somebody altered it, is ended by others.
        if (last === null || last.id === after?.id) break;
        after = last;
        const tries = await Promise.allSettled(found.filter(({ id }) => !isOurs(id)).map(ended));
        rescued += tries.filter((tried) => tried.status === "fulfilled" && tried.value).length;
        const failed = tries.find((tried) => tried.status === "rejected");
        if (failed !== undefined) throw failed.reason;
      }
    } finally {
      if (rescued > 0) onRescued(rescued);
    }
    return rescued;
  };
}

export interface SetAsideDeps<Row> {
  /** What the rows are, in the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "broken">;
  /** Ends the row and writes it down with its id. False: it is not broken any more. */
  readonly end: (row: Row) => Promise<boolean>;
}

/** Rows whose end could not be written are named once; of more than these some are named again. */
const NAMED_MAX = 1_000;

/**
 * Ends rows that were altered where they are stored, but for those that this process has in flight. One that can't be ended
 * is named once and tried again the next time; it holds up no other. Rejects where the store is away.
 */
export function createSetAside<Row extends { readonly id: string }>(deps: SetAsideDeps<Row>) {
  const { name, log, queue, end } = deps;
  const named = new Set<string>();
  const ended = async (row: Row): Promise<void> => {
    try {
      await end(row);
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      if (named.size >= NAMED_MAX) named.clear();
      if (!named.has(row.id)) {
        log.error("row.not_set_aside", {
          of: name,
          id: row.id,
          error: error instanceof Error ? error.name : "unknown",
        });
      }
      named.add(row.id);
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
