import { describe, expect, test } from "bun:test";
import { approve, cancel } from "../../../src/domain/change.ts";
import type { Action } from "../../../src/domain/action.ts";
import { verifies } from "../../spec/verifies.ts";
import { aCreation, aDecision, answered, later, NOON, settled, writeOf } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { attempted, claimed, createdAction, decided, happeningsOf, LEASE, nextTurns, stored } from "./steps.ts";

const due = ({ id, revision }: Action) => ({ id, revision, dueAt: NOON });

/** A store may remember what it has just written; a restart makes it read. */
const MEMORIES = ["at once", "after a restart"] as const;

/** One claim an attempt, counted before a byte leaves; its revision is the only key to the end of the attempt. */
export function testLeases(open: OpenTestStore): void {
  test.each(MEMORIES)("a claim makes the action active, leases it and counts the attempt, %s", async (memory) => {
    verifies("decision.3.attempts-at-claim", "spec.state.pending-dispatch");
    await using db = await open();
    const action = await createdAction(db.actions, { headers: { "X-A": "1" }, onUnknown: "stop", dedupe: "k" });
    if (memory === "after a restart") await db.restart();
    const at = { now: later(40), leaseUntil: later(45_040) };
    const [active] = await db.actions.claim([due(action)], at);
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
    expect(started).toMatchObject({ run: 1, status: "active", happening: { type: "started" } });
    expect(started?.at).toEqual(at.now);
  });

  test("a create that brings a claim is created and claimed in one commit", async () => {
    verifies("decision.3.attempts-at-claim");
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

  test("a create that matches claims nothing, whatever claim it brings", async () => {
    verifies("decision.3.race");
    await using db = await open();
    const first = await createdAction(db.actions, { idempotencyKey: "k" });
    const claim = { now: later(1), leaseUntil: later(45_001) };
    const again = await db.actions.create({ ...aCreation({ idempotencyKey: "k" }), claim });
    expect(again).toEqual({ kind: "matched", by: "idempotency", action: first });
    expect(await stored(db.actions, first)).toEqual(first);
    expect(await db.actions.orphans(null, 10)).toEqual([]);
  });

  test.each(MEMORIES)(
    "started_at is the first attempt's, and the last result stays until the next, %s",
    async (memory) => {
      verifies("decision.3.started-at");
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

  test.each([0, 5])("200 concurrent claims of the same ids give each id once (%d turns apart)", async (turns) => {
    verifies("decision.3.attempts-at-claim");
    await using db = await open();
    const actions = await Promise.all(Array.from({ length: 5 }, () => createdAction(db.actions)));
    const claims = await Promise.all(
      Array.from({ length: 200 }, async (_, at) => {
        await nextTurns(turns === 0 ? 0 : at % turns);
        // Each claimant goes through the same ids in an order of its own.
        const order = [...actions.slice(at % 5), ...actions.slice(0, at % 5)];
        return db.actions.claim(order.map(due), LEASE);
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

  test("one claim that names an id twice gets it once", async () => {
    await using db = await open();
    const action = await createdAction(db.actions);
    expect(await db.actions.claim([due(action), due(action)], LEASE)).toHaveLength(1);
    expect((await stored(db.actions, action)).attempts).toBe(1);
  });

  test("a claim of nothing gives nothing", async () => {
    await using db = await open();
    expect(await db.actions.claim([], LEASE)).toEqual([]);
  });

  test("a stale revision, an unknown id and what waits for a person are not claimed", async () => {
    await using db = await open();
    const action = await createdAction(db.actions);
    const held = await createdAction(db.actions, { approve: true });
    const names = [
      { ...due(action), revision: 0 },
      { ...due(action), revision: 2 },
      { ...due(action), id: "act_nowhere" },
      due(held),
    ];
    expect(await db.actions.claim(names, LEASE)).toEqual([]);
    expect(await stored(db.actions, action)).toEqual(action);
    expect(await happeningsOf(db.actions, action)).toEqual(["created"]);
    expect(await happeningsOf(db.actions, held)).toEqual(["created", "held"]);
  });

  test.each(["claim", "cancel"])(
    "a claim and a cancel in one flush: the first wins, and it is the %s",
    async (first) => {
      await using db = await open();
      const action = await createdAction(db.actions);
      const claim = () => db.actions.claim([due(action)], LEASE).then((won) => won.length === 1);
      const stop = () => decided(db.actions, cancel, action);
      const won = await Promise.all(first === "claim" ? [claim(), stop()] : [stop(), claim()]);
      expect(won).toEqual([true, false]);
      expect((await stored(db.actions, action)).status).toBe(first === "claim" ? "active" : "cancelled");
      expect(await happeningsOf(db.actions, action)).toEqual(["created", first === "claim" ? "started" : "cancelled"]);
    },
  );

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
        (await db.actions.orphans(before, limit))
          .map(({ id }) => actions.findIndex((action) => action.id === id))
          .toSorted((a, b) => a - b);
      expect(await ids(later(3_000))).toEqual([1, 2]);
      expect(await ids(later(3_001))).toEqual([0, 1, 2]);
      expect(await ids(later(3_001), 2)).toHaveLength(2);
      expect(await ids(later(500))).toEqual([]);
      expect(await ids(null)).toEqual([0, 1, 2, 3]);
      expect(await ids(null, 3)).toHaveLength(3);
    });

    test("are whole actions, ready to be settled", async () => {
      await using db = await open();
      const active = await claimed(db.actions, await createdAction(db.actions, { headers: { "X-A": "1" } }));
      const [orphan] = await db.actions.orphans(null, 1);
      expect(orphan).toEqual(active);
      expect(await db.actions.apply(settled(active, { kind: "unknown", fault: "interrupted" }))).toBe(true);
      expect(await db.actions.orphans(null, 1)).toEqual([]);
    });
  });
}
