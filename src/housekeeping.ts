import { createExpire } from "./actions/expire.ts";
import { createPrune } from "./actions/prune.ts";
import type { Config } from "./config.ts";
import type { Engine } from "./engine.ts";
import type { Clock } from "./ports/clock.ts";
import type { Log } from "./ports/log.ts";
import type { Metrics } from "./ports/metrics.ts";
import type { Store } from "./ports/store.ts";
import type { Job } from "./schedule/bells.ts";

export interface HousekeepingParts {
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
