import type { Clock } from "../core/clock.ts";
import { RECOVERY_ROWS_MAX, CLOCK_TOLERANCE_MS, RESCHEDULE_ROWS_MAX } from "../core/limits.ts";
import type { RecoveryLease } from "../runtime/jobs.ts";
import { errorName, type Log } from "../observability/log.ts";
import { type Queue, StoreUnavailable } from "../core/store.ts";
import type { UnwrittenResults } from "./in-flight.ts";

/** How to end rows that no attempt of this process works on. */
export interface RowRecovery<Row> {
  /** Ends a row that a dead process left active. False: another process has ended it already. */
  readonly recover: (row: Row) => Promise<boolean>;
  /** Gives back a claim that was committed although its response was lost. */
  readonly unclaim: (row: Row) => Promise<void>;
  /** Called with the number of rows recovered, when there were any. */
  readonly onRescued: (count: number) => void;
}

export interface LeasedRow {
  readonly id: string;
  readonly leaseUntil: Date | null;
}

/** What a rescue needs of the loop whose rows it ends. */
interface Rescue<Row> {
  /** What the rows are, for the log. */
  readonly name: string;
  readonly log: Pick<Log, "error">;
  readonly queue: Pick<Queue<Row>, "orphans">;
  readonly clock: Clock;
  readonly recovery: Pick<RowRecovery<Row>, "recover" | "onRescued">;
  /** Whether this process works on the row. Needed because a clock that jumped ahead would end its lease. */
  readonly isOurs: (row: Row) => boolean;
  /** Null: no other process has rows in this store. */
  readonly lease: RecoveryLease | null;
}

/**
 * Records what dead processes left active as interrupted attempts, so that the usual rules decide about retries. `everything`:
 * all active rows, even before their lease has ended; for the start of the only process of a store. A row that can't be ended
 * is logged and tried again in the next pass. Rejects when the store is unavailable. Does nothing while another node does it.
 */
export async function rescue<Row extends LeasedRow>(of: Rescue<Row>, everything: boolean): Promise<void> {
  const { queue, clock, recovery, isOurs, lease } = of;
  let rescued = 0;
  // The lease is taken when there is something to end, which is rare, renewed for each page, and released at the end.
  let isTaken = false;
  try {
    for (let after: Row | null = null; ;) {
      // Read in pages, so that our own rows and rows that can't be written don't hide those behind them.
      const found: readonly Row[] = await queue.orphans(everything ? null : clock.now(), RECOVERY_ROWS_MAX, after);
      const last = found.at(-1) ?? null;
      // The cursor can't pass a row whose sort key was altered. Such rows come last, so stop there.
      if (last === null || last.id === after?.id) break;
      after = last;
      const orphans = found.filter((row) => !isOurs(row) && (lease === null || lease.isOver(row.leaseUntil)));
      if (orphans.length > 0 && lease !== null && !(isTaken = await lease.take())) break;
      const results = await Promise.allSettled(orphans.map((row) => recover(of, row)));
      rescued += results.filter((result) => result.status === "fulfilled" && result.value).length;
      const failed = results.find((result) => result.status === "rejected");
      if (failed !== undefined) throw failed.reason;
    }
  } finally {
    // A lease that can't be released expires.
    if (isTaken) await lease?.release().catch(() => {});
    if (rescued > 0) recovery.onRescued(rescued);
  }
}

async function recover<Row extends LeasedRow>({ name, log, recovery }: Rescue<Row>, row: Row): Promise<boolean> {
  try {
    return await recovery.recover(row);
  } catch (error) {
    if (error instanceof StoreUnavailable) throw error;
    log.error("rescue.failed", { of: name, id: row.id, error: errorName(error) });
    return false;
  }
}

/**
 * Moves the due times of a queue after the wall clock was set back. They are wall-clock times, since they outlive the process,
 * so every row would wait longer. A clock set forward or a suspended machine only makes rows due earlier, which does no harm.
 */
export function createClockRepair(
  clock: Clock,
  queue: Pick<Queue<unknown>, "reschedule">,
  unwritten: Pick<UnwrittenResults, "count">,
) {
  /** By how much the wall clock is ahead of the monotonic clock. */
  const readAheadMs = () => clock.now().getTime() - clock.monotonicMs();
  let aheadMs = readAheadMs();
  /** How far the wall clock was set back since rows were last moved. */
  let setBackMs = 0;
  let isDue = false;

  return {
    /** Whether the last move failed, or may have come too early for some rows. */
    isDue: () => isDue,
    /** How far the wall clock was set back since the last look; 0: not at all, or by a small step, which the next look counts too. */
    look(): number {
      const nowAheadMs = readAheadMs();
      const byMs = Math.round(aheadMs - nowAheadMs);
      if (byMs > 0 && byMs <= CLOCK_TOLERANCE_MS) return 0;
      aheadMs = nowAheadMs;
      setBackMs += Math.max(0, byMs);
      return Math.max(0, byMs);
    },
    /** Moves rows that were scheduled before the clock was set back. Rejects when the store is unavailable. */
    async moveRows(isStopped: () => boolean): Promise<void> {
      const byMs = setBackMs;
      try {
        for (let count = RESCHEDULE_ROWS_MAX; !isStopped() && count === RESCHEDULE_ROWS_MAX;) {
          count = await queue.reschedule({ now: clock.now(), byMs }, RESCHEDULE_ROWS_MAX);
        }
      } catch (error) {
        isDue = true;
        throw error;
      }
      setBackMs = Math.max(0, setBackMs - byMs);
      // Results that are kept, and writes under way, may still bring due times from before the clock was set back.
      isDue = byMs > 0 || (isDue && unwritten.count > 0);
    },
  };
}
