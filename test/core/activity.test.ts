import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, test } from "bun:test";
import { array, assert, integer, property } from "fast-check";
import {
  ACTIVITY_COUNTED_ROWS_MAX,
  ACTIVITY_NAMES_MAX,
  ACTIVITY_STEP_ROWS,
  DAY_MS,
  OVERVIEW_RANGES,
} from "../../src/core/limits.ts";
import {
  type ActivitySlot,
  ActivityTally,
  firstSlot,
  RANGE_NAMES,
  slotLengthMs,
  type ActivityPage,
  type ActivityStore,
} from "../../src/core/activity.ts";
import { createCountActivity, createPruneActivity } from "../../src/events/activity-job.ts";
import {
  addDuration,
  histogramText,
  mergeHistogramTexts,
  mergeHistograms,
  parseHistogram,
  findPercentiles,
  withoutHistograms,
} from "../../src/core/histogram.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";
import { ACCOUNT, later, NOON } from "../support/factory.ts";
import { aGroup } from "../support/overview.ts";

const MINUTE_MS = 60_000;

const histogramOf = (...durations: readonly number[]) => {
  const histogram = new Map<number, number>();
  for (const ms of durations) addDuration(histogram, ms, 1);
  return histogram;
};

const isOfHour = ({ slotMinutes }: ActivitySlot) => slotMinutes === OVERVIEW_RANGES["1h"].slotMinutes;

describe("a histogram", () => {
  test("knows every duration within 3 %, and those below 32 ms exactly", () => {
    assert(
      property(integer({ min: 0, max: 2 ** 31 }), (ms) => {
        const [found = -1] = findPercentiles(histogramOf(ms), [0.5]);
        expect(Math.abs(found - ms)).toBeLessThanOrEqual(ms < 32 ? 0 : ms / 32);
      }),
    );
  });

  test("keeps the order of durations, and all of them when it is stored and merged", () => {
    const durations = array(integer({ min: 0, max: DAY_MS }), { minLength: 1, maxLength: 50 });
    assert(
      property(durations, durations, (some, others) => {
        const stored = [some, others].map((each) => parseHistogram(histogramText(histogramOf(...each))));
        const shares = [0.1, 0.5, 0.95, 1];
        const found = findPercentiles(mergeHistograms(stored), shares);
        const ordered = [...some, ...others].toSorted((a, b) => a - b);
        const exact = shares.map((share) => ordered[Math.ceil(ordered.length * share) - 1] ?? 0);
        for (const [at, ms] of exact.entries()) {
          expect(Math.abs((found[at] ?? -1) - ms)).toBeLessThanOrEqual(ms < 32 ? 0 : ms / 32);
        }
      }),
    );
  });

  test("is merged from its texts, and loses what others have of it", () => {
    const durations = array(integer({ min: 0, max: DAY_MS }), { minLength: 1, maxLength: 50 });
    assert(
      property(durations, durations, (some, others) => {
        const [one, other] = [histogramOf(...some), histogramOf(...others)];
        const both = mergeHistogramTexts([histogramText(one), "", histogramText(other)]);
        expect(both).toEqual(mergeHistograms([one, other]));
        expect(withoutHistograms(both, [other])).toEqual(one);
        expect(withoutHistograms(one, [one, other]).size).toBe(0);
      }),
    );
  });
});

