import type { Clock } from "../core/clock.ts";
import { CLOCK_TOLERANCE_MS, RESCHEDULE_ROWS_MAX } from "../core/limits.ts";
import type { Queue } from "../core/store.ts";
import type { UnwrittenResults } from "./unwritten-results.ts";

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
