import { Cron } from "croner";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Metrics } from "../ports/metrics.ts";

/** Housekeeping that is rung by the clock on the wall, and once at the start. Delivery never hangs on a bell. */
export interface Job {
  readonly name: string;
  /** A cron pattern, UTC. */
  readonly pattern: string;
  /** Does what is due by then, in steps; none is begun any more once `stop` is aborted. */
  readonly run: (now: Date, stop: AbortSignal) => Promise<void>;
}

export interface JobDeps {
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<Metrics, "taskFailed">;
}

/**
 * Hangs the bells up and rings each of them: a service that is started anew every night would never hear the one of the
 * hour. One that still rings is not rung again. Returns how to take them down; resolves when none rings any more.
 */
export function startJobs(jobs: readonly Job[], { clock, log, metrics }: JobDeps): () => Promise<void> {
  const down = new AbortController();
  const running = new Map<Job, Promise<void>>();
  const end = async (job: Job): Promise<void> => {
    try {
      await job.run(clock.now(), down.signal);
    } catch (error) {
      // What it could not do now is due at the next ring.
      if (down.signal.aborted) return;
      metrics.taskFailed("housekeeping");
      log.error("bell.failed", { job: job.name, error: error instanceof Error ? error.name : "unknown" });
    } finally {
      running.delete(job);
    }
  };
  const run = (job: Job): void => {
    if (!down.signal.aborted && !running.has(job)) running.set(job, end(job));
  };
  // Not named to croner: two jobs of one name throw, across the whole process.
  const crons = jobs.map((job) => new Cron(job.pattern, { timezone: "UTC" }, () => run(job)));
  for (const job of jobs) run(job);
  return async () => {
    down.abort();
    for (const job of crons) job.stop();
    await Promise.all(running.values());
  };
}
