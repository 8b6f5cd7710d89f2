import { setImmediate as nextTurn } from "node:timers/promises";
import {
  ACTIVITY_COUNTED_ROWS_MAX,
  ACTIVITY_PAUSE_MS,
  ACTIVITY_STEP_ROWS,
  DAY_MS,
  OVERVIEW_RANGES,
} from "../core/limits.ts";
import type { ActivityPage, ActivityStore, FirstStep } from "../core/activity-store.ts";
import type { Clock } from "../core/clock.ts";
import { type Store, StoreUnavailable } from "../core/store.ts";
import { type ActivityGroup, ActivityTally, firstSlotOf, RANGE_NAMES } from "../core/activity.ts";

interface CountActivityDeps {
  readonly store: Pick<Store, "isUnavailable"> & {
    readonly activity: Pick<ActivityStore, "position" | "groups" | "stored" | "put">;
  };
  readonly clock: Pick<Clock, "after" | "now">;
}

export type CountActivity = ReturnType<typeof createCountActivity>;

/**
 * Counts the events of the timeline from where the last step ended. Creates and results don't wait for it. A row is counted
 * once, on however many nodes: counts and the new position are one commit, which fails if another node has moved the position.
 */
export function createCountActivity({ store, clock }: CountActivityDeps) {
  let last: Promise<unknown> = Promise.resolve();
  /** One at a time. */
  const step = (isWritten: boolean): Promise<CountedStep> => {
    const next = last.then(() => countStep(store.activity, clock.now(), isWritten));
    last = next.catch(() => {});
    return next;
  };
  return {
    /** Counts everything that has happened, with a pause after each step. */
    run: async (_now: Date, stop: AbortSignal): Promise<void> => {
      while (!stop.aborted && !(await step(true)).isLast) {
        await new Promise<void>((resolve) => void clock.after(ACTIVITY_PAUSE_MS, resolve));
      }
    },

    /** Counts the next `ACTIVITY_COUNTED_ROWS_MAX` events. Nothing after the returned time is counted; null: everything is. */
    upToNow: async (): Promise<Date | null> => {
      for (let rows = ACTIVITY_STEP_ROWS; ; rows += ACTIVITY_STEP_ROWS) {
        // Nobody who reads waits until a write fails again.
        const { isLast, until } = await step(!store.isUnavailable);
        if (isLast || rows >= ACTIVITY_COUNTED_ROWS_MAX) return until;
        await nextTurn();
      }
    },
  };
}

interface CountedStep {
  /** Nothing is left to count, or nothing can be counted now. */
  readonly isLast: boolean;
  /** Nothing after it is counted; null: everything is. */
  readonly until: Date | null;
}

/** Counts the next rows, or only looks when they begin. A file is read in this thread: others get their turn between its parts. */
async function countStep(
  activity: CountActivityDeps["store"]["activity"],
  now: Date,
  isWritten: boolean,
): Promise<CountedStep> {
  const from = await activity.position();
  const page = await activity.groups(from, { since: firstSlotOf("30d", now), limit: ACTIVITY_STEP_ROWS });
  if (page.position === from) return { isLast: true, until: null };
  if (!isWritten) return { isLast: true, until: beginOf(page) };
  await nextTurn();
  const tally = new ActivityTally(now);
  const stored = await activity.stored(tally.slotsOf(page.groups));
  await nextTurn();
  tally.load(stored);
  for (const group of page.groups) tally.add(group);
  await nextTurn();
  try {
    const write = { from, to: page.position, rows: tally.changed, steps: stepsIn(page.groups) };
    if (!(await activity.put(write))) {
      // Another node has counted on meanwhile, perhaps not as far: the next step begins where that one ended. A position that was
      // altered to no number stays what it is.
      return { isLast: Object.is(await activity.position(), from), until: beginOf(page) };
    }
  } catch (error) {
    // A full disk can still be read: what is counted is shown.
    if (!(error instanceof StoreUnavailable)) throw error;
    return { isLast: true, until: beginOf(page) };
  }
  return { isLast: page.isLast, until: endOf(page) };
}

/** The time of the first event of a page; where nothing of it counts, of its end. */
function beginOf(page: ActivityPage): Date | null {
  const times = page.groups.map(({ at }) => at.getTime());
  return times.length === 0 ? endOf(page) : new Date(Math.min(...times));
}

/** Null: nothing has happened after the page. Exactly as many rows as one takes have an end all the same. */
function endOf({ isLast, at }: ActivityPage): Date | null {
  return isLast ? null : at;
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