describe("the slots", () => {
  test("of every range end with the one that is not over, and begin on the hour", () => {
    for (const range of RANGE_NAMES) {
      const { slotMinutes, slots } = OVERVIEW_RANGES[range];
      const first = firstSlot(range, later(MINUTE_MS / 2));
      expect(first.getTime() % slotLengthMs(slotMinutes)).toBe(0);
      const end = first.getTime() + slots * slotLengthMs(slotMinutes);
      expect([end > later(MINUTE_MS / 2).getTime(), end - slotLengthMs(slotMinutes) <= NOON.getTime()]).toEqual([
        true,
        true,
      ]);
    }
  });

  test("count a group in each range that still shows it, by host and by key", () => {
    const tally = new ActivityTally(NOON);
    tally.add(aGroup({ at: later(-2 * DAY_MS), count: 3 }));
    tally.add(aGroup({ kind: "created", ms: null, keyId: "" }));
    const seen = tally.changed.map(({ slotMinutes, kind, name, created, attempts }) =>
      [slotMinutes, kind, name, created, attempts].join(" "),
    );
    expect(seen.toSorted()).toEqual(
      [
        "180 all  0 3",
        "180 host api.example.com 0 3",
        "180 key key_one 0 3",
        "720 all  0 3",
        "720 host api.example.com 0 3",
        "720 key key_one 0 3",
        ...[1, 30, 180, 720].flatMap((minutes) => [
          `${minutes} all  1 0`,
          `${minutes} host api.example.com 1 0`,
          `${minutes} key  1 0`,
        ]),
      ].toSorted(),
    );
    expect(tally.changed.every(({ accountId }) => accountId === ACCOUNT)).toBe(true);
  });

  test("go on from what was stored, and change only what is counted", () => {
    const before = new ActivityTally(NOON);
    before.add(aGroup({ ms: 10, lastError: null }));
    before.add(aGroup({ host: "b.example", keyId: "key_b" }));
    const tally = new ActivityTally(NOON);
    tally.load(before.changed);
    const failure = { kind: "retry", failedAttempts: 2, count: 2, lastError: "No.", lastFailedAt: later(9) } as const;
    tally.add(aGroup({ ...failure, ms: 30 }));
    // An older failure, counted later, is not the last one.
    tally.add(aGroup({ ...failure, ms: null, lastError: "Older.", lastFailedAt: later(3) }));
    const changed = tally.changed.filter(isOfHour);
    expect(changed.map(({ kind, name }) => `${kind} ${name}`)).toEqual(["all ", "host api.example.com", "key key_one"]);
    const [all, host] = changed;
    expect(all).toMatchObject({ attempts: 6, completed: 2, failedAttempts: 4, lastError: null });
    expect(host).toMatchObject({
      attempts: 5,
      completed: 1,
      failedAttempts: 4,
      lastError: "No.",
      lastFailedAt: later(9),
    });
    expect(findPercentiles(host?.latency ?? new Map(), [0, 1])).toEqual([10, 30]);
    // What was loaded is not written to.
    expect(before.changed.filter(isOfHour)[1]).toMatchObject({ attempts: 1 });
  });

  test("name a bounded number of hosts and keys, and count the others together", () => {
    const tally = new ActivityTally(NOON);
    for (let at = 0; at < ACTIVITY_NAMES_MAX + 5; at += 1)
      tally.add(aGroup({ host: `h${at}.example`, keyId: `key_${at}` }));
    tally.add(aGroup({ host: "h0.example", keyId: "key_0" }));
    const again = new ActivityTally(NOON);
    again.load(tally.changed);
    again.add(aGroup({ host: "new.example", keyId: "key_new" }));
    const named = (kind: string) => tally.changed.filter((row) => row.kind === kind && isOfHour(row)).length;
    expect([named("host"), named("key")]).toEqual([ACTIVITY_NAMES_MAX, ACTIVITY_NAMES_MAX]);
    const counted = again.changed.filter(isOfHour).map(({ kind, attempts }) => [kind, attempts]);
    expect(counted.slice(1)).toEqual([
      ["other_hosts", 6],
      ["other_keys", 6],
    ]);
    expect(tally.changed.find(({ name }) => name === "h0.example")?.attempts).toBe(2);
  });

  test("tell decisions from attempts", () => {
    const tally = new ActivityTally(NOON);
    tally.add(aGroup({ kind: "approved", ms: 7 * MINUTE_MS, count: 2 }));
    tally.add(aGroup({ kind: "rejected", ms: null }));
    expect(tally.changed[0]).toMatchObject({ approved: 2, rejected: 1, attempts: 0, completed: 0 });
    expect(tally.changed[0]?.latency.size).toBe(0);
  });
});

/** A store that has these pages, one after the other, from position 0 on. */
function storeOf(pages: readonly Partial<ActivityPage>[]) {
  let position = 0;
  const written: Parameters<ActivityStore["put"]>[0][] = [];
  const activity = {
    position: async () => position,
    groups: async (after: number): Promise<ActivityPage> => ({
      groups: [],
      position: pages[after] === undefined ? after : after + 1,
      at: null,
      isLast: after + 1 >= pages.length,
      ...pages[after],
    }),
    stored: async () => [],
    put: async (write: Parameters<ActivityStore["put"]>[0]) => {
      if (write.from !== position) return false;
      position = write.to;
      written.push(write);
      return true;
    },
  };
  return { activity, written, skipTo: (to: number) => (position = to) };
}

const NEVER = new AbortController().signal;

const counting = (activity: ReturnType<typeof storeOf>["activity"], clock = new FakeClock(NOON)) =>
  createCountActivity({ store: { activity, isUnavailable: false }, clock });

