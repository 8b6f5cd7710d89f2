import { DomainError } from "../../../src/core/domain-error.ts";
import { describe, expect } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import { approve, cancel, retry } from "../../../src/core/changes.ts";
import { DAY_MS, PRUNE_ROWS_MAX, PRUNE_SCAN_ROWS_MAX } from "../../../src/core/limits.ts";
import { settleNotification } from "../../../src/core/notification.ts";
import { systemIds } from "../../../src/core/ids.ts";
import type { Store } from "../../../src/core/store.ts";
import { ACCOUNT, aCreation, aDecision, answered, KEY, later, NOON, settled, writeOf } from "../../support/factory.ts";
import type { TestStore } from "../../support/store.ts";
import type { StoreTest } from "./store-test.ts";
import { actionInStatus, attempted, attemptedAction, claimDue, claimed, createdAction, stored } from "./steps.ts";

const LONG_AGO = { createdAt: later(-2 * DAY_MS) };

/** Every step of a pass, to its end; how many actions were deleted, and in how many steps. */
async function pruneAll(
  { upkeep }: Store,
  until: Date,
  now = new Date(until.getTime() + 2 * DAY_MS),
): Promise<{ deleted: number; steps: number }> {
  let [deleted, steps] = [0, 0];
  for (let after: string | null = ""; after !== null;) {
    const step = await upkeep.prune({ finishedUntil: until, now }, after);
    deleted += step.deleted;
    steps += 1;
    after = step.next;
    if (steps > 100) throw new Error("The pass has no end.");
  }
  return { deleted, steps };
}

/** An action that was completed at that time. */
async function completedAt({ actions }: TestStore, at: Date, overrides: Partial<Action> = {}): Promise<Action> {
  return attemptedAction(actions, answered(200), { createdAt: at, ...overrides }, { now: at });
}

async function exists(db: TestStore, { id }: Action): Promise<boolean> {
  return (await db.actions.find(ACCOUNT, id)) !== null;
}

