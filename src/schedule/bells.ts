import { Cron } from "croner";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Metrics } from "../ports/metrics.ts";

/** Housekeeping that is rung by the clock on the wall, and once at the start. Delivery never hangs on a bell. */
export interface Bell {
  readonly name: string;
  /** A cron pattern, UTC. */
  readonly pattern: string;
  /** Does what is due by then, in steps; none is begun any more once `stop` is aborted. */
  readonly ring: (now: Date, stop: AbortSignal) => Promise<void>;
}

export interface BellDeps {
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<Metrics, "taskFailed">;
}

/**
 * Hangs the bells up and rings each of them: a service that is started anew every night would never hear the one of the
 * hour. One that still rings is not rung again. Returns how to take them down; resolves when none rings any more.
 */
export function hangBells(bells: readonly Bell[], { clock, log, metrics }: BellDeps): () => Promise<void> {
  const down = new AbortController();
  const ringing = new Map<Bell, Promise<void>>();
  const end = async (bell: Bell): Promise<void> => {
    try {
      await bell.ring(clock.now(), down.signal);
    } catch (error) {
      // What it could not do now is due at the next ring.
      if (down.signal.aborted) return;
      metrics.taskFailed("housekeeping");
      log.error("bell.failed", { bell: bell.name, error: error instanceof Error ? error.name : "unknown" });
    } finally {
      ringing.delete(bell);
    }
  };
  const ring = (bell: Bell): void => {
    if (!down.signal.aborted && !ringing.has(bell)) ringing.set(bell, end(bell));
  };
  // Not named to croner: two jobs of one name throw, across the whole process.
  const jobs = bells.map((bell) => new Cron(bell.pattern, { timezone: "UTC" }, () => ring(bell)));
  for (const bell of bells) ring(bell);
  return async () => {
    down.abort();
    for (const job of jobs) job.stop();
    await Promise.all(ringing.values());
  };
}
