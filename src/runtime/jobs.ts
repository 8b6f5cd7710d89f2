import { StoreUnavailable } from "../core/store.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Clock } from "../core/clock.ts";
import { Cron } from "croner";
import { JOB_REST_MS } from "../core/limits.ts";
import { type JobLeases, NO_JOB_LEASES } from "./job-leases.ts";

/** A periodic job: it runs at the start and by its pattern. Delivery never depends on one. */
export interface Job {
  readonly name: string;
  /** A cron pattern, UTC. */
  readonly pattern: string;
  /** Does what is due at `now`, in steps; begins none once `stop` is aborted. */
  readonly run: (now: Date, stop: AbortSignal) => Promise<void>;
}

interface JobDeps {
  readonly clock: Pick<Clock, "now">;
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<Metrics, "taskFailed">;
  /** By default those of the only process of a database. */
  readonly leases?: JobLeases;
}

/**
 * Schedules the jobs and runs each once: a service that restarts every night would never reach an hourly one. A job
 * that still runs is not started again, and of several nodes on one database one runs it. The returned function stops them and resolves when none runs any more.
 */
export function startJobs(
  jobs: readonly Job[],
  { clock, log, metrics, leases = NO_JOB_LEASES }: JobDeps,
): () => Promise<void> {
  const stopping = new AbortController();
  const running = new Map<Job, Promise<void>>();
  const runOnce = async (job: Job): Promise<void> => {
    try {
      const options = { stop: stopping.signal, restMs: JOB_REST_MS };
      await leases.run(`job: ${job.name}`, (stop) => job.run(clock.now(), stop), options);
    } catch (error) {
      // The next run does what this one could not. `Outage` tells that the store is away.
      if (stopping.signal.aborted || error instanceof StoreUnavailable) return;
      metrics.taskFailed("housekeeping");
      log.error("job.failed", { job: job.name, error: error instanceof Error ? error.name : "unknown" });
    } finally {
      running.delete(job);
    }
  };
  const run = (job: Job): void => {
    if (!stopping.signal.aborted && !running.has(job)) running.set(job, runOnce(job));
  };
  // Croner gets no names: two jobs of one name throw, across the whole process.
  const crons = jobs.map((job) => new Cron(job.pattern, { utcOffset: 0 }, () => run(job)));
  for (const job of jobs) run(job);
  return async () => {
    stopping.abort();
    for (const job of crons) job.stop();
    await Promise.all(running.values());
  };
}

interface FreshDeps {
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<Metrics, "taskFailed">;
}

/**
 * Runs all reads every `everyMs` after the last ones have ended, so that what other processes changed takes effect here. A
 * read that fails comes again; it is logged unless the store is away, which `Outage` tells of. The returned function stops it and
 * resolves when none runs any more.
 */
export function keepFresh(
  everyMs: number,
  reads: Readonly<Record<string, () => Promise<unknown>>>,
  { clock, log, metrics }: FreshDeps,
): () => Promise<void> {
  let isStopped = false;
  let running: Promise<unknown> = Promise.resolve();
  let cancel = () => {};
  const runOne = async ([name, read]: [string, () => Promise<unknown>]): Promise<void> => {
    try {
      await read();
    } catch (error) {
      if (error instanceof StoreUnavailable) return;
      metrics.taskFailed("refresh");
      log.error("refresh.failed", { of: name, error: error instanceof Error ? error.name : "unknown" });
    }
  };
  const later = () => {
    if (isStopped) return;
    cancel = clock.after(everyMs, () => {
      running = Promise.all(Object.entries(reads).map(runOne)).then(later);
    });
  };
  later();
  return async () => {
    isStopped = true;
    cancel();
    await running;
  };
}
