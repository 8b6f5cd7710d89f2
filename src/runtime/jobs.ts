import { type ClusterStore, StoreUnavailable } from "../core/store.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Clock } from "../core/clock.ts";
import { Cron } from "croner";
import { JOB_LEASE_MS, JOB_RENEW_MS, JOB_REST_MS, START_LOOK_MS, START_WAIT_MS_MAX } from "../core/limits.ts";

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

/** Runs work of which only one node may do any at a time. */
export interface JobLeases {
  /**
   * Runs the work unless another node does, with a signal that aborts when `stop` does or the right to run it is lost.
   * When it has succeeded no other node may run it for `restMs`. False: another node runs it. Rejects as the work does.
   */
  run(name: string, work: (stop: AbortSignal) => Promise<void>, options?: JobOptions): Promise<boolean>;
}

interface JobOptions {
  readonly stop?: AbortSignal;
  readonly restMs?: number;
}

/** For the only process of a database: nothing to ask for. */
export const NO_JOB_LEASES: JobLeases = {
  async run(_name, work, { stop } = {}) {
    await work(stop ?? new AbortController().signal);
    return true;
  },
};

interface JobLeaseDeps {
  readonly cluster: Pick<ClusterStore, "takeJob" | "releaseJob">;
  readonly nodeId: string;
  readonly clock: Pick<Clock, "after" | "monotonicMs">;
}

/**
 * Leases in the database, by its clock: whoever holds one renews it while the work runs. If the holder dies, another node
 * may run the job after `JOB_LEASE_MS`. Two nodes can run it at a time only if one stood still for so long; so each step of
 * a job has to be a guarded write, as of any change.
 */
export function createJobLeases({ cluster, nodeId, clock }: JobLeaseDeps): JobLeases {
  return {
    async run(name, work, { stop, restMs = 0 } = {}) {
      const lost = new AbortController();
      let takenMs = clock.monotonicMs();
      if (!(await cluster.takeJob(name, nodeId, JOB_LEASE_MS))) return false;
      let cancel = () => {};
      let renewing = Promise.resolve();
      const renew = async (): Promise<void> => {
        const askedMs = clock.monotonicMs();
        // Away for a moment is no loss while the lease lasts.
        const isMine = await cluster.takeJob(name, nodeId, JOB_LEASE_MS).catch(() => null);
        if (isMine === true) takenMs = askedMs;
        if (isMine === false || clock.monotonicMs() - takenMs >= JOB_LEASE_MS) return lost.abort();
        renewLater();
      };
      const renewLater = () => {
        cancel = clock.after(JOB_RENEW_MS, () => void (renewing = renew()));
      };
      renewLater();
      let isDone = false;
      try {
        await work(stop === undefined ? lost.signal : AbortSignal.any([stop, lost.signal]));
        isDone = true;
      } finally {
        cancel();
        await renewing;
        cancel();
        const isAtRest = isDone && restMs > 0 && stop?.aborted !== true && !lost.signal.aborted;
        // If that fails it ends by itself.
        if (isAtRest) await cluster.takeJob(name, nodeId, restMs).catch(() => false);
        else await cluster.releaseJob(name, nodeId).catch(() => {});
      }
      return true;
    },
  };
}

/**
 * Runs a step of a start while no other node runs it; waits for its turn, `START_WAIT_MS_MAX` at most, and rejects with
 * `StoreUnavailable` after that. A node that dies in its turn holds up the others for `JOB_LEASE_MS`.
 */
export async function inTurn<T>(
  name: string,
  { cluster, nodeId, clock }: JobLeaseDeps,
  work: () => Promise<T>,
): Promise<T> {
  const untilMs = clock.monotonicMs() + START_WAIT_MS_MAX;
  while (!(await cluster.takeJob(name, nodeId, JOB_LEASE_MS))) {
    if (clock.monotonicMs() >= untilMs) {
      const reason = "other nodes are starting and don't end";
      throw new StoreUnavailable("Other nodes have been starting for too long.", { reason });
    }
    await new Promise<void>((resolve) => void clock.after(START_LOOK_MS, resolve));
  }
  try {
    return await work();
  } finally {
    // If it can't be released it ends by itself.
    await cluster.releaseJob(name, nodeId).catch(() => {});
  }
}

/** The right to end rows of dead processes, which one node has at a time. */
export interface RecoveryLease {
  /** Takes or renews it. False: another node ends them. */
  take(): Promise<boolean>;
  release(): Promise<void>;
}
