import { createExpire } from "../approvals/decide.ts";
import type { Config } from "../config/config.ts";
import type { Engine } from "../delivery/engine.ts";
import type { Clock } from "./clock.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Store, UpkeepStore } from "../../db/store.ts";
import { Cron } from "croner";
import { PRUNE_REST_MS } from "../config/limits.ts";

interface HousekeepingParts {
  readonly store: Store;
  readonly engine: Pick<Engine, "bus" | "enqueue" | "pauseService">;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

const DAY_MS = 86_400_000;

/** The bells of the service, and what each of them rings; those of settings that are off are not hung up. */
export function housekeeping(
  { approvalTtlHours, retentionDays }: Pick<Config, "approvalTtlHours" | "retentionDays">,
  { store, engine, ...parts }: HousekeepingParts,
): readonly Job[] {
  const { actions, people, upkeep, audit, pauses, rejections } = store;
  const deps = { ...parts, ...engine, actions, upkeep };
  const jobs = [
    inSteps("keys whose 24 h are over", "17 * * * *", (now) => actions.pruneKeys(now)),
    { name: "pauses", pattern: "* * * * *", run: () => engine.pauseService.keepUp() },
    inSteps("rejections whose 24 h are over", "27 * * * *", (now) => rejections.prune(now)),
    inSteps("sessions and links that ran out", "37 * * * *", (now) => people.prune(now)),
  ];
  if (approvalTtlHours !== null) {
    const run = createExpire(deps, approvalTtlHours);
    jobs.push({ name: "approvals that nobody decided", pattern: "*/5 * * * *", run });
  }
  if (retentionDays !== null) {
    jobs.push({
      name: "finished actions that are too old",
      pattern: "47 * * * *",
      run: createPrune(deps, retentionDays),
    });
    const keptSince = (now: Date) => new Date(now.getTime() - retentionDays * DAY_MS);
    jobs.push(
      inSteps("entries of the audit log that are too old", "52 * * * *", (now) => audit.prune(keptSince(now))),
      inSteps("pauses that ended too long ago", "57 * * * *", (now) => pauses.prune(keptSince(now))),
    );
  }
  return jobs;
}

/** A bell of a step that is done again as long as it says that there is more. */
function inSteps(name: string, pattern: string, step: (now: Date) => Promise<boolean>): Job {
  return {
    name,
    pattern,
    async run(now, stop) {
      while (!stop.aborted && (await step(now)));
    },
  };
}

/** Housekeeping that is rung by the clock on the wall, and once at the start. Delivery never hangs on a bell. */
export interface Job {
  readonly name: string;
  /** A cron pattern, UTC. */
  readonly pattern: string;
  /** Does what is due by then, in steps; none is begun any more once `stop` is aborted. */
  readonly run: (now: Date, stop: AbortSignal) => Promise<void>;
}

interface JobDeps {
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

interface PruneDeps {
  readonly upkeep: Pick<UpkeepStore, "prune">;
  readonly clock: Pick<Clock, "after">;
  readonly log: Pick<Log, "info">;
}

/** Deletes what finished too long ago, step by step; ends early when it is to stop. */
type Prune = (now: Date, stop: AbortSignal) => Promise<void>;

const PRUNE_DAY_MS = 86_400_000;

/** `RETENTION_DAYS`. Between two steps it rests, so that even a first pass over years of actions delays nobody's write. */
export function createPrune({ upkeep, clock, log }: PruneDeps, days: number): Prune {
  return async (now, stop) => {
    const times = { now, finishedUntil: new Date(now.getTime() - days * PRUNE_DAY_MS) };
    let deleted = 0;
    for (let after: string | null = ""; after !== null && !stop.aborted;) {
      const step = await upkeep.prune(times, after);
      deleted += step.deleted;
      after = step.next;
      if (step.deleted > 0) await new Promise<void>((resolve) => void clock.after(PRUNE_REST_MS, resolve));
    }
    if (deleted > 0) log.info("actions.pruned", { count: deleted });
  };
}
