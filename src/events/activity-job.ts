import { setImmediate as nextTurn } from "node:timers/promises";
import { ACTIVITY_PAUSE_MS, ACTIVITY_STEP_ROWS, DAY_MS, OVERVIEW_RANGES } from "../core/limits.ts";
import type { ActivityStore, FirstStep } from "../core/activity-store.ts";
import type { Clock } from "../core/clock.ts";
import { type ActivityGroup, ActivityTally, firstSlotOf, RANGE_NAMES } from "../core/activity.ts";

interface ActivityJobDeps {
  readonly activity: Pick<ActivityStore, "position" | "groups" | "stored" | "put">;
  readonly clock: Pick<Clock, "after">;
}

/**
 * Counts the events of the timeline from where the last run ended. Creates and results don't wait for it. A row is counted
 * once, on however many nodes: counts and the new position are one commit, which fails if another node has moved the position.
 */
export function createCountActivity({ activity, clock }: ActivityJobDeps) {
  return async (now: Date, stop: AbortSignal): Promise<void> => {
    while (!stop.aborted && (await countStep(activity, now))) {
      await new Promise<void>((resolve) => void clock.after(ACTIVITY_PAUSE_MS, resolve));
    }
  };
}

/** Counts the next rows; true when more follow. A file is read in this thread: others get their turn between its parts. */
async function countStep(activity: ActivityJobDeps["activity"], now: Date): Promise<boolean> {
  const from = await activity.position();
  const since = firstSlotOf("30d", now);
  const page = await activity.groups(from, { accountId: null, since, limit: ACTIVITY_STEP_ROWS });
  if (page.position === from) return false;
  await nextTurn();
  const tally = new ActivityTally(now);
  const stored = await activity.stored(tally.slotsOf(page.groups));
  await nextTurn();
  tally.load(stored);
  for (const group of page.groups) tally.add(group);
  await nextTurn();
  const write = { from, to: page.position, rows: tally.changed, steps: stepsIn(page.groups) };
  // False if another node has counted them, which goes on.
  return (await activity.put(write)) && !page.isLast;
}

const STEPS = { created: "action", approved: "approval" } as const;

/** What these accounts have done, perhaps for the first time. */
function stepsIn(groups: readonly ActivityGroup[]): readonly FirstStep[] {
  const found = new Map<string, FirstStep>();
  const note = (done: FirstStep) => {
    const name = `${done.accountId} ${done.step}`;
    const known = found.get(name);
    if (known === undefined || done.at < known.at) found.set(name, done);
  };
  for (const { kind, byMcp, accountId, at } of groups) {
    if (kind === "created" || kind === "approved") note({ accountId, step: STEPS[kind], at });
    if (byMcp > 0) note({ accountId, step: "agent", at });
  }
  return [...found.values()];
}

/** Deletes slots that no range shows any more, or that are older than the retention (null: none). */
export function createPruneActivity(activity: Pick<ActivityStore, "prune">, retentionDays: number | null) {
  return async (now: Date, stop: AbortSignal): Promise<void> => {
    for (const range of RANGE_NAMES) {
      const before = keptSince(firstSlotOf(range, now), retentionDays, now);
      while (!stop.aborted && (await activity.prune(OVERVIEW_RANGES[range].slotMinutes, before)));
    }
  };
}

/** The later one of a time and the end of the retention. */
export function keptSince(since: Date, retentionDays: number | null, now: Date): Date {
  if (retentionDays === null) return since;
  return new Date(Math.max(since.getTime(), now.getTime() - retentionDays * DAY_MS));
}
