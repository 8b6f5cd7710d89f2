import { describe, expect, test } from "bun:test";
import {
  DAY_MS,
  FAILING_HOSTS_SHOWN_MAX,
  OVERVIEW_FRESH_FACTOR,
  OVERVIEW_NAMES_SHOWN_MAX,
  OVERVIEW_RANGES,
} from "../../src/core/limits.ts";
import {
  type ActivityGroup,
  type ActivityRow,
  ActivityTally,
  firstSlot,
  type NameTotals,
  type OverviewRange,
  RANGE_NAMES,
  type ActivityName,
  type ActivitySpan,
} from "../../src/core/activity.ts";
import { createOverview } from "../../src/events/overview.ts";
import { mergeHistograms } from "../../src/core/histogram.ts";
import { FakeClock } from "../support/clock.ts";
import { ACCOUNT, anApiKey, later, NOON } from "../support/factory.ts";
import { aGroup } from "../support/overview.ts";
import { ownerOf } from "../support/owner.ts";

const MINUTE_MS = 60_000;

const HALF_HOUR_MS = 30 * MINUTE_MS;

const NO_RETRIES = { count: 0, due: 0, dueSince: null, isCut: false, hosts: [] };

interface Made {
  readonly stored?: readonly ActivityGroup[];
  readonly clock?: FakeClock;
  readonly retentionDays?: number;
  /** Counts what has happened; returns until when. */
  readonly upToNow?: () => Date | null;
}

/** What hosts and keys did in all these slots. */
function namesIn(rows: readonly ActivityRow[]): readonly NameTotals[] {
  const named = rows.flatMap(({ kind, ...row }) => (kind === "all" ? [] : [{ kind, ...row }]));
  return [...Map.groupBy(named, ({ kind, name }) => `${kind} ${name}`).values()].flatMap((all) => {
    const sum = (count: "created" | "completed" | "failed" | "attempts" | "failedAttempts") =>
      all.reduce((total, row) => total + row[count], 0);
    const [created, completed, failed] = [sum("created"), sum("completed"), sum("failed")];
    const [attempts, failedAttempts] = [sum("attempts"), sum("failedAttempts")];
    const [newest] = all.toSorted((a, b) => (b.lastFailedAt?.getTime() ?? 0) - (a.lastFailedAt?.getTime() ?? 0));
    if (newest === undefined) return [];
    const { kind, name, lastError, lastFailedAt } = newest;
    return [{ kind, name, created, completed, failed, attempts, failedAttempts, lastError, lastFailedAt }];
  });
}

/** An overview over rows that a test makes up. */
function overviewOf({ stored = [], clock = new FakeClock(NOON), retentionDays, upToNow = () => null }: Made = {}) {
  const asked: (readonly ActivityName[])[] = [];
  const askedHosts: (readonly string[])[] = [];
  let counts = 0;
  const rowsOf = ({ slotMinutes, until }: ActivitySpan) => {
    const tally = new ActivityTally(NOON);
    for (const group of stored) tally.add(group);
    return tally.changed.filter((row) => row.slotMinutes === slotMinutes && row.at < until);
  };
  const activity = {
    read: async (span: ActivitySpan) => {
      const rows = rowsOf(span);
      return { slots: rows.filter(({ kind }) => kind === "all"), names: namesIn(rows) };
    },
    latencies: async (span: ActivitySpan, names: readonly ActivityName[]) => {
      asked.push(names);
      return names.map(({ kind, name }) => {
        const rows = rowsOf(span).filter((row) => row.kind === kind && row.name === name);
        return { kind, name, latency: mergeHistograms(rows.map(({ latency }) => latency)) };
      });
    },
    hostSlots: async (span: ActivitySpan, hosts: readonly string[]) => {
      askedHosts.push(hosts);
      const rows = rowsOf(span).filter(({ kind, name }) => kind === "host" && hosts.includes(name));
      return rows.map((row) => ({ ...row, host: row.name }));
    },
  };
  const actions = {
    scheduledRetries: async () => NO_RETRIES,
    waitingApprovals: async () => ({ count: 2, isCut: false, oldestAt: NOON, overAnHour: 0, overADay: 0 }),
  };
  const accounts = {
    findKey: async (accountId: string, id: string) =>
      id === "key_gone" ? null : anApiKey({ id, accountId, name: `name of ${id}` }),
  };
  const countActivity = {
    upToNow: async () => {
      counts += 1;
      return upToNow();
    },
  };
  const service = createOverview({
    clock,
    config: { retentionDays: retentionDays ?? null },
    store: { actions, activity, accounts },
    countActivity,
  });
  const answer = (range: OverviewRange = "24h") => service.read(ownerOf(ACCOUNT), range);
  const read = async (range?: OverviewRange) => (await answer(range)).overview;
  return { read, answer, service, clock, asked, askedHosts, counted: () => counts };
}

