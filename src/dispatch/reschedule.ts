import { RESCHEDULE_ROWS_MAX } from "../domain/limits.ts";
import type { Clock } from "../ports/clock.ts";
import type { Queue } from "../ports/store.ts";

/** Brings everything that a clock that was set back has put off to its time again, for as long as somebody wants it. */
export async function reschedule(
  queue: Pick<Queue<unknown>, "reschedule">,
  clock: Clock,
  byMs: number,
  isWanted: () => boolean,
): Promise<void> {
  while (isWanted()) {
    const count = await queue.reschedule({ now: clock.now(), byMs }, RESCHEDULE_ROWS_MAX);
    if (count < RESCHEDULE_ROWS_MAX) return;
  }
}
