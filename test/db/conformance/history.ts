import { describe, expect } from "bun:test";
import { approve, cancel } from "../../../src/core/changes.ts";
import { settleLate } from "../../../src/core/settle.ts";
import { DAY_MS, HOUR_MS, RETRY_HOSTS_SHOWN_MAX } from "../../../src/core/limits.ts";
import { type ActivitySpan, type ActivityGroup, type ActivityRow, ActivityTally } from "../../../src/core/activity.ts";
import { findPercentiles } from "../../../src/core/histogram.ts";
import { ACCOUNT, aDecision, answered, KEY, later, NOON, OTHER_ACCOUNT, writeOf } from "../../support/factory.ts";
import { aGroup } from "../../support/overview.ts";
import type { StoreTest } from "./store-test.ts";
import { attempted, attemptedAction, createdAction, decided, failedAction } from "./steps.ts";

const MINUTE_MS = 60_000;

const SLOT_MS = 30 * MINUTE_MS;

/** What the overview counts. */
export function testHistory(test: StoreTest): void {
  describe("the activity of accounts", () => {
    const ALL = { since: later(-DAY_MS), limit: 100 };

    const API_HOST = { kind: "host", name: "api.example.com" } as const;

    const aSpan = (span: Partial<ActivitySpan> = {}): ActivitySpan => {
      return { accountId: ACCOUNT, slotMinutes: 30, since: NOON, until: later(SLOT_MS), ...span };
    };

    const kindsOf = (groups: readonly ActivityGroup[]) =>
      groups
        .map(({ kind, count, ms }) => [kind, count, ms] as const)
        .toSorted(([one], [other]) => (one < other ? -1 : 1));

    test("is grouped by minute, host, key, end and duration", async (db, { activity }) => {
      const other = await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      await attempted(db.actions, other, answered(200));
      await failedAction(db.actions);
      await attempted(db.actions, await createdAction(db.actions), answered(503), { now: later(10) });
      const sent = { now: later(MINUTE_MS), durationMs: 1_234 };
      await attempted(
        db.actions,
        await createdAction(db.actions, { url: "http://b.example:81/" }),
        answered(200),
        sent,
      );
      const page = await activity.groups(0, ALL);
      expect(page).toMatchObject({ position: await db.actions.position(), at: null, isLast: true });
      expect(kindsOf(page.groups.filter(({ accountId }) => accountId === OTHER_ACCOUNT))).toEqual([
        ["completed", 1, 10],
        ["created", 1, null],
      ]);
      const ofAccount = page.groups.filter(({ accountId }) => accountId === ACCOUNT);
      expect(kindsOf(ofAccount)).toEqual([
        ["completed", 1, 1_234],
        ["created", 2, null],
        ["created", 1, null],
        ["failed", 1, 10],
        ["retry", 1, 10],
      ]);
      expect(ofAccount.find(({ kind }) => kind === "retry")).toEqual({
        accountId: ACCOUNT,
        at: NOON,
        host: "api.example.com",
        keyId: KEY,
        kind: "retry",
        ms: 10,
        count: 1,
        byMcp: 0,
        attempts: 1,
        failedAttempts: 1,
        lastError: "The target answered with status 503.",
        lastFailedAt: later(10),
      });
      const ofOne = ofAccount.find(({ kind }) => kind === "completed");
      expect(ofOne).toMatchObject({ host: "b.example:81", at: later(MINUTE_MS), failedAttempts: 0, lastError: null });
      const younger = await activity.groups(0, { ...ALL, since: later(1) });
      expect(kindsOf(younger.groups).map(([kind]) => kind)).toEqual(["completed", "retry"]);
    });

    test("counts an attempt and the end of its action once, even if its result comes late", async (db, {
      activity,
    }) => {
      const backoff = { baseMs: 1, capMs: 1 };
      const end = { now: NOON, durationMs: 41, timeoutMs: 1, backoff, chance: 0, run: 1, attempt: 1 };
      for (const retries of [1, 3]) {
        const before = await attemptedAction(db.actions, { kind: "unknown", fault: "interrupted" }, { retries });
        await db.actions.apply(writeOf(settleLate(before, { ...end, outcome: answered(200) })));
      }
      const { groups } = await activity.groups(0, ALL);
      expect(
        groups.map(({ kind, count, attempts, failedAttempts }) => [kind, count, attempts, failedAttempts]),
      ).toEqual([
        ["created", 2, 0, 0],
        ["failed", 1, 1, 1],
        ["retry", 1, 1, 1],
        ["completed", 1, 0, 0],
      ]);
    });

    test("tells how long each decision took, from the beginning of its run", async (db) => {
      const held = () => createdAction(db.actions, { approve: true });
      const [soon, late] = [later(90), later(7 * MINUTE_MS)];
      await db.actions.apply(writeOf(cancel(await held(), aDecision(late)), late));
      await db.actions.apply(writeOf(approve(await held(), aDecision(soon)), soon));
      // Not held: nobody decided.
      await decided(db.actions, cancel, await createdAction(db.actions));
      const { groups } = await db.store.activity.groups(0, ALL);
      expect(kindsOf(groups)).toEqual([
        ["approved", 1, 90],
        ["created", 3, null],
        ["rejected", 1, 7 * MINUTE_MS],
      ]);
    });

    test("tells the creates of MCP clients, and the newest actions who created and approved them", async (db) => {
      await createdAction(db.actions, { createdBy: "mcp:billing" });
      await createdAction(db.actions, { createdBy: "key:mcp:", createdAt: later(1) });
      const held = await createdAction(db.actions, { approve: true, createdAt: later(2) });
      await db.actions.apply(writeOf(approve(held, aDecision(later(3))), later(3)));
      const { groups } = await db.store.activity.groups(0, ALL);
      expect(groups.filter(({ kind }) => kind === "created")).toMatchObject([{ count: 3, byMcp: 1 }]);
      expect((await db.store.firstSteps.newest(ACCOUNT)).toReversed()).toEqual([
        { createdBy: "mcp:billing", approvedBy: null },
        { createdBy: "key:mcp:", approvedBy: null },
        { createdBy: held.createdBy, approvedBy: aDecision().actor },
      ]);
      expect(await db.store.firstSteps.newest(OTHER_ACCOUNT)).toEqual([]);
    });

    test("comes in pages that count each row once, and puts similar durations together", async (db) => {
      for (let count = 0; count < 3; count += 1) {
        await attempted(db.actions, await createdAction(db.actions), answered(200), { durationMs: 510 + count });
      }
      const whole = await db.store.activity.groups(0, ALL);
      expect(kindsOf(whole.groups)).toEqual([
        ["completed", 3, 511],
        ["created", 3, null],
      ]);
      const kinds: string[] = [];
      let pages = 0;
      for (let position = 0, isLast = false; !isLast; pages += 1) {
        const page = await db.store.activity.groups(position, { ...ALL, limit: 2 });
        kinds.push(...page.groups.map(({ kind }) => kind));
        ({ position, isLast } = page);
        if (!isLast) expect(page.at).toEqual(NOON);
      }
      expect(kinds.toSorted()).toEqual(["completed", "completed", "completed", "created", "created", "created"]);
      expect(pages).toBe(Math.ceil((await db.rowsUpTo(whole.position)) / 2));
      expect(await db.store.activity.groups(whole.position, ALL)).toMatchObject({ groups: [], isLast: true });
    });

    test("is stored with its position, by whoever counts first, and read back by slots and by range", async (db) => {
      const { activity, firstSteps } = db.store;
      const tally = new ActivityTally(NOON);
      const failure = {
        kind: "retry",
        ms: 2_000,
        failedAttempts: 1,
        lastError: "No.",
        lastFailedAt: NOON,
      } as const;
      for (const group of [aGroup({ kind: "created", ms: null }), aGroup(failure), aGroup({ kind: "approved" })])
        tally.add(group);
      const first = {
        from: 0,
        to: 5,
        rows: tally.changed,
        steps: [{ accountId: ACCOUNT, step: "action", at: NOON }],
      } as const;
      expect(await activity.position()).toBe(0);
      expect(await Promise.all([activity.put(first), activity.put(first)])).toEqual([true, false]);
      expect(await activity.position()).toBe(5);
      const slots = tally.slotsFor([aGroup()]);
      const sorted = (rows: readonly ActivityRow[]) =>
        rows.toSorted(
          (a, b) => a.slotMinutes - b.slotMinutes || (`${a.kind}${a.name}` < `${b.kind}${b.name}` ? -1 : 1),
        );
      expect(sorted(await activity.stored(slots))).toEqual(sorted(tally.changed));
      expect(await activity.stored([])).toEqual([]);
      tally.add(aGroup());
      const steps = [{ accountId: ACCOUNT, step: "action", at: later(9) }] as const;
      expect(await activity.put({ from: 5, to: 9, rows: tally.changed, steps })).toBe(true);
      expect(await firstSteps.done(ACCOUNT, "person_a")).toEqual([{ step: "action", at: NOON }]);
      const stored = tally.changed.filter(({ slotMinutes }) => slotMinutes === 30);
      const { slots: counted } = await activity.read(aSpan());
      expect(counted).toEqual(stored.filter(({ kind }) => kind === "all"));
      // A stretch in which nothing is counted moves the position on.
      expect(await activity.put({ from: 9, to: 12, rows: [], steps: [] })).toBe(true);
      for (const other of [{ since: later(1) }, { until: NOON }, { accountId: OTHER_ACCOUNT }, { slotMinutes: 7 }]) {
        expect(await activity.read(aSpan(other))).toEqual({ slots: [], names: [] });
        expect(await activity.latencies(aSpan(other), [API_HOST])).toEqual([]);
      }
    });

    test("is read by host and key with sums of all slots, and with the latencies of those that are asked for", async (db) => {
      const { activity } = db.store;
      const tally = new ActivityTally(later(SLOT_MS));
      const failed = (at: Date, lastError: string) =>
        aGroup({ at, kind: "failed", ms: 2_000, failedAttempts: 1, lastError, lastFailedAt: at });
      for (const group of [
        failed(later(SLOT_MS), "Newer."),
        failed(NOON, "Older."),
        aGroup({ kind: "created", ms: null, host: "idle.example" }),
        aGroup({ kind: "approved", host: "idle.example" }),
        aGroup({ at: later(SLOT_MS), count: 5, host: "other.example", keyId: "" }),
      ])
        tally.add(group);
      await activity.put({ from: 0, to: 1, rows: tally.changed, steps: [] });
      const span = aSpan({ until: later(2 * SLOT_MS) });
      const { slots, names } = await activity.read(span);
      expect(slots.map(({ at, attempts }) => [at, attempts])).toEqual([
        [NOON, 1],
        [later(SLOT_MS), 6],
      ]);
      const none = { created: 0, completed: 0, failed: 0, attempts: 0, failedAttempts: 0 };
      const failures = { failed: 2, failedAttempts: 2, attempts: 2 };
      const noError = { lastError: null, lastFailedAt: null };
      expect(names.toSorted((a, b) => (`${a.kind}${a.name}` < `${b.kind}${b.name}` ? -1 : 1))).toEqual([
        { kind: "host", name: API_HOST.name, ...none, ...failures, lastError: "Newer.", lastFailedAt: later(SLOT_MS) },
        { kind: "host", name: "idle.example", ...none, created: 1, ...noError },
        { kind: "host", name: "other.example", ...none, completed: 5, attempts: 5, ...noError },
        { kind: "key", name: "", ...none, completed: 5, attempts: 5, ...noError },
        { kind: "key", name: KEY, ...none, ...failures, created: 1, ...noError },
      ]);
      const asked = [API_HOST, { kind: "key", name: "" }, { kind: "host", name: "gone.example" }] as const;
      const latencies = await activity.latencies(span, asked);
      expect(latencies.map(({ kind, name, latency }) => [kind, name, findPercentiles(latency, [0, 1])])).toEqual([
        ["host", API_HOST.name, [2_000, 2_000].map((ms) => expect.closeTo(ms, -2))],
        ["key", "", [20, 20]],
      ]);
      expect(await activity.latencies(span, [])).toEqual([]);
    });

    test("is read of some hosts by slots", async ({ store: { activity } }) => {
      const tally = new ActivityTally(later(SLOT_MS));
      const failure = { kind: "failed", failedAttempts: 1, lastError: "No.", lastFailedAt: NOON } as const;
      for (const group of [
        aGroup(failure),
        aGroup({ at: later(SLOT_MS), count: 5 }),
        aGroup({ kind: "created", ms: null }),
        aGroup({ host: "other.example" }),
        aGroup({ host: "third.example", keyId: API_HOST.name }),
      ])
        tally.add(group);
      await activity.put({ from: 0, to: 1, rows: tally.changed, steps: [] });
      const span = aSpan({ until: later(2 * SLOT_MS) });
      const slots = await activity.hostSlots(span, [API_HOST.name, "other.example", "gone.example"]);
      const none = { created: 0, completed: 0, failed: 0, attempts: 0, failedAttempts: 0 };
      expect(slots.toSorted((a, b) => (a.host < b.host ? -1 : a.at.getTime() - b.at.getTime()))).toEqual([
        { host: API_HOST.name, at: NOON, ...none, created: 1, failed: 1, attempts: 1, failedAttempts: 1 },
        { host: API_HOST.name, at: later(SLOT_MS), ...none, completed: 5, attempts: 5 },
        { host: "other.example", at: NOON, ...none, completed: 1, attempts: 1 },
      ]);
      expect(await activity.hostSlots(aSpan({ since: later(1) }), [API_HOST.name])).toEqual([]);
      expect(await activity.hostSlots(span, [])).toEqual([]);
    });

    test("is pruned by the length of its slots", async ({ store: { activity } }) => {
      const tally = new ActivityTally(NOON);
      tally.add(aGroup());
      await activity.put({ from: 0, to: 1, rows: tally.changed, steps: [] });
      expect(await activity.prune(1, NOON)).toBe(false);
      expect(await activity.stored(tally.slotsFor([aGroup()]))).toHaveLength(12);
      await activity.prune(1, later(1));
      expect(await activity.stored(tally.slotsFor([aGroup()]))).toHaveLength(9);
    });
  });

  test("the first steps of an account are stored once, and those of a person are that person's", async (db) => {
    const { firstSteps } = db.store;
    const step = { accountId: ACCOUNT, personId: "", step: "agent", at: NOON } as const;
    await firstSteps.add(step);
    await firstSteps.add({ ...step, at: later(5) });
    await firstSteps.add({ ...step, step: "hidden", personId: "person_a" });
    expect(await firstSteps.done(ACCOUNT, "person_b")).toEqual([{ step: "agent", at: NOON }]);
    expect((await firstSteps.done(ACCOUNT, "person_a")).map((done) => done.step).toSorted()).toEqual([
      "agent",
      "hidden",
    ]);
    expect(await firstSteps.done(OTHER_ACCOUNT, "person_a")).toEqual([]);
    const hidden = { accountId: ACCOUNT, personId: "person_a", step: "hidden" } as const;
    for (const other of [{ accountId: OTHER_ACCOUNT }, { personId: "" }, { step: "agent" } as const]) {
      await firstSteps.remove({ ...hidden, ...other });
    }
    expect(await firstSteps.done(ACCOUNT, "person_a")).toHaveLength(2);
    for (let twice = 0; twice < 2; twice += 1) await firstSteps.remove(hidden);
    expect(await firstSteps.done(ACCOUNT, "person_a")).toEqual([{ step: "agent", at: NOON }]);
  });

  test("waiting approvals are counted, with the time of the oldest and by how long they wait", async (db) => {
    const waitingAt = (now: Date) => db.actions.waitingApprovals(ACCOUNT, now);
    const none = { isCut: false, overAnHour: 0, overADay: 0 };
    expect(await waitingAt(NOON)).toEqual({ ...none, count: 0, oldestAt: null });
    await createdAction(db.actions);
    await createdAction(db.actions, { approve: true, accountId: OTHER_ACCOUNT });
    for (const ms of [0, 10]) await createdAction(db.actions, { approve: true, createdAt: later(ms) });
    const two = { ...none, count: 2, oldestAt: NOON };
    expect(await waitingAt(later(HOUR_MS))).toEqual(two);
    expect(await waitingAt(later(HOUR_MS + 1))).toEqual({ ...two, overAnHour: 1 });
    expect(await waitingAt(later(DAY_MS + 11))).toEqual({ ...two, overAnHour: 2, overADay: 2 });
  });

  describe("scheduled retries", () => {
    test("are counted by host if they are not due, the next one first", async (db) => {
      const hosts = ["b.example", "a.example", "a.example"];
      for (const [at, host] of hosts.entries()) {
        const action = await createdAction(db.actions, { url: `https://${host}/`, createdAt: later(at) });
        await attempted(db.actions, action, answered(500), { now: later(at * 1_000) });
      }
      await createdAction(db.actions);
      await createdAction(db.actions, { approve: true });
      await failedAction(db.actions);
      const theirs = await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      await attempted(db.actions, theirs, answered(500));
      expect(await db.actions.scheduledRetries(ACCOUNT, later(100))).toEqual({
        count: 3,
        due: 1,
        dueSince: NOON,
        isCut: false,
        hosts: [
          { host: "b.example", count: 1, nextAt: later(2_000) },
          { host: "a.example", count: 2, nextAt: later(3_000) },
        ],
      });
      expect(await db.actions.scheduledRetries(ACCOUNT, later(60_000))).toEqual({
        count: 0,
        due: 4,
        dueSince: NOON,
        isCut: false,
        hosts: [],
      });
    });

    test("list the hosts that come next", async (db) => {
      for (let at = 0; at < RETRY_HOSTS_SHOWN_MAX + 2; at += 1) {
        const action = await createdAction(db.actions, { url: `https://h${at}.example/`, createdAt: later(at) });
        await attempted(db.actions, action, answered(500), { now: later(at * 1_000) });
      }
      const { count, hosts } = await db.actions.scheduledRetries(ACCOUNT, NOON);
      expect(count).toBe(RETRY_HOSTS_SHOWN_MAX + 2);
      expect(hosts.map(({ host }) => host)).toEqual(
        Array.from({ length: RETRY_HOSTS_SHOWN_MAX }, (_, at) => `h${at}.example`),
      );
    });
  });
}
