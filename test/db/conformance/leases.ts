import { describe, expect, test } from "bun:test";
import { releaseClaim } from "../../../src/core/settle.ts";
import { approve, cancel } from "../../../src/core/changes.ts";
import type { Action } from "../../../src/core/action.ts";
import { RECOVERY_BYTES_MAX } from "../../../src/core/limits.ts";
import {
  aCreation,
  aDecision,
  anAction,
  answered,
  creationOf,
  later,
  NOON,
  OTHER_ACCOUNT,
  settled,
  writeOf,
} from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import {
  attempted,
  claimDue,
  claimed,
  claimOf,
  createdAction,
  decided,
  happeningsOf,
  LEASE,
  nextTurns,
  stored,
} from "./steps.ts";

/** Before and after the store has forgotten whatever it has in memory. */
const MEMORIES = ["at once", "after a restart"] as const;

/** One claim an attempt, counted before a byte leaves; its revision is the only key to the end of the attempt. */
export function testLeases(open: OpenTestStore): void {
  test.each(MEMORIES)("a claim makes the action active, leases it and counts the attempt, %s", async (memory) => {
    await using db = await open();
    const action = await createdAction(db.actions, { headers: { "X-A": "1" }, onUnknown: "stop", dedupe: "k" });
    if (memory === "after a restart") await db.restart();
    const at = { now: later(40), leaseUntil: later(45_040) };
    const [active] = await claimDue(db.actions, action, { at });
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

  test("a create that brings a claim is created and claimed in one commit", async () => {
    await using db = await open();
    const creation = aCreation({ idempotencyKey: "k" });
    const claim = { now: later(1), leaseUntil: later(45_001) };
    const created = await db.actions.create({ ...creation, claim });
    const active = { ...creation.action, status: "active", revision: 2, attempts: 1, dueAt: null } as const;
    const expected = { ...active, leaseUntil: claim.leaseUntil, startedAt: claim.now };
    expect(created).toEqual({ kind: "created", claimed: expected });
    expect(await stored(db.actions, creation.action)).toEqual(expected);
    expect(await happeningsOf(db.actions, creation.action)).toEqual(["created", "started"]);
  });

  test("a claim is known by its node and its lease: two nodes may claim with the same lease", async () => {
    await using db = await open();
    const at = { now: later(1), leaseUntil: later(45_001) };
    const [one, other] = [await createdAction(db.actions), await createdAction(db.actions)];
    await claimDue(db.actions, one, { at: { ...at, by: "nod_one" }, limit: 1 });
    await claimDue(db.actions, other, { at: { ...at, by: "nod_other" }, limit: 1 });
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

  test("a create that matches claims nothing, whatever claim it brings", async () => {
    await using db = await open();
    const first = await createdAction(db.actions, { idempotencyKey: "k" });
    const claim = { now: later(1), leaseUntil: later(45_001) };
    const again = await db.actions.create({ ...aCreation({ idempotencyKey: "k" }), claim });
    expect(again).toEqual({ kind: "matched", by: "idempotency", action: first });
    expect(await stored(db.actions, first)).toEqual(first);
    expect(await db.actions.orphans(null, 10, null)).toEqual([]);
  });

  test.each(MEMORIES)(
    "started_at is the first attempt's, and the last result stays until the next, %s",
    async (memory) => {
      await using db = await open();
      const action = await createdAction(db.actions);
      const failed = await attempted(db.actions, action, answered(503, '"busy"'));
      if (memory === "after a restart") await db.restart();
      const again = await claimed(db.actions, failed, { now: later(9_000), leaseUntil: later(54_000) });
      expect(again).toMatchObject({ attempts: 2, result: null });
      expect(again.startedAt).toEqual(NOON);
      expect((await stored(db.actions, action)).result).toEqual(failed.result);
      await db.actions.apply(settled(again, answered(200, '"done"'), { durationMs: 7 }));
      expect((await stored(db.actions, action)).result).toEqual({
        lastError: null,
        errorSource: null,
        responseCode: 200,
        responseBody: '"done"',
        responseTruncated: false,
        responseHeaders: null,
        durationMs: 7,
      });
    },
  );

  test("an end without an answer or a duration is a result too", async () => {
    await using db = await open();
    const action = await createdAction(db.actions);
    await attempted(db.actions, action, { kind: "unknown", fault: "interrupted" }, { durationMs: null });
    expect((await stored(db.actions, action)).result).toMatchObject({
      errorSource: "dispatch",
      responseCode: null,
      durationMs: null,
    });
  });

  test.each([0, 5])("200 concurrent claims of the same lane give each row once (%d turns apart)", async (turns) => {
    await using db = await open();
    const actions = await Promise.all(Array.from({ length: 5 }, () => createdAction(db.actions)));
    const claims = await Promise.all(
      Array.from({ length: 200 }, async (_, at) => {
        await nextTurns(turns === 0 ? 0 : at % turns);
        // Each claimant asks for another number of them.
        return claimDue(db.actions, actions[0] ?? anAction(), { limit: 1 + (at % 3) });
      }),
    );
    const won = claims.flat().map(({ id }) => id);
    expect(won.toSorted()).toEqual(actions.map(({ id }) => id).toSorted());
    for (const action of actions) {
      expect(await stored(db.actions, action)).toMatchObject({ status: "active", attempts: 1, revision: 2 });
      expect(await happeningsOf(db.actions, action)).toEqual(["created", "started"]);
    }
  });

  test.each(MEMORIES)("a claim gives the change that won, never one that lost, %s", async (memory) => {
    await using db = await open();
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

  test("a lane that is named twice in one claim gives each row once", async () => {
    await using db = await open();
    const action = await createdAction(db.actions);
    const claim = claimOf(action);
    const { rows } = await db.actions.claimDue({ ...claim, lanes: [...claim.lanes, ...claim.lanes] });
    expect(rows).toHaveLength(1);
    expect((await stored(db.actions, action)).attempts).toBe(1);
  });

  test("a claim of no lanes, of an unknown one, and of what waits for a person gives nothing", async () => {
    await using db = await open();
    const held = await createdAction(db.actions, { approve: true });
    const nothing = { rows: [], next: [] };
    expect(await db.actions.claimDue({ ...claimOf(held), lanes: [] })).toEqual(nothing);
    expect(await db.actions.claimDue(claimOf({ ...held, host: "nowhere.example" }))).toEqual(nothing);
    expect(await db.actions.claimDue(claimOf(held))).toEqual(nothing);
    expect(await happeningsOf(db.actions, held)).toEqual(["created", "held"]);
  });

  test.each(["claim", "cancel"])(
    "of a claim and a cancel in one commit the cancel wins, where the first is the %s",
    async (first) => {
      await using db = await open();
      const action = await createdAction(db.actions);
      const claim = () => claimDue(db.actions, action).then((won) => won.length === 1);
      const stop = () => decided(db.actions, cancel, action);
      const won = await Promise.all(first === "claim" ? [claim(), stop()] : [stop(), claim()]);
      expect(won).toEqual(first === "claim" ? [false, true] : [true, false]);
      expect((await stored(db.actions, action)).status).toBe("cancelled");
      expect(await happeningsOf(db.actions, action)).toEqual(["created", "cancelled"]);
    },
  );

  test("a claim finds nothing that is created in its commit, so that memory has heard of all that it leaves", async () => {
    await using db = await open();
    const earlier = await createdAction(db.actions);
    const fresh = anAction({ id: `${earlier.id}later` });
    const [, claim] = await Promise.all([
      db.actions.create(creationOf(fresh)),
      db.actions.claimDue(claimOf(earlier, { limit: 1 })),
    ]);
    expect([claim.rows.map(({ row }) => row.id), claim.next]).toEqual([[earlier.id], []]);
    expect((await stored(db.actions, fresh)).status).toBe("pending");
  });

  test("an attempt that was given up settles nothing: no state, no row, no callback", async () => {
    await using db = await open();
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

  test("an attempt settles once, however often it is told", async () => {
    await using db = await open();
    const active = await claimed(db.actions, await createdAction(db.actions));
    const ends = Array.from({ length: 5 }, () => db.actions.apply(settled(active, answered(200))));
    expect((await Promise.all(ends)).filter(Boolean)).toHaveLength(1);
    expect(await happeningsOf(db.actions, active)).toEqual(["created", "started", "attempt", "completed"]);
  });

  test("a claim that is given back counts no attempt, and its claimant settles nothing any more", async () => {
    await using db = await open();
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

  test("what became of a claim is told by its rows, and by no other claim of them", async () => {
    await using db = await open();
    const [one, two] = [await createdAction(db.actions), await createdAction(db.actions)];
    const active = await claimed(db.actions, one);
    expect(await db.actions.claimed([one.accountId], LEASE)).toEqual([active]);
    expect(await db.actions.claimed([one.accountId], { now: NOON, leaseUntil: later(45_001) })).toEqual([]);
    expect(await db.actions.claimed([OTHER_ACCOUNT], LEASE)).toEqual([]);
    expect(await stored(db.actions, two)).toEqual(two);
  });

  test("a change is known to be written once it is, whatever came after it, and no other change is taken for it", async () => {
    await using db = await open();
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
    test("are the active actions whose lease ended before the time, as many as are asked for", async () => {
      await using db = await open();
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
      expect(await ids(null)).toEqual([0, 1, 2, 3]);
      expect(await ids(null, 3)).toHaveLength(3);
    });

    test("come in pages that are bounded in bytes, one at least, and each goes on behind the one before", async () => {
      await using db = await open();
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

    test("are whole actions, ready to be settled", async () => {
      await using db = await open();
      const active = await claimed(db.actions, await createdAction(db.actions, { headers: { "X-A": "1" } }));
      const [orphan] = await db.actions.orphans(null, 1, null);
      expect(orphan).toEqual(active);
      expect(await db.actions.apply(settled(active, { kind: "unknown", fault: "interrupted" }))).toBe(true);
      expect(await db.actions.orphans(null, 1, null)).toEqual([]);
    });
  });
}
