import { BULK_KEPT_MS, CREDENTIAL_REQUESTS_KEPT_MS, DAY_MS, PRUNE_PAUSE_MS } from "../core/limits.ts";
import { createPruneActivity } from "../events/activity-job.ts";
import { createExpireUnsent, createExpire } from "../approvals/expire.ts";
import type { Job } from "../runtime/jobs.ts";
import type { Log } from "../observability/log.ts";
import { type Clock, sleep } from "../core/clock.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { Services } from "../services/services.ts";
import type { FileStore, UpkeepStore } from "../core/store.ts";

/** The periodic jobs of the service. Jobs of settings that are off are left out. */
export function housekeeping(app: AppContext, services: Services): readonly Job[] {
  const { enqueue, pauseService, bulkRunner, credentialAlerts, countActivity } = services;
  const { config, store } = app;
  const { approvalTtlHours, retentionDays } = config;
  const { people, team, oauth, upkeep, audit, pauses, rejections, bulk, activity, credentialRequests, grants } = store;
  const jobs = [
    inSteps("keys whose 24 h are over", "17 * * * *", (now) => upkeep.pruneKeys(now)),
    { name: "actions that have expired", pattern: "*/10 * * * * *", run: createExpireUnsent(app, enqueue) },
    { name: "pauses", pattern: "* * * * *", run: () => pauseService.reconcile() },
    // The runner takes a lease besides that of this job: a new bulk job starts it too, and JOB_REST_MS doesn't hold it back.
    { name: "bulk jobs", pattern: "* * * * *", run: () => bulkRunner.run() },
    { name: "what the overview counts", pattern: "*/10 * * * * *", run: countActivity.run },
    { name: "ends of credentials", pattern: "*/10 * * * *", run: credentialAlerts },
    {
      name: "figures that no overview shows any more",
      pattern: "12 * * * *",
      run: createPruneActivity(activity, retentionDays),
    },
    inSteps("bulk jobs that ended long ago", "7 * * * *", (now) => bulk.prune(new Date(now.getTime() - BULK_KEPT_MS))),
    inSteps("rejections whose 24 h are over", "27 * * * *", (now) => rejections.prune(now)),
    inSteps("sessions and links that ran out", "37 * * * *", (now) => people.prune(now)),
    inSteps("what OAuth stored and is over", "*/10 * * * *", (now) => oauth.prune(now)),
    inSteps("old requests for credentials", "22 * * * *", (now) =>
      credentialRequests.prune(new Date(now.getTime() - CREDENTIAL_REQUESTS_KEPT_MS)),
    ),
    inSteps("invitations that ran out", "42 * * * *", (now) => team.prune(now)),
  ];
  if (approvalTtlHours !== null) {
    const run = createExpire(app, enqueue, approvalTtlHours);
    jobs.push({ name: "approvals that nobody decided", pattern: "*/5 * * * *", run });
  }
  if (retentionDays !== null) {
    jobs.push({
      name: "finished actions that are too old",
      pattern: "47 * * * *",
      run: createPrune(upkeep, store.file, app, retentionDays),
    });
    const keptSince = (now: Date) => new Date(now.getTime() - retentionDays * DAY_MS);
    jobs.push(
      inSteps("entries of the audit log that are too old", "52 * * * *", (now) => audit.prune(keptSince(now))),
      inSteps("pauses that ended too long ago", "57 * * * *", (now) => pauses.prune(keptSince(now))),
      inSteps("grants whose time was over too long ago", "2 * * * *", (now) => grants.prune(keptSince(now))),
    );
  }
  return jobs;
}

/** Reads again what this process holds in memory and other nodes may change. */
export function sharedReads({ authenticate, sessionService, known }: Services) {
  return {
    keys: authenticate.recheck,
    sessions: sessionService.recheckSessions,
    pauses: () => known.paused.reload(),
    hosts: () => known.hosts.reload(),
    channels: () => known.channels.reload(),
    rules: () => known.rules.reload(),
    grants: () => known.grants.reload(),
    credentials: () => known.credentials.reload(),
  };
}

/** A job that repeats a step until the step returns false. */
export function inSteps(name: string, pattern: string, step: (now: Date) => Promise<boolean>): Job {
  return {
    name,
    pattern,
    async run(now, stop) {
      while (!stop.aborted && (await step(now)));
    },
  };
}

/**
 * Deletes actions older than `RETENTION_DAYS`, and makes the file smaller. It pauses between two steps, so that even a first
 * pass over years of actions delays no other write.
 */
export function createPrune(
  upkeep: Pick<UpkeepStore, "prune">,
  file: Pick<FileStore, "shrink"> | null,
  { clock, log }: { readonly clock: Pick<Clock, "after">; readonly log: Pick<Log, "info"> },
  days: number,
): Job["run"] {
  const pause = () => sleep(clock, PRUNE_PAUSE_MS);
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
      // Other work may free pages as fast as this does: the next run goes on.
      if (left >= before) return;
      await pause();
    }
  };
}
