import { type ClusterStore, StoreUnavailable } from "../core/store.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { Cron } from "croner";
import { JOB_LEASE_MS, JOB_RENEW_MS, JOB_REST_MS, START_LOOK_MS, START_WAIT_MS_MAX } from "../core/limits.ts";

/** A periodic job, which runs at the start and by its pattern. Delivery never depends on a job. */
export interface Job {
  readonly name: string;
  /** A cron pattern, UTC. */
  readonly pattern: string;
  /** Does what is due at `now`, in steps. Begins no step after `stop` is aborted. */
  readonly run: (now: Date, stop: AbortSignal) => Promise<void>;
}

/** What work in the background needs, and where it reports what fails. */
interface Background {
  readonly clock: Pick<Clock, "now" | "after">;
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<Metrics, "taskFailed">;
}

/**
 * Schedules jobs and runs each once now: a service that often restarts might never reach an hourly one. A running job is not started
 * again, and only one of several nodes runs it. The returned function stops the jobs and resolves when none runs any more.
 */
export function startJobs(
  jobs: readonly Job[],
  { clock, log, metrics }: Background,
  leases: JobLeases = NO_JOB_LEASES,
): () => Promise<void> {
  const stopping = new AbortController();
  const running = new Map<Job, Promise<void>>();
  const runOnce = async (job: Job): Promise<void> => {
    try {
      const options = { stop: stopping.signal, restMs: JOB_REST_MS };
      await leases.run(`job: ${job.name}`, (stop) => job.run(clock.now(), stop), options);
    } catch (error) {
      // The next run does what this one could not. `Outage` reports that the store is unavailable.
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
  // Croner gets no names, since two jobs with one name throw, across the whole process.
  const crons = jobs.map((job) => new Cron(job.pattern, { utcOffset: 0 }, () => run(job)));
  for (const job of jobs) run(job);
  return async () => {
    stopping.abort();
    for (const job of crons) job.stop();
    await Promise.all(running.values());
  };
}

/**
 * Runs all reads, each time `everyMs` after the last ones ended, so that changes by other processes take effect here. A failed
 * read is tried again; it is logged, unless the store is unavailable, which `Outage` reports. The returned function stops this
 * and resolves when no read runs any more.
 */
export function keepFresh(
  everyMs: number,
  reads: Readonly<Record<string, () => Promise<unknown>>>,
  { clock, log, metrics }: Background,
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

/** Runs work that only one node may do at a time. */
export interface JobLeases {
  /**
   * Runs the work unless another node does, with a signal that aborts when `stop` does or the lease is lost. After it has
   * succeeded, no other node may run it for `restMs`. False: another node runs it. Rejects if the work does.
   */
  run(
    name: string,
    work: (stop: AbortSignal) => Promise<void>,
    options?: { readonly stop?: AbortSignal; readonly restMs?: number },
  ): Promise<boolean>;
}

/** For the only process of a database, which needs no lease. */
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
 * Leases in the database, by its clock. The holder renews its lease while the work runs. If it dies, another node may run the
 * job after `JOB_LEASE_MS`. Two nodes can run it at the same time only if one was frozen for so long, so each step of a job
 * must be a guarded write, like any change.
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
        // A short outage does no harm while the lease lasts.
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
        // If this fails, the lease expires.
        if (isAtRest) await cluster.takeJob(name, nodeId, restMs).catch(() => false);
        else await cluster.releaseJob(name, nodeId).catch(() => {});
      }
      return true;
    },
  };
}

/**
 * Runs a step of a start while no other node runs it. Waits for its turn, at most `START_WAIT_MS_MAX`, then rejects with
 * `StoreUnavailable`. A node that dies in its turn delays the others by `JOB_LEASE_MS`.
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
    await sleep(clock, START_LOOK_MS);
  }
  try {
    return await work();
  } finally {
    // A lease that can't be released expires.
    await cluster.releaseJob(name, nodeId).catch(() => {});
  }
}

/** The right to end rows of dead processes, which one node has at a time. */
export interface RecoveryLease {
  /** Takes or renews the lease. False: another node has it. */
  take(): Promise<boolean>;
  /** Whether a row's lease has ended: one that ends later than any can is known to have ended only after a while. */
  isOver(leaseUntil: Date | null): boolean;
  release(): Promise<void>;
}