describe("the job that counts", () => {
  test("goes on from where it was until it has counted the newest row, with a pause after each step", async () => {
    const clock = new FakeClock(NOON);
    const { activity, written } = storeOf([
      { groups: [aGroup()] },
      {},
      { groups: [aGroup({ kind: "created" }), aGroup({ kind: "approved" })] },
    ]);
    const { run } = counting(activity, clock);
    const running = run(NOON, NEVER);
    for (let turn = 0; turn < 50; turn += 1) {
      clock.advance(5);
      await nextTurn();
    }
    await running;
    expect(written.map(({ from, to, rows }) => [from, to, rows.length])).toEqual([
      [0, 1, 12],
      [1, 2, 0],
      [2, 3, 12],
    ]);
    const steps = (["action", "approval"] as const).map((step) => ({ accountId: ACCOUNT, step, at: NOON }));
    expect(written[2]?.steps).toEqual(steps);
    await run(NOON, NEVER);
    expect(written).toHaveLength(3);
  });

  test("lets others have their turn between what it reads, counts and writes", async () => {
    const { activity } = storeOf([{ groups: [aGroup()] }]);
    let turns = 0;
    const turn = () => {
      turns += 1;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    const seen: number[] = [];
    const noting = { ...activity };
    for (const name of ["groups", "stored", "put"] as const) {
      const method = activity[name] as (...args: unknown[]) => Promise<never>;
      noting[name] = (...args: unknown[]) => {
        seen.push(turns);
        return method(...args);
      };
    }
    await counting(noting).run(NOON, NEVER);
    clearImmediate(next);
    const [groups = 0, stored = 0, put = 0] = seen;
    expect([stored - groups, put - stored]).toEqual([1, 2]);
  });

  test("stops when it is told to", async () => {
    const { activity, written } = storeOf([{}, {}, {}]);
    await counting(activity).run(NOON, AbortSignal.abort());
    expect(written).toEqual([]);
  });

  test("goes on where another node has counted to meanwhile, so that an overview lacks nothing that it left", async () => {
    const { activity, written, skipTo } = storeOf([{}, {}, {}]);
    let reads = 0;
    const stored = async () => {
      reads += 1;
      if (reads === 1) skipTo(1);
      return [];
    };
    expect(await counting({ ...activity, stored }).upToNow()).toBeNull();
    expect(written.map(({ from, to }) => [from, to])).toEqual([
      [1, 2],
      [2, 3],
    ]);
  });

  test("ends where its position was altered to no number", async () => {
    const { activity, written, skipTo } = storeOf([{}, {}]);
    skipTo(Number.NaN);
    const groups = async (): Promise<ActivityPage> => ({ groups: [], position: 2, at: null, isLast: true });
    await counting({ ...activity, groups, put: async () => false }).run(NOON, NEVER);
    expect(written).toEqual([]);
  });

  test("says of nothing that is counted that it is not", async () => {
    // As many rows as a page has: it ends at the last of them.
    const { activity, written } = storeOf([{ groups: [aGroup()], at: later(9) }]);
    expect(await counting(activity).upToNow()).toBeNull();
    expect(written).toHaveLength(1);
  });

  test("counts a bounded number of events for an overview, and says until when", async () => {
    const clock = new FakeClock(NOON);
    const steps = ACTIVITY_COUNTED_ROWS_MAX / ACTIVITY_STEP_ROWS;
    const { activity, written } = storeOf(Array.from({ length: steps + 2 }, (_, at) => ({ at: later(at) })));
    const { upToNow } = counting(activity, clock);
    expect(await upToNow()).toEqual(later(steps - 1));
    expect(written).toHaveLength(steps);
    const few = storeOf([{ at: later(1) }, {}]);
    expect(await counting(few.activity).upToNow()).toBeNull();
    expect(few.written).toHaveLength(2);
  });

  test("leaves an overview what is counted where the store can't be written, and says until when", async () => {
    const { activity } = storeOf([{ groups: [aGroup({ at: later(60_000) }), aGroup()] }]);
    const put = () => Promise.reject(new StoreUnavailable("full"));
    expect(await counting({ ...activity, put }).upToNow()).toEqual(NOON);
  });

  test("keeps nobody who reads waiting for a write while the store is away, and says until when", async () => {
    const { activity, written } = storeOf([{ groups: [aGroup({ at: later(60_000) }), aGroup()] }]);
    const store = { activity, isUnavailable: true };
    const { run, upToNow } = createCountActivity({ store, clock: new FakeClock(NOON) });
    expect(await upToNow()).toEqual(NOON);
    expect(written).toEqual([]);
    // The job tries: that a write succeeds tells that the store is back.
    await run(NOON, NEVER);
    expect(written).toHaveLength(1);
    expect(await upToNow()).toBeNull();
  });

  test("counts for whoever asks while it counts what has happened meanwhile", async () => {
    const clock = new FakeClock(NOON);
    const pages: Partial<ActivityPage>[] = [{}];
    const { activity, written } = storeOf(pages);
    const { upToNow } = counting(activity, clock);
    const first = upToNow();
    await Promise.resolve();
    pages.push({});
    await Promise.all([first, upToNow()]);
    expect(written).toHaveLength(2);
  });
});

test("figures are deleted when no range shows them, or their actions are gone", async () => {
  const pruned: [number, Date][] = [];
  let more = 2;
  const prune = async (minutes: number, before: Date) => {
    pruned.push([minutes, before]);
    more -= 1;
    return more > 0;
  };
  await createPruneActivity({ prune }, null)(NOON, NEVER);
  expect(pruned.map(([minutes]) => minutes)).toEqual([1, 1, 30, 180, 720]);
  expect(pruned[4]).toEqual([720, firstSlot("30d", NOON)]);
  pruned.length = 0;
  await createPruneActivity({ prune }, 2)(NOON, NEVER);
  expect(pruned.map(([, before]) => before)).toEqual([
    firstSlot("1h", NOON),
    firstSlot("24h", NOON),
    later(-2 * DAY_MS),
    later(-2 * DAY_MS),
  ]);
});