/** What the service does for itself by the clock. */
export function testUpkeep(test: StoreTest): void {
  test("held actions are found by id, with the time at which their run was held", async (db, { upkeep }) => {
    const [first, again, young] = [
      await createdAction(db.actions, { approve: true, createdAt: later(-9) }),
      await createdAction(db.actions, { approve: true, createdAt: later(-8) }),
      await createdAction(db.actions, { approve: true, createdAt: later(DAY_MS) }),
    ];
    for (const status of ["pending", "active", "completed", "failed", "cancelled"] as const) {
      await actionInStatus(db.actions, status, { createdAt: later(-7) });
    }
    await db.actions.apply(writeOf(cancel(again, aDecision(later(-5))), later(-5)));
    await db.actions.apply(writeOf(retry(await stored(db.actions, again), aDecision(later(-3))), later(-3)));
    const held = [
      { id: first.id, accountId: ACCOUNT, run: 1, heldAt: later(-9) },
      { id: again.id, accountId: ACCOUNT, run: 2, heldAt: later(-3) },
    ];
    expect(await upkeep.held(NOON, "", 10)).toEqual(held);
    expect(await upkeep.held(NOON, "", 1)).toEqual(held.slice(0, 1));
    expect(await upkeep.held(NOON, first.id, 10)).toEqual(held.slice(1));
    expect(await upkeep.held(later(DAY_MS), again.id, 10)).toMatchObject([{ id: young.id }]);
    expect(await upkeep.held(later(-DAY_MS), "", 10)).toEqual([]);
  });

  describe("what finished long ago", () => {
    test.each(["completed", "failed", "cancelled"])("is deleted with all that hangs on it: %s", async (db, status) => {
      const keys = { dedupe: "d", idempotencyKey: "i", headers: { "X-A": "1" } };
      const action = await actionInStatus(db.actions, status, { ...LONG_AGO, ...keys });
      await db.store.links.keep([{ actionId: action.id, run: 1, decision: "approve", hash: "h" }], later(9));
      const younger = await createdAction(db.actions);
      expect(await pruneAll(db.store, NOON)).toMatchObject({ deleted: 1 });
      expect(await exists(db, action)).toBe(false);
      expect(await db.actions.timeline(ACCOUNT, action.id)).toEqual([]);
      expect(await db.keyCount()).toBe(0);
      expect(await db.count("approval_links")).toBe(0);
      expect(await db.count("timeline")).toBe(1);
      expect(await stored(db.actions, younger)).toEqual(younger);
    });

    test("goes with what came back of its attempts", async (db) => {
      const action = await createdAction(db.actions, LONG_AGO);
      await attempted(db.actions, action, answered(503, "{}"));
      await attempted(db.actions, await stored(db.actions, action), answered(200, "{}"));
      const younger = await createdAction(db.actions);
      await attempted(db.actions, younger, answered(503, "{}"));
      expect(await db.count("attempts")).toBe(2);
      expect(await pruneAll(db.store, later(DAY_MS))).toMatchObject({ deleted: 1 });
      expect(await db.count("attempts")).toBe(1);
    });

    test("is what finished by then, and what has not is kept, however old it is", async (db) => {
      const kept: Action[] = [];
      for (const status of ["pending", "active", "awaiting_approval"] as const) {
        kept.push(await actionInStatus(db.actions, status, LONG_AGO));
      }
      // Its first run is over, and it waits again.
      const failed = await actionInStatus(db.actions, "failed", LONG_AGO);
      await db.actions.apply(writeOf(retry(failed, aDecision())));
      kept.push(await stored(db.actions, failed));
      // Created long ago, finished just now.
      kept.push(await attemptedAction(db.actions, answered(200), LONG_AGO, { now: later(1) }));
      const gone = [await completedAt(db, NOON), await completedAt(db, later(-1))];
      expect(await pruneAll(db.store, NOON)).toMatchObject({ deleted: 2 });
      for (const action of kept) expect(await stored(db.actions, action)).toEqual(action);
      for (const action of gone) expect(await exists(db, action)).toBe(false);
      expect(await pruneAll(db.store, NOON)).toEqual({ deleted: 0, steps: 1 });
    });

    test("is kept while an Idempotency-Key may mean it: as long again as its dedupe key matched", async (db) => {
      const action = await completedAt(db, NOON, { dedupe: "d" });
      const keyed = { dedupe: "d", idempotencyKey: "i", createdAt: later(DAY_MS - 1) };
      expect(await db.actions.create(aCreation(keyed))).toMatchObject({ kind: "matched", by: "dedupe" });
      // Of the same age, and no key can have found it since.
      const plain = await completedAt(db, NOON, { idempotencyKey: "p" });
      expect(await pruneAll(db.store, NOON, later(2 * DAY_MS - 1))).toMatchObject({ deleted: 1 });
      expect([await exists(db, action), await exists(db, plain)]).toEqual([true, false]);
      expect(await pruneAll(db.store, NOON, later(2 * DAY_MS))).toMatchObject({ deleted: 1 });
      expect(await exists(db, action)).toBe(false);
    });

    test("is kept while it owes a notification, and goes when that was delivered or given up", async (db) => {
      const callback = "https://hooks.example.com/a";
      const [one, two] = [
        await actionInStatus(db.actions, "completed", { ...LONG_AGO, callback }),
        await actionInStatus(db.actions, "failed", { ...LONG_AGO, callback }),
      ];
      expect(await pruneAll(db.store, NOON)).toMatchObject({ deleted: 0 });
      const lane = { accountId: ACCOUNT, host: "hooks.example.com", keyId: KEY };
      const notifications = await claimDue(db.notifications.callbacks, lane);
      expect(await pruneAll(db.store, NOON)).toMatchObject({ deleted: 0 });
      for (const notification of notifications) {
        const isFirst = notification.actionId === one.id;
        const delivery = isFirst
          ? ({ kind: "delivered" } as const)
          : ({ kind: "refused", error: "The target's address is not allowed." } as const);
        await db.notifications.settle(settleNotification(notification, { delivery, now: NOON, chance: 0.5 }), NOON);
      }
      expect(await pruneAll(db.store, NOON)).toMatchObject({ deleted: 2 });
      for (const action of [one, two]) expect(await exists(db, action)).toBe(false);
      expect(await db.count("outbox")).toBe(0);
    });

    test("leaves the newest position of the event stream, so that no number comes twice", async (db) => {
      const held = await createdAction(db.actions, LONG_AGO);
      const atHeld = await db.actions.position();
      const actions = [await completedAt(db, later(-2)), await completedAt(db, later(-1))];
      const before = await db.actions.position();
      expect(await pruneAll(db.store, NOON)).toMatchObject({ deleted: 2 });
      expect(await db.count("timeline")).toBe(2);
      expect(await db.actions.position()).toBe(before);
      // From an earlier one, whose own row may still be there, deleted events would be left out.
      const positions = [before, atHeld, 0].map((position) => db.actions.knowsPosition(position));
      expect(await Promise.all(positions)).toEqual([true, false, false]);
      for (const { id } of actions) expect(await db.actions.timeline(ACCOUNT, id)).toEqual([]);
      expect((await db.actions.changes(ACCOUNT, 0)).changes.map(({ action }) => action.id)).toEqual([held.id]);
      // What comes later is behind it, and the emptied row goes with the next thing that is deleted.
      const next = await completedAt(db, NOON);
      const seqs = (await db.actions.timeline(ACCOUNT, next.id)).map(({ seq }) => seq);
      expect(Math.min(...seqs)).toBeGreaterThan(before);
      await pruneAll(db.store, later(1));
      await pruneAll(db.store, later(1));
      expect(await db.count("timeline")).toBe(2);
      expect(await db.actions.position()).toBe(Math.max(...seqs));
    });

    test("leaves no position known that is before any deleted event, whatever was deleted last", async (db) => {
      await completedAt(db, later(1));
      await createdAction(db.actions, LONG_AGO);
      const atHeld = await db.actions.position();
      await completedAt(db, NOON);
      expect(await db.actions.knowsPosition(atHeld)).toBe(true);
      for (const until of [NOON, later(1)]) {
        expect(await pruneAll(db.store, until)).toMatchObject({ deleted: 1 });
        expect(await db.actions.knowsPosition(atHeld)).toBe(false);
      }
    });

    test("is found though its id ran ahead of its time, as one of thousands in a millisecond does", async (db) => {
      const id = systemIds.action(later(1_500));
      await completedAt(db, NOON, { id });
      expect(await pruneAll(db.store, NOON)).toMatchObject({ deleted: 1 });
    });

    test("goes in steps that are bounded by actions, by rows and by bytes", async (db) => {
      const small = Array.from({ length: PRUNE_SCAN_ROWS_MAX + 50 }, () => createdAction(db.actions, LONG_AGO));
      const actions = await Promise.all(small);
      await Promise.all(actions.map((action) => db.actions.apply(writeOf(cancel(action, aDecision(NOON))))));
      const large = { ...LONG_AGO, body: JSON.stringify({ a: "x".repeat(1_000_000) }) };
      for (let n = 0; n < 9; n += 1) await actionInStatus(db.actions, "cancelled", large);
      const first = await db.store.upkeep.prune({ finishedUntil: NOON, now: later(DAY_MS) }, "");
      expect(first.deleted).toBe(PRUNE_SCAN_ROWS_MAX);
      const rest = await pruneAll(db.store, NOON);
      expect(rest.deleted).toBe(50 + 9);
      expect(rest.steps).toBeGreaterThan(2);
      expect(await db.count("actions")).toBe(0);
    });

    test("with a timeline of many runs goes in pieces, and its action last", async (db) => {
      await actionInStatus(db.actions, "awaiting_approval", LONG_AGO);
      const atHeld = await db.actions.position();
      let action = await createdAction(db.actions, { ...LONG_AGO, retries: 1 });
      for (let run = 0; run < PRUNE_ROWS_MAX / 4 + 2; run += 1) {
        action = await attempted(db.actions, action, answered(500));
        await db.actions.apply(writeOf(retry(action, aDecision())));
        action = await stored(db.actions, action);
      }
      await attempted(db.actions, action, answered(500));
      const rows = await db.count("timeline");
      expect(rows).toBeGreaterThan(PRUNE_ROWS_MAX);
      expect(await db.store.upkeep.prune({ finishedUntil: NOON, now: later(DAY_MS) }, "")).toEqual({
        deleted: 0,
        next: "",
      });
      expect(await db.count("timeline")).toBe(rows - PRUNE_ROWS_MAX);
      expect(await db.actions.knowsPosition(atHeld)).toBe(false);
      expect(await pruneAll(db.store, NOON)).toEqual({ deleted: 1, steps: 1 });
    });

    test("and is retried at the same time is there whole or gone whole", async (db) => {
      const failed = await Promise.all(
        Array.from({ length: 40 }, () => actionInStatus(db.actions, "failed", { ...LONG_AGO, dedupe: null })),
      );
      const retried = Promise.all(
        failed.map((action) => {
          const change = retry(action, aDecision());
          if (change instanceof DomainError) throw new Error("It can be retried.");
          return db.actions.apply(writeOf(change));
        }),
      );
      const [won, { deleted }] = await Promise.all([retried, pruneAll(db.store, NOON)]);
      expect(won.filter(Boolean).length + deleted).toBe(40);
      for (const [n, action] of failed.entries()) {
        expect(await exists(db, action)).toBe(won[n] === true);
        const told = await db.actions.timeline(ACCOUNT, action.id);
        expect(told.length).toBe(won[n] === true ? 5 : 0);
      }
    });

    test("with a key that a later action took leaves the key to that one", async (db) => {
      const old = await actionInStatus(db.actions, "failed", { ...LONG_AGO, dedupe: "same" });
      const young = await createdAction(db.actions, { dedupe: "same" });
      await pruneAll(db.store, NOON);
      expect(await exists(db, old)).toBe(false);
      expect((await db.actions.keyHolder(ACCOUNT, "dedupe", "same", NOON))?.id).toBe(young.id);
    });

    test("does not touch what is claimed, approved or settled meanwhile", async (db) => {
      const held = await actionInStatus(db.actions, "awaiting_approval", LONG_AGO);
      const pending = await actionInStatus(db.actions, "pending", LONG_AGO);
      const [, , active] = await Promise.all([
        pruneAll(db.store, NOON),
        db.actions.apply(writeOf(approve(held, { ...aDecision(), digest: "d" }))),
        claimed(db.actions, pending),
      ]);
      expect(await db.actions.apply(settled(active, answered(200)))).toBe(true);
      expect((await stored(db.actions, held)).status).toBe("pending");
    });
  });
}
