import { createExpire, createExpireUnsent } from "../approvals/decide.ts";
import type { Config } from "../config/config.ts";
import { createCountActivity, createPruneActivity } from "../events/activity-job.ts";
import type { Engine } from "../delivery/engine.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type FileStore, type Store, StoreUnavailable, type UpkeepStore } from "../../db/store.ts";
import { Cron } from "croner";
import { BULK_KEPT_MS, PRUNE_PAUSE_MS, DAY_MS, JOB_REST_MS } from "../config/limits.ts";
import { type JobLeases, NO_JOB_LEASES } from "./job-leases.ts";

interface HousekeepingParts {
  readonly store: Store;
  readonly engine: Pick<Engine, "bus" | "enqueue" | "pauseService">;
  readonly bulkRunner: { run(): Promise<void> };
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

/** The periodic jobs of the service. Jobs of settings that are off are left out. */
export function housekeeping(
  { approvalTtlHours, retentionDays }: Pick<Config, "approvalTtlHours" | "retentionDays">,
  { store, engine, bulkRunner, ...parts }: HousekeepingParts,
): readonly Job[] {
  const { actions, people, team, upkeep, audit, pauses, rejections, bulk, activity } = store;
  const deps = { ...parts, ...engine, actions, upkeep };
  const jobs = [
    inSteps("keys whose 24 h are over", "17 * * * *", (now) => actions.pruneKeys(now)),
    { name: "actions that have expired", pattern: "*/10 * * * * *", run: createExpireUnsent(deps) },
    { name: "pauses", pattern: "* * * * *", run: () => engine.pauseService.reconcile() },
    // It has a lease of its own: a node may begin a job while another one rests.
    { name: "bulk jobs", pattern: "* * * * *", run: () => bulkRunner.run() },
    { name: "what the overview counts", pattern: "*/10 * * * * *", run: createCountActivity({ ...parts, activity }) },
    {
      name: "figures that no overview shows any more",
      pattern: "12 * * * *",
      run: createPruneActivity(activity, retentionDays),
    },
    inSteps("bulk jobs that ended long ago", "7 * * * *", (now) => bulk.prune(new Date(now.getTime() - BULK_KEPT_MS))),
    inSteps("rejections whose 24 h are over", "27 * * * *", (now) => rejections.prune(now)),
    inSteps("sessions and links that ran out", "37 * * * *", (now) => people.prune(now)),
    inSteps("invitations that ran out", "42 * * * *", (now) => team.prune(now)),
  ];
  if (approvalTtlHours !== null) {
    const run = createExpire(deps, approvalTtlHours);
    jobs.push({ name: "approvals that nobody decided", pattern: "*/5 * * * *", run });
  }
  if (retentionDays !== null) {
    jobs.push({
      name: "finished actions that are too old",
      pattern: "47 * * * *",
      run: createPrune({ ...deps, file: store.file }, retentionDays),
    });
    const keptSince = (now: Date) => new Date(now.getTime() - retentionDays * DAY_MS);
    jobs.push(
      inSteps("entries of the audit log that are too old", "52 * * * *", (now) => audit.prune(keptSince(now))),
      inSteps("pauses that ended too long ago", "57 * * * *", (now) => pauses.prune(keptSince(now))),
    );
  }
  return jobs;
}

/** A job that repeats a step while it returns true. */
function inSteps(name: string, pattern: string, step: (now: Date) => Promise<boolean>): Job {
  return {
    name,
    pattern,
    async run(now, stop) {
      while (!stop.aborted && (await step(now)));
    },
  };
}

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
  const crons = jobs.map((job) => new Cron(job.pattern, { timezone: "UTC" }, () => run(job)));
  for (const job of jobs) run(job);
  return async () => {
    stopping.abort();
    for (const job of crons) job.stop();
    await Promise.all(running.values());
  };
}

interface PruneDeps {
  readonly upkeep: Pick<UpkeepStore, "prune">;
  readonly file: Pick<FileStore, "shrink"> | null;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "info">;
}

/**
 * Deletes actions older than `RETENTION_DAYS`, and makes the file smaller. It pauses between two steps, so that even a first
 * pass over years of actions delays no other write.
 */
export function createPrune({ upkeep, file, clock, log }: PruneDeps, days: number): Job["run"] {
  const pause = () => new Promise<void>((resolve) => void clock.after(PRUNE_PAUSE_MS, resolve));
  return async (now, stop) => {
    const times = { now, finishedUntil: new Date(now.getTime() - days * DAY_MS) };
    let deleted = 0;
    for (let after: string | null = ""; after !== null && !stop.aborted;) {
      const step = await upkeep.prune(times, after);
      deleted += step.deleted;
      after = step.next;
      if (step.deleted > 0) await pause();
    }
    if (deleted > 0) log.info("actions.pruned", { count: deleted });
    for (let left = Infinity; file !== null && left > 0 && !stop.aborted;) {
      const before = left;
      left = await file.shrink();
      // Others may free more meanwhile: the next run goes on.
      if (left >= before) return;
      await pause();
    }
  };
}
