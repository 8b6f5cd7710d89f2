import { setImmediate as nextTurn } from "node:timers/promises";
import {
  ACTIVITY_COUNTED_ROWS_MAX,
  ACTIVITY_PAUSE_MS,
  ACTIVITY_STEP_ROWS,
  DAY_MS,
  OVERVIEW_RANGES,
} from "../core/limits.ts";
import {
  type ActivityPage,
  type ActivityStore,
  type FirstStep,
  type ActivityGroup,
  ActivityTally,
  firstSlot,
  RANGE_NAMES,
} from "../core/activity.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { type Store, StoreUnavailable } from "../core/store.ts";

interface CountActivityDeps {
  readonly store: Pick<Store, "isUnavailable"> & {
    readonly activity: Pick<ActivityStore, "position" | "groups" | "stored" | "put">;
  };
  readonly clock: Pick<Clock, "after" | "now">;
}

export type CountActivity = ReturnType<typeof createCountActivity>;

/**
 * Counts the timeline's events in steps, apart from creates and results, which don't wait for it. Counts each row once on any
 * number of nodes: counts and new position are one commit, which fails if another node has moved the position.
 */
export function createCountActivity({ store, clock }: CountActivityDeps) {
  let last: Promise<unknown> = Promise.resolve();
  /** Counts one step at a time. */
  const step = (isWritten: boolean): Promise<CountedStep> => {
    const next = last.then(() => countStep(store.activity, clock.now(), isWritten));
    last = next.catch(() => {});
    return next;
  };
  return {
    /** Counts everything up to now, with a pause after each step. */
    run: async (_now: Date, stop: AbortSignal): Promise<void> => {
      while (!stop.aborted && !(await step(true)).isLast) {
        await sleep(clock, ACTIVITY_PAUSE_MS);
      }
    },

    /** Counts up to `ACTIVITY_COUNTED_ROWS_MAX` events. Events after the returned time are not counted yet; null: all are. */
    upToNow: async (): Promise<Date | null> => {
      for (let rows = ACTIVITY_STEP_ROWS; ; rows += ACTIVITY_STEP_ROWS) {
        // Doesn't make readers wait for a write that would fail again.
        const { isLast, until } = await step(!store.isUnavailable);
        if (isLast || rows >= ACTIVITY_COUNTED_ROWS_MAX) return until;
        await nextTurn();
      }
    },
  };
}

interface CountedStep {
  /** Whether nothing is left to count, or nothing can be counted now. */
  readonly isLast: boolean;
  /** Events after this time are not counted yet; null: all are. */
  readonly until: Date | null;
}

/** Counts the next rows, or only finds when they begin. A file is read in this thread, in parts, so that others get a turn. */
async function countStep(
  activity: CountActivityDeps["store"]["activity"],
  now: Date,
  isWritten: boolean,
): Promise<CountedStep> {
  const from = await activity.position();
  const page = await activity.groups(from, { since: firstSlot("30d", now), limit: ACTIVITY_STEP_ROWS });
  if (page.position === from) return { isLast: true, until: null };
  if (!isWritten) return { isLast: true, until: pageBegin(page) };
  await nextTurn();
  const tally = new ActivityTally(now);
  const stored = await activity.stored(tally.slotsFor(page.groups));
  await nextTurn();
  tally.load(stored);
  for (const group of page.groups) tally.add(group);
  await nextTurn();
  try {
    const write = { from, to: page.position, rows: tally.changed, steps: stepsIn(page.groups) };
    if (!(await activity.put(write))) {
      // Another node has counted meanwhile, perhaps less: the next step begins where it ended. `Object.is`, because somebody may
      // have altered the position to something that is no number.
      return { isLast: Object.is(await activity.position(), from), until: pageBegin(page) };
    }
  } catch (error) {
    // A full disk can still be read: shows what is counted so far.
    if (!(error instanceof StoreUnavailable)) throw error;
    return { isLast: true, until: pageBegin(page) };
  }
  return { isLast: page.isLast, until: pageEnd(page) };
}

/** The time of a page's first event, or of the page's end if none of its events count. */
function pageBegin(page: ActivityPage): Date | null {
  const times = page.groups.map(({ at }) => at.getTime());
  return times.length === 0 ? pageEnd(page) : new Date(Math.min(...times));
}

/** Where a page ends; null if it is the last one. A full page has an end even if nothing follows it. */
function pageEnd({ isLast, at }: ActivityPage): Date | null {
  return isLast ? null : at;
}

const STEPS = { created: "action", approved: "approval" } as const;

/** The first steps that these accounts may just have taken. */
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

/** Creates the job that deletes slots that no range shows any more or that are past retention (null: no retention). */
export function createPruneActivity(activity: Pick<ActivityStore, "prune">, retentionDays: number | null) {
  return async (now: Date, stop: AbortSignal): Promise<void> => {
    for (const range of RANGE_NAMES) {
      const before = keptSince(firstSlot(range, now), retentionDays, now);
      while (!stop.aborted && (await activity.prune(OVERVIEW_RANGES[range].slotMinutes, before)));
    }
  };
}

/** A time, or the end of the retention if that is later. */
export function keptSince(since: Date, retentionDays: number | null, now: Date): Date {
  if (retentionDays === null) return since;
  return new Date(Math.max(since.getTime(), now.getTime() - retentionDays * DAY_MS));
}
