import { JOB_LEASE_MS, JOB_RENEW_MS, START_LOOK_MS, START_WAIT_MS_MAX } from "../core/limits.ts";
import { type ClusterStore, StoreUnavailable } from "../core/store.ts";
import type { Clock } from "../core/clock.ts";

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
