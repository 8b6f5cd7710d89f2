import { describe, expect } from "bun:test";
import { LEASE_MS_MAX, SMALL_ROW_BYTES_MAX, RECOVERY_BYTES_MAX } from "../../../src/core/limits.ts";
import type { Action } from "../../../src/core/action.ts";
import type { LaneHead, LaneName } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  answered,
  KEY,
  later,
  NOON,
  OTHER_ACCOUNT,
  aCreation,
  aDecision,
  anAction,
  aResult,
  creationOf,
  settled,
  writeOf,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import {
  actionInStatus,
  attempted,
  claimDue,
  claimed,
  claimOf,
  createdAction,
  stored,
  decided,
  happeningsOf,
  LEASE,
} from "./steps.ts";
import { releaseClaim } from "../../../src/core/settle.ts";
import { approve, cancel } from "../../../src/core/changes.ts";
import { words } from "../../support/words.ts";

const LANE: LaneName = { accountId: ACCOUNT, host: "api.example.com", keyId: KEY };

/** The queues that the dispatcher reads, and its claims: each is counted before a byte leaves, and only it ends its attempt. */
export function testClaims(test: StoreTest): void {
  describe("lanes", () => {
    test("are the accounts and hosts with pending actions, each with its earliest time", async (db) => {
      await createdAction(db.actions, { createdAt: later(9) });
      await createdAction(db.actions, { createdAt: later(3) });
      await createdAction(db.actions, { createdAt: later(6) });
      await createdAction(db.actions, { url: "http://a.example:8080/", accountId: OTHER_ACCOUNT });
      const heads = await db.actions.lanes(null, 10);
      expect(sorted(heads)).toEqual([
        { ...LANE, dueAt: later(3) },
        { accountId: OTHER_ACCOUNT, host: "a.example:8080", keyId: KEY, dueAt: NOON },
      ]);
    });

    test("are of one key each: what one key has queued is not before what another one sends", async (db) => {
      const keys = ["key_b", "key_a", ""];
      for (const keyId of keys) await createdAction(db.actions, { keyId, createdAt: later(3) });
      const first = await createdAction(db.actions, { keyId: "key_a" });
      const heads = await db.actions.lanes(null, 10);
      expect(heads).toEqual([
        { ...LANE, keyId: "", dueAt: later(3) },
        { ...LANE, keyId: "key_a", dueAt: NOON },
        { ...LANE, keyId: "key_b", dueAt: later(3) },
      ]);
      expect(await db.actions.lanes(heads[0] ?? null, 1)).toEqual(heads.slice(1, 2));
      expect(await claimDue(db.actions, { ...LANE, keyId: "key_a" }, { limit: 1 })).toMatchObject([{ id: first.id }]);
      expect(await claimDue(db.actions, { ...LANE, keyId: "key_b" }, { lease: leaseAt(9) })).toHaveLength(1);
    });

    test("tell when the action that is due first is due, whichever lane it is in", async (db) => {
      expect(await db.actions.firstDueAt()).toBeNull();
      for (const [at, host] of ["c.example", "a.example", "b.example"].entries()) {
        await createdAction(db.actions, { url: `https://${host}/`, createdAt: later(5 + at) });
        await createdAction(db.actions, { url: `https://${host}/`, createdAt: later(50) });
      }
      await createdAction(db.actions, { url: "https://a.example/", keyId: "key_z", createdAt: later(4) });
      expect(await db.actions.firstDueAt()).toEqual(later(4));
      await createdAction(db.actions, { accountId: OTHER_ACCOUNT, createdAt: later(2) });
      const active = await createdAction(db.actions, { createdAt: later(1) });
      await claimed(db.actions, active);
      expect(await db.actions.firstDueAt()).toEqual(later(2));
    });

    test("leave out what is not pending", async (db) => {
      const statuses = ["active", "awaiting_approval", "completed", "failed", "cancelled"] as const;
      for (const status of statuses) await actionInStatus(db.actions, status, { url: `https://${status}.example/` });
      expect(await db.actions.lanes(null, 10)).toEqual([]);
    });

    test.each([1, 2, 3, 100])(
      "come in a fixed order that goes on after any of them (%s at a time)",
      async (db, limit) => {
        const hosts = words("a.example a.example:8080 a.example.org b-1.example b1.example [::1]:3000 xn--4ca");
        for (const host of hosts) {
          await createdAction(db.actions, { url: `http://${host}/` });
          await createdAction(db.actions, { url: `http://${host}/`, accountId: OTHER_ACCOUNT });
          await createdAction(db.actions, { url: `http://${host}/`, createdAt: later(-1) });
        }
        const seen: LaneHead[] = [];
        let heads = await db.actions.lanes(null, limit);
        while (heads.length > 0 && seen.length < 100) {
          expect(heads.length).toBeLessThanOrEqual(limit);
          seen.push(...heads);
          heads = await db.actions.lanes(heads.at(-1) ?? null, limit);
        }
        expect(seen).toEqual([...(await db.actions.lanes(null, 100))]);
        expect(seen.map(nameOf).toSorted()).toEqual(
          hosts.flatMap((host) => [`${ACCOUNT} ${host}`, `${OTHER_ACCOUNT} ${host}`]).toSorted(),
        );
      },
    );

    test("go on after one that is empty by now", async (db) => {
      const first = await createdAction(db.actions, { url: "https://a.example/" });
      await createdAction(db.actions, { url: "https://b.example/" });
      const [head] = await db.actions.lanes(null, 1);
      await claimed(db.actions, first);
      const rest = await db.actions.lanes(head ?? null, 10);
      expect(rest.map(({ host }) => host)).toEqual(["b.example"]);
    });
  });

  describe("a claim", () => {
    test("takes the earliest due rows of a lane, as many as are asked for, and tells when the next one is due", async (db) => {
      const created: Action[] = [];
      for (const ms of [5_000, -3_000, 86_400_000, 0, 0]) {
        created.push(await createdAction(db.actions, { createdAt: later(ms) }));
      }
      const claim = async (limit: number, ms: number) => {
        const { rows, next } = await db.actions.claimDue(claimOf(LANE, { limit, lease: leaseAt(ms) }));
        return [rows.map(({ row }) => created.findIndex(({ id }) => id === row.id)), next.map(({ dueAt }) => dueAt)];
      };
      expect(await claim(1, 0)).toEqual([[1], [NOON]]);
      // Of two that are due at the same time the older one goes first.
      expect(await claim(1, 0)).toEqual([[3], [NOON]]);
      expect(await claim(9, 0)).toEqual([[4], [later(5_000)]]);
      expect(await claim(9, 4_999)).toEqual([[], [later(5_000)]]);
      expect(await claim(9, 5_000)).toEqual([[0], [later(86_400_000)]]);
      expect(await claim(9, 86_400_000)).toEqual([[2], []]);
    });

    test("is of this account, this key and this host with its port", async (db) => {
      await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      await createdAction(db.actions, { keyId: "key_other" });
      await createdAction(db.actions, { url: "http://api.example.com:8080/" });
      const mine = await createdAction(db.actions);
      expect(await claimDue(db.actions, LANE)).toMatchObject([{ id: mine.id }]);
    });

    test("of many lanes gives one row to each in turn, in their order, within its bytes; the first one always fits", async (db) => {
      const lanes = ["b.example", "a.example", "c.example"].map((host) => ({ ...LANE, host }));
      const body = JSON.stringify("x".repeat(1_000));
      for (const { host } of lanes) {
        for (let n = 0; n < 3; n += 1) await createdAction(db.actions, { url: `http://${host}/`, body });
      }
      const claim = async (bytesMax: number) => {
        const asked = claimOf(LANE, { bytesMax });
        const { rows, next } = await db.actions.claimDue({
          ...asked,
          lanes: lanes.map((lane) => ({ ...lane, limit: 2 })),
        });
        return { hosts: rows.map(({ row }) => row.host).toSorted(), next: next.map(({ host }) => host).toSorted() };
      };
      const all = ["a.example", "b.example", "c.example"];
      expect(await claim(1)).toEqual({ hosts: ["b.example"], next: all });
      expect(await claim(4_100)).toEqual({
        hosts: ["a.example", "b.example", "b.example", "c.example"],
        next: ["a.example", "c.example"],
      });
      expect(await claim(1_048_576)).toEqual({ hosts: ["a.example", "a.example", "c.example", "c.example"], next: [] });
    });

    test("of small rows ends before the first large one, which is named as the next", async (db) => {
      const large = JSON.stringify("é".repeat(SMALL_ROW_BYTES_MAX));
      const [first, second, third] = [
        await createdAction(db.actions),
        await createdAction(db.actions, { body: large, headers: { "X-A": "1" } }),
        await createdAction(db.actions),
      ];
      const small = await db.actions.claimDue(claimOf(LANE, { takesLarge: false }));
      expect(small.rows).toMatchObject([{ row: { id: first.id }, largeBytes: 0 }]);
      expect(small.next).toEqual([{ ...LANE, dueAt: NOON, isLarge: true }]);
      const { rows, next } = await db.actions.claimDue(claimOf(LANE, { bytesMax: 1 }));
      expect(rows.map(({ row }) => row)).toEqual([await stored(db.actions, second)]);
      expect(rows[0]?.largeBytes).toBeGreaterThan(2 * SMALL_ROW_BYTES_MAX);
      expect(rows[0]?.row).toMatchObject({ body: large, headers: { "X-A": "1" } });
      expect(next).toEqual([{ ...LANE, dueAt: NOON, isLarge: false }]);
      expect(await claimDue(db.actions, LANE, { takesLarge: false })).toMatchObject([{ id: third.id }]);
    });

    test("finds a lane whose name is no well-formed text, or has quotes in it", async (db) => {
      for (const host of ["\ud800", `"],["`, "", "a b", "\u0000"]) {
        expect(await db.actions.claimDue(claimOf({ ...LANE, host }))).toEqual({ rows: [], next: [] });
      }
    });

    test("takes a row again that failed, with the attempt counted", async (db) => {
      const failed = await attempted(db.actions, await createdAction(db.actions), answered(500), { chance: 0.5 });
      expect(await claimDue(db.actions, LANE)).toEqual([]);
      expect(await claimDue(db.actions, LANE, { lease: leaseAt(2_000) })).toMatchObject([
        { id: failed.id, attempts: 2 },
      ]);
      expect(await db.actions.lanes(null, 10)).toEqual([]);
    });
  });

  test.each(MEMORIES)("a claim makes the action active, leases it and counts the attempt, %s", async (db, memory) => {
    const action = await createdAction(db.actions, { headers: { "X-A": "1" }, onUnknown: "stop", dedupe: "k" });
    if (memory === "after a restart") await db.restart();
    const at = { now: later(40), leaseUntil: later(45_040) };
    const [active] = await claimDue(db.actions, action, { lease: at });
    const expected: Action = {
      ...action,
      status: "active",
      revision: 2,
      attempts: 1,
      dueAt: null,
      leaseUntil: at.leaseUntil,
      startedAt: at.now,
    };
    expect(active).toEqual(expected);
    expect(await stored(db.actions, action)).toEqual(expected);
    const [, started] = await db.actions.timeline(action.accountId, action.id);
    expect(started).toMatchObject({ run: 1, status: "active", event: { type: "started" } });
    expect(started?.at).toEqual(at.now);
  });

  test("a create that brings a claim is created and claimed in one commit", async (db) => {
    const creation = aCreation({ idempotencyKey: "k" });
    const claim = { now: later(1), leaseUntil: later(45_001) };
    const created = await db.actions.create({ ...creation, claim });
    const active = { ...creation.action, status: "active", revision: 2, attempts: 1, dueAt: null } as const;
    const expected = { ...active, leaseUntil: claim.leaseUntil, startedAt: claim.now };
    expect(created).toEqual({ kind: "created", claimed: expected });
    expect(await stored(db.actions, creation.action)).toEqual(expected);
    expect(await happeningsOf(db.actions, creation.action)).toEqual(["created", "started"]);
  });

  test("a claim is known by its node and its lease: two nodes may claim with the same lease", async (db) => {
    const at = { now: later(1), leaseUntil: later(45_001) };
    const [one, other] = [await createdAction(db.actions), await createdAction(db.actions)];
    await claimDue(db.actions, one, { lease: { ...at, by: "nod_one" }, limit: 1 });
    await claimDue(db.actions, other, { lease: { ...at, by: "nod_other" }, limit: 1 });
    const third = await db.actions.create({ ...aCreation(), claim: { ...at, by: "nod_one" } });
    const ids = async (by?: string) => {
      const rows = await db.actions.claimed([one.accountId], by === undefined ? at : { ...at, by });
      return rows.map(({ id }) => id).toSorted();
    };
    const claimedAtCreate = third.kind === "created" ? (third.claimed?.id ?? "") : "";
    expect(await ids("nod_one")).toEqual([one.id, claimedAtCreate].toSorted());
    expect(await ids("nod_other")).toEqual([other.id]);
    expect(await ids()).toEqual([]);
  });

  test("a create that matches claims nothing, whatever claim it brings", async (db) => {
    const first = await createdAction(db.actions, { idempotencyKey: "k" });
    const claim = { now: later(1), leaseUntil: later(45_001) };
    const again = await db.actions.create({ ...aCreation({ idempotencyKey: "k" }), claim });
    expect(again).toEqual({ kind: "matched", by: "idempotency", action: first });
    expect(await stored(db.actions, first)).toEqual(first);
    expect(await db.actions.orphans(null, 10, null)).toEqual([]);
  });

  test.each(MEMORIES)(
    "started_at is the first attempt's, and the last result stays until the next, %s",
    async (db, memory) => {
      const action = await createdAction(db.actions);
      const failed = await attempted(db.actions, action, answered(503, '"busy"'));
      if (memory === "after a restart") await db.restart();
      const again = await claimed(db.actions, failed, { now: later(9_000), leaseUntil: later(54_000) });
      expect(again).toMatchObject({ attempts: 2, result: null });
      expect(again.startedAt).toEqual(NOON);
      expect((await stored(db.actions, action)).result).toEqual(failed.result);
      await db.actions.apply(settled(again, answered(200, '"done"'), { durationMs: 7 }));
      expect((await stored(db.actions, action)).result).toEqual(aResult({ responseBody: '"done"', durationMs: 7 }));
    },
  );

  test("an end without an answer or a duration is a result too", async (db) => {
    const action = await createdAction(db.actions);
    await attempted(db.actions, action, { kind: "unknown", fault: "interrupted" }, { durationMs: null });
    expect((await stored(db.actions, action)).result).toMatchObject({
      errorSource: "dispatch",
      responseCode: null,
      durationMs: null,
    });
  });

  test.each(MEMORIES)("a claim gives the change that won, never one that lost, %s", async (db, memory) => {
    const held = await createdAction(db.actions, { approve: true });
    const decisions = ["key:first", "key:second", "key:third"] as const;
    const won = await Promise.all(
      decisions.map((actor) => db.actions.apply(writeOf(approve(held, { ...aDecision(), actor })))),
    );
    expect(won).toEqual([true, false, false]);
    if (memory === "after a restart") await db.restart();
    const active = await claimed(db.actions, { ...held, revision: 2 });
    expect(active.approvedBy).toBe("key:first");
    expect(active).toEqual(await stored(db.actions, held));
  });

  test("a lane that is named twice in one claim gives each row once", async (db) => {
    const action = await createdAction(db.actions);
    const claim = claimOf(action);
    const { rows } = await db.actions.claimDue({ ...claim, lanes: [...claim.lanes, ...claim.lanes] });
    expect(rows).toHaveLength(1);
    expect((await stored(db.actions, action)).attempts).toBe(1);
  });

  test("a claim of no lanes, of an unknown one, and of what waits for a person gives nothing", async (db) => {
    const held = await createdAction(db.actions, { approve: true });
    const nothing = { rows: [], next: [] };
    expect(await db.actions.claimDue({ ...claimOf(held), lanes: [] })).toEqual(nothing);
    expect(await db.actions.claimDue(claimOf({ ...held, host: "nowhere.example" }))).toEqual(nothing);
    expect(await db.actions.claimDue(claimOf(held))).toEqual(nothing);
    expect(await happeningsOf(db.actions, held)).toEqual(["created", "held"]);
  });

  test.each(["claim", "cancel"])(
    "of a claim and a cancel in one commit the cancel wins, where the first is the %s",
    async (db, first) => {
      const action = await createdAction(db.actions);
      const claim = () => claimDue(db.actions, action).then((won) => won.length === 1);
      const stop = () => decided(db.actions, cancel, action);
      const won = await Promise.all(first === "claim" ? [claim(), stop()] : [stop(), claim()]);
      expect(won).toEqual(first === "claim" ? [false, true] : [true, false]);
      expect((await stored(db.actions, action)).status).toBe("cancelled");
      expect(await happeningsOf(db.actions, action)).toEqual(["created", "cancelled"]);
    },
  );

  test("a claim finds nothing that is created in its commit, so that memory has heard of all that it leaves", async (db) => {
    const earlier = await createdAction(db.actions);
    const fresh = anAction({ id: `${earlier.id}later` });
    const [, claim] = await Promise.all([
      db.actions.create(creationOf(fresh)),
      db.actions.claimDue(claimOf(earlier, { limit: 1 })),
    ]);
    expect([claim.rows.map(({ row }) => row.id), claim.next]).toEqual([[earlier.id], []]);
    expect((await stored(db.actions, fresh)).status).toBe("pending");
  });

  test("an attempt that was given up settles nothing: no state, no row, no callback", async (db) => {
    const action = await createdAction(db.actions, { callback: "https://hooks.example.com/a" });
    const frozen = await claimed(db.actions, action);
    await db.actions.apply(settled(frozen, { kind: "unknown", fault: "interrupted" }, { now: later(60_000) }));
    const rescued = await stored(db.actions, action);
    expect(rescued.status).toBe("pending");

    expect(await db.actions.apply(settled(frozen, answered(200)))).toBe(false);

    expect(await stored(db.actions, action)).toEqual(rescued);
    expect(await happeningsOf(db.actions, action)).toEqual(["created", "started", "attempt"]);
    expect(await db.outbox(action.id)).toEqual([]);
  });

  test("an attempt settles once, however often it is told", async (db) => {
    const active = await claimed(db.actions, await createdAction(db.actions));
    const ends = Array.from({ length: 5 }, () => db.actions.apply(settled(active, answered(200))));
    expect((await Promise.all(ends)).filter(Boolean)).toHaveLength(1);
    expect(await happeningsOf(db.actions, active)).toEqual(["created", "started", "attempt", "completed"]);
  });

  test("a claim that is given back counts no attempt, and its claimant settles nothing any more", async (db) => {
    const action = await createdAction(db.actions, { retries: 1 });
    const active = await claimed(db.actions, action);
    expect(await db.actions.apply(writeOf(releaseClaim(active, "late", later(9)), later(9)))).toBe(true);
    expect(await stored(db.actions, action)).toEqual({ ...action, revision: 3, dueAt: later(9) });
    expect(await db.actions.apply(settled(active, answered(200)))).toBe(false);
    expect(await happeningsOf(db.actions, action)).toEqual(["created", "started", "not_started"]);
    // The only attempt that it has is still to come.
    const again = await claimed(db.actions, await stored(db.actions, action));
    expect(again).toMatchObject({ attempts: 1, startedAt: later(9) });
  });

  test("what became of a claim is told by its rows, and by no other claim of them", async (db) => {
    const [one, two] = [await createdAction(db.actions), await createdAction(db.actions)];
    const active = await claimed(db.actions, one);
    expect(await db.actions.claimed([one.accountId], LEASE)).toEqual([active]);
    expect(await db.actions.claimed([one.accountId], { now: NOON, leaseUntil: later(45_001) })).toEqual([]);
    expect(await db.actions.claimed([OTHER_ACCOUNT], LEASE)).toEqual([]);
    expect(await stored(db.actions, two)).toEqual(two);
  });

  test("a change is known to be written once it is, whatever came after it, and no other change is taken for it", async (db) => {
    const active = await claimed(db.actions, await createdAction(db.actions));
    const write = settled(active, answered(500), { now: later(7) });
    expect(await db.actions.isApplied(write)).toBe(false);
    await db.actions.apply(write);
    expect(await db.actions.isApplied(write)).toBe(true);
    expect(await db.actions.isApplied(settled(active, answered(500), { now: later(8) }))).toBe(false);
    await claimed(db.actions, await stored(db.actions, active));
    expect(await db.actions.isApplied(write)).toBe(true);
  });

  describe("orphans", () => {
    test("are the active actions whose lease ended before the time, as many as are asked for", async (db) => {
      const leases = [3_000, 1_000, 2_000, 4_000];
      const actions = await Promise.all(leases.map(() => createdAction(db.actions)));
      for (const [at, action] of actions.entries()) {
        await claimed(db.actions, action, { now: NOON, leaseUntil: later(leases[at] ?? 0) });
      }
      await createdAction(db.actions);
      const ids = async (before: Date | null, limit = 10) =>
        (await db.actions.orphans(before, limit, null))
          .map(({ id }) => actions.findIndex((action) => action.id === id))
          .toSorted((a, b) => a - b);
      expect(await ids(later(3_000))).toEqual([1, 2]);
      expect(await ids(later(3_001))).toEqual([0, 1, 2]);
      expect(await ids(later(3_001), 2)).toHaveLength(2);
      expect(await ids(later(500))).toEqual([]);
      // No lease lasts that long: those that end later are from before the clock was set back.
      expect(await ids(later(2_500 - LEASE_MS_MAX))).toEqual([0, 3]);
      expect(await ids(null)).toEqual([0, 1, 2, 3]);
      expect(await ids(null, 3)).toHaveLength(3);
    });

    test("come in pages that are bounded in bytes, one at least, and each goes on behind the one before", async (db) => {
      const sizes = [0.6, 0.3, 0.31, 1.2, 0.1].map((part) => Math.round(part * RECOVERY_BYTES_MAX));
      for (const size of sizes) {
        await claimed(db.actions, await createdAction(db.actions, { body: JSON.stringify("x".repeat(size)) }));
      }
      const pages: (readonly number[])[] = [];
      for (let after: Action | null = null; ;) {
        const page: readonly Action[] = await db.actions.orphans(null, 10, after);
        after = page.at(-1) ?? null;
        if (after === null) break;
        pages.push(page.map(({ body }) => (body?.length ?? 0) - 2));
      }
      expect(new Set(pages.flat())).toEqual(new Set(sizes));
      expect(pages.map((page) => page.length)).toEqual([2, 1, 1, 1]);
    });

    test("are whole actions, ready to be settled", async (db) => {
      const active = await claimed(db.actions, await createdAction(db.actions, { headers: { "X-A": "1" } }));
      const [orphan] = await db.actions.orphans(null, 1, null);
      expect(orphan).toEqual(active);
      expect(await db.actions.apply(settled(active, { kind: "unknown", fault: "interrupted" }))).toBe(true);
      expect(await db.actions.orphans(null, 1, null)).toEqual([]);
    });
  });
}

const leaseAt = (ms: number) => ({ now: later(ms), leaseUntil: later(ms + 45_000) });

function nameOf({ accountId, host }: LaneName): string {
  return `${accountId} ${host}`;
}

function sorted(heads: readonly LaneHead[]): readonly LaneHead[] {
  return heads.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** Before and after the store has forgotten whatever it has in memory. */
const MEMORIES = ["at once", "after a restart"] as const;