describe("the overview", () => {
  test("shows a day in half hours, with the percentiles of each and of all", async () => {
    const { read } = overviewOf({
      stored: [
        aGroup({ kind: "created", ms: null, count: 9 }),
        aGroup({ ms: 21, count: 90 }),
        aGroup({ kind: "failed", ms: 30, count: 9 }),
        aGroup({ kind: "retry", ms: 5_000 }),
        aGroup({ at: later(-HALF_HOUR_MS), ms: 20, count: 50 }),
        aGroup({ at: later(HALF_HOUR_MS) }),
        aGroup({ at: later(-48 * HALF_HOUR_MS) }),
      ],
    });
    const { slots, latency } = await read();
    expect(slots).toHaveLength(48);
    const newest = { at: NOON, created: 9, completed: 90, failed: 9, attempts: 100, p50Ms: 21, p95Ms: 30 };
    expect(slots.at(-1)).toEqual(newest);
    expect(slots.at(-2)).toMatchObject({ at: later(-HALF_HOUR_MS), completed: 50, p50Ms: 20, p95Ms: 20 });
    expect(slots[0]).toMatchObject({ attempts: 0, p50Ms: null, p95Ms: null });
    expect(latency).toEqual({ p50Ms: 21, p95Ms: 30, p99Ms: 30 });
  });

  test.each(RANGE_NAMES)("has slots without gaps up to now for %s", async (range) => {
    const { slotMinutes, slots: count } = OVERVIEW_RANGES[range];
    const oldest = aGroup({ at: firstSlot(range, NOON), count: 2 });
    const { read } = overviewOf({ stored: [oldest, aGroup()] });
    const { slots, since } = await read(range);
    expect(slots.map(({ at }) => at.getTime())).toEqual(
      Array.from({ length: count }, (_, index) => since.getTime() + index * slotMinutes * MINUTE_MS),
    );
    expect([slots[0]?.completed, slots.at(-1)?.completed]).toEqual([2, 1]);
  });

  test("lists the hosts where actions fail, the worst first, with the newest error", async () => {
    const failure = (host: string, failed: number, lastFailedAt: Date) =>
      aGroup({ kind: "failed", host, count: failed, failedAttempts: failed, lastError: `No. ${failed}`, lastFailedAt });
    const ofAttempts = (count: number) => ({ completed: 0, failed: count, attempts: count, failedAttempts: count });
    const { failing } = await overviewOf({
      stored: [
        aGroup({ host: "good.example", count: 5 }),
        failure("bad.example", 2, later(-HALF_HOUR_MS)),
        failure("worse.example", 3, later(-5)),
        failure("bad.example", 1, NOON),
        failure("worse.example", 2, NOON),
      ],
    }).read();
    expect(failing).toEqual([
      { host: "worse.example", ...ofAttempts(5), lastError: "No. 2", lastFailedAt: NOON },
      { host: "bad.example", ...ofAttempts(3), lastError: "No. 1", lastFailedAt: NOON },
    ]);
    const many = Array.from({ length: 3 * FAILING_HOSTS_SHOWN_MAX }, (_, at) =>
      failure(`h${at}.example`, 1, later(at)),
    );
    const newest = (await overviewOf({ stored: many }).read()).failing;
    expect(newest.map(({ host }) => host)).toEqual(
      many
        .toReversed()
        .slice(0, FAILING_HOSTS_SHOWN_MAX)
        .map(({ host }) => host),
    );
  });

  test("takes a host for failing by its actions: attempts that were retried with success don't count", async () => {
    const retried = { kind: "retry", failedAttempts: 9, count: 9, lastError: "No.", lastFailedAt: NOON } as const;
    const failed = { ...retried, kind: "failed", failedAttempts: 1, count: 1 } as const;
    const { failing } = await overviewOf({
      stored: [
        aGroup({ ...retried, host: "recovered.example" }),
        aGroup({ host: "recovered.example", count: 9 }),
        aGroup({ ...failed, host: "bad.example" }),
        aGroup({ host: "bad.example", count: 4 }),
        // It has ended nothing yet: its attempts are all that is known.
        aGroup({ ...retried, host: "down.example" }),
      ],
    }).read();
    expect(failing.map((one) => [one.host, one.failed, one.completed, one.failedAttempts])).toEqual([
      ["bad.example", 1, 4, 1],
      ["down.example", 0, 0, 9],
    ]);
  });

  test.each(RANGE_NAMES)("has the last 24 hours of each host that it names: %s", async (range) => {
    const failed = { kind: "failed", failedAttempts: 1, lastError: "No.", lastFailedAt: NOON } as const;
    const dayAgo = firstSlot("24h", NOON);
    const names = Array.from({ length: 2 * OVERVIEW_NAMES_SHOWN_MAX }, (_, at) => `h${at}.example`);
    const { read, askedHosts } = overviewOf({
      stored: [
        ...names.map((host, at) => aGroup({ host, count: 100 - at })),
        aGroup({ ...failed, host: "h19.example" }),
        aGroup({ host: "h0.example", at: dayAgo, count: 2 }),
        aGroup({ host: "h0.example", at: new Date(dayAgo.getTime() - 1) }),
        aGroup({ ...failed, host: "h0.example" }),
      ],
    });
    const { hostHours } = await read(range);
    expect([...hostHours.keys()]).toEqual([...names.slice(0, OVERVIEW_NAMES_SHOWN_MAX), "h19.example"]);
    expect(askedHosts).toEqual([[...hostHours.keys()]]);
    const hours = hostHours.get("h0.example") ?? [];
    expect(hours.map(({ at }) => at.getTime())).toEqual(
      Array.from({ length: 24 }, (_, hour) => dayAgo.getTime() + hour * 2 * HALF_HOUR_MS),
    );
    const [first, last] = [hours[0], hours.at(-1)];
    expect([first?.completed, last?.completed, last?.failed, last?.failedAttempts]).toEqual([2, 100, 1, 1]);
    expect(hours.slice(1, -1).every(({ attempts }) => attempts === 0)).toBe(true);
  });

  test("names the busiest hosts and keys, counts the others together, and knows the names of keys", async () => {
    const stored = Array.from({ length: OVERVIEW_NAMES_SHOWN_MAX + 60 }, (_, at) =>
      aGroup({ host: `h${at}.example`, keyId: at === 1 ? "" : `key_${at === 2 ? "gone" : at}`, count: 100 - at }),
    );
    const { overview, keyNames } = await overviewOf({ stored }).answer();
    for (const { named, others } of [overview.hosts, overview.keys]) {
      expect(named.map(({ attempts }) => attempts)).toEqual([100, 99, 98, 97, 96, 95, 94, 93, 92, 91]);
      expect((others?.attempts ?? 0) + 955).toBe(stored.reduce((all, { count }) => all + count, 0));
    }
    expect(overview.keys.named.slice(0, 3).map(({ name }) => keyNames.get(name))).toEqual([
      "name of key_0",
      undefined,
      undefined,
    ]);
  });

  test("reads the latencies of the names that it shows, however many there are, and knows those of all others", async () => {
    const stored = Array.from({ length: 45 }, (_, at) =>
      aGroup({
        host: `h${at}.example`,
        keyId: `key_${at}`,
        count: 100 - at,
        ms: at < OVERVIEW_NAMES_SHOWN_MAX ? 9 : 30,
      }),
    );
    // One of the busy ones, one of the others, and one that no slot knows.
    const more = [
      aGroup({ host: "h0.example", ms: 20, count: 901 }),
      aGroup({ host: "h44.example", ms: 20, count: 1 }),
    ];
    const busy = [...more, aGroup({ host: "new.example", keyId: "", ms: 25, count: 500 })];
    const { read, asked } = overviewOf({ stored: [...stored, ...busy] });
    const { hosts } = await read();
    expect(asked.map((names) => names.length)).toEqual([2 * OVERVIEW_NAMES_SHOWN_MAX]);
    expect(hosts.named.slice(0, 3).map(({ name, attempts, p50Ms, p95Ms }) => [name, attempts, p50Ms, p95Ms])).toEqual([
      ["h0.example", 1_001, 20, 20],
      ["new.example", 500, 25, 25],
      ["h1.example", 99, 9, 9],
    ]);
    const named = hosts.named.reduce((all, { attempts }) => all + attempts, 0);
    const all = [...stored, ...busy].reduce((sum, { count }) => sum + count, 0);
    // The ninth of the stored ones is among the others too: it took 9 ms, 91 times.
    expect(hosts.others).toMatchObject({ attempts: all - named, p50Ms: 30, p95Ms: 30 });
    expect((await overviewOf({ stored: stored.slice(0, 10) }).read()).hosts.others).toBeNull();
  });

  test("tells how long decisions took", async () => {
    const stored = [
      aGroup({ kind: "approved", ms: 8, count: 18 }),
      aGroup({ kind: "rejected", ms: 31, count: 2 }),
      aGroup({ kind: "created", ms: null }),
    ];
    const { overview, waiting } = await overviewOf({ stored }).answer();
    expect(overview.decisions).toEqual({ approved: 18, rejected: 2, p50Ms: 8, p95Ms: 31 });
    expect([overview.latency, waiting.count]).toEqual([null, 2]);
  });

  test("counts what has happened before it is read, and says until when where that is too much", async () => {
    const { read, counted } = overviewOf({ upToNow: () => later(-7) });
    expect((await read()).countedUntil).toEqual(later(-7));
    expect(counted()).toBe(1);
    expect((await overviewOf().read()).countedUntil).toBeNull();
  });

  test("says since when it counts if actions are kept for less time than it shows", async () => {
    const { read } = overviewOf({ retentionDays: 3 });
    expect((await read("30d")).since).toEqual(later(-3 * DAY_MS));
    expect((await read("24h")).since).toEqual(firstSlot("24h", NOON));
  });

  test("is kept for a multiple of the time that it took, and not if it could not be read", async () => {
    const clock = new FakeClock(NOON);
    let isAway = true;
    const upToNow = () => {
      clock.advance(20);
      if (isAway) throw new Error("away");
      return null;
    };
    const { read, counted } = overviewOf({ upToNow, clock });
    const failures = await Promise.allSettled([read(), read()]);
    expect(failures.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    isAway = false;
    await Promise.all([read(), read()]);
    expect(counted()).toBe(2);
    clock.advance(20 * OVERVIEW_FRESH_FACTOR - 1);
    await read();
    expect(counted()).toBe(2);
    // Each range is counted by itself.
    await read("1h");
    expect(counted()).toBe(3);
    clock.advance(1);
    await read();
    expect(counted()).toBe(4);
  });
});
