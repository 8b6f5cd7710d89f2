import { DomainError } from "../../../src/core/domain-error.ts";
import { describe, expect } from "bun:test";
import { approve, cancel, retry } from "../../../src/core/changes.ts";
import { ACCOUNT, aCreation, aDecision, anAction, answered, later, settled, writeOf } from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import {
  actionInStatus,
  attempted,
  claimDue,
  claimed,
  createdAction,
  decided,
  failedAction,
  happeningsOf,
  LEASE,
  nextTurns,
  stored,
} from "./steps.ts";

const HELD = { approve: true, callback: "https://hooks.example.com/a", notifyEmail: "boss@example.com" };

/** Every write names the revision that it was decided on: one wins, and what lost leaves nothing behind. */
export function testGuards(test: StoreTest): void {
  describe("an approval and a rejection of one action", () => {
    test.each([
      ["in one flush, yes first", [approve, cancel], 0],
      ["in one flush, no first", [cancel, approve], 0],
      ["in two flushes, yes first", [approve, cancel], 3],
      ["in two flushes, no first", [cancel, approve], 3],
    ] as const)("%s: one decision row, one callback at most", async (db, [, [first, second], turns]) => {
      const action = await createdAction(db.actions, HELD);
      const one = decided(db.actions, first, action);
      await nextTurns(turns);
      const other = decided(db.actions, second, action);
      expect([await one, await other]).toEqual([true, false]);
      const isApproved = first === approve;
      expect(await stored(db.actions, action)).toMatchObject({
        status: isApproved ? "pending" : "cancelled",
        revision: 2,
      });
      expect(await happeningsOf(db.actions, action)).toEqual(["created", "held", isApproved ? "approved" : "rejected"]);
      const events = (await db.outbox(action.id)).map(({ event }) => event);
      const ends = isApproved ? ["decided"] : ["action.cancelled", "decided"];
      expect(events).toEqual(["action.awaiting_approval", "approval", ...ends]);
    });
  });

  describe("a change that lost its race", () => {
    test("leaves no row, no notification and no key", async (db) => {
      const before = await failedAction(db.actions, { dedupe: "k", callback: "https://hooks.example.com/a" });
      const [keys, rows, notifications] = [
        await db.keyCount(),
        await happeningsOf(db.actions, before),
        await db.outbox(before.id),
      ];
      const stale = { ...before, revision: before.revision - 1 };
      expect(await db.actions.apply(writeOf(retry(stale, aDecision())))).toBe(false);
      expect(await stored(db.actions, before)).toEqual(before);
      expect(await db.keyCount()).toBe(keys);
      expect(await happeningsOf(db.actions, before)).toEqual(rows);
      expect(await db.outbox(before.id)).toEqual(notifications);
    });

    test("does not take the changes of other actions in its flush along", async (db) => {
      const [one, other] = [await createdAction(db.actions), await createdAction(db.actions)];
      const won = await Promise.all([
        decided(db.actions, cancel, { ...one, revision: 9 }),
        decided(db.actions, cancel, other),
      ]);
      expect(won).toEqual([false, true]);
      expect((await stored(db.actions, one)).status).toBe("pending");
    });

    test("of an action that is not there writes nothing", async (db) => {
      const nowhere = anAction({ callback: "https://hooks.example.com/a" });
      expect(await decided(db.actions, cancel, nowhere)).toBe(false);
      expect(await db.actions.timeline(ACCOUNT, nowhere.id)).toEqual([]);
      expect(await db.outbox(nowhere.id)).toEqual([]);
    });
  });

  test("a final action stays: the law allows only a retry, and no older decision gets through", async (db) => {
    for (const status of ["completed", "failed", "cancelled"] as const) {
      const final = await actionInStatus(db.actions, status);
      expect([approve, cancel].map((decide) => decide(final, aDecision()) instanceof DomainError)).toEqual([
        true,
        true,
      ]);
      expect(retry(final, aDecision()) instanceof DomainError).toBe(status === "completed");
      for (let revision = 1; revision < final.revision; revision += 1) {
        const pending = { ...final, status: "pending", revision } as const;
        const active = { ...final, status: "active", attempts: 1, revision } as const;
        expect(await decided(db.actions, cancel, pending)).toBe(false);
        expect(await db.actions.apply(settled(active, answered(500)))).toBe(false);
      }
      expect(await claimDue(db.actions, final)).toEqual([]);
      expect(await stored(db.actions, final)).toEqual(final);
    }
  });

  describe("a retry", () => {
    test("is a new run: attempts, result and stamps are gone, the history stays", async (db) => {
      const held = await createdAction(db.actions, { approve: true, retries: 1 });
      await decided(db.actions, approve, held);
      const failed = await attempted(db.actions, await stored(db.actions, held), answered(500, '"no"'));
      expect(failed).toMatchObject({
        status: "failed",
        attempts: 1,
        result: { responseCode: 500 },
        approvedBy: "key:boss",
      });

      await db.actions.apply(writeOf(retry(failed, aDecision(later(5), "again"))));

      const again = { run: 2, attempts: 0, startedAt: null, finishedAt: null, result: null };
      expect(await stored(db.actions, held)).toMatchObject({
        ...again,
        status: "awaiting_approval",
        approvedAt: null,
        approvedBy: null,
      });
      const entries = await db.actions.timeline(ACCOUNT, held.id);
      expect(entries.map(({ run, event }) => `${run} ${event.type}`)).toEqual([
        ...["created", "held", "approved", "started", "attempt", "failed"].map((type) => `1 ${type}`),
        ...["retried", "held"].map((type) => `2 ${type}`),
      ]);
    });

    test("keeps the dedupe key that a cancelled action still holds", async (db) => {
      const cancelled = await actionInStatus(db.actions, "cancelled", { dedupe: "k" });
      expect(await db.actions.apply(writeOf(retry(cancelled, aDecision())))).toBe(true);
      expect((await db.actions.keyHolder(ACCOUNT, "dedupe", "k", LEASE.now))?.id).toBe(cancelled.id);
      expect(await db.keyCount()).toBe(1);
    });

    test("loses when another live action holds its dedupe key, and leaves nothing behind", async (db) => {
      const failed = await failedAction(db.actions, { dedupe: "k", callback: "https://hooks.example.com/a" });
      const holder = await createdAction(db.actions, { dedupe: "k" });
      const [rows, notifications] = [await happeningsOf(db.actions, failed), await db.outbox(failed.id)];
      expect(await db.actions.apply(writeOf(retry(failed, aDecision())))).toBe(false);
      expect(await stored(db.actions, failed)).toEqual(failed);
      expect(await happeningsOf(db.actions, failed)).toEqual(rows);
      expect(await db.outbox(failed.id)).toEqual(notifications);
      expect((await db.actions.keyHolder(ACCOUNT, "dedupe", "k", LEASE.now))?.id).toBe(holder.id);
    });

    test("of two failed actions with one key: the first holds it, the second loses", async (db) => {
      const failed = [await failedAction(db.actions, { dedupe: "k" }), await failedAction(db.actions, { dedupe: "k" })];
      const won = await Promise.all(failed.map((action) => db.actions.apply(writeOf(retry(action, aDecision())))));
      expect(won).toEqual([true, false]);
      expect((await db.actions.keyHolder(ACCOUNT, "dedupe", "k", LEASE.now))?.id).toBe(failed[0]?.id);
    });

    test.each([0, 1])(
      "and a create in one commit: the retry holds the key, whichever came first (%s)",
      async (db, retryComes) => {
        const failed = await failedAction(db.actions, { dedupe: "k" });
        const again = () => db.actions.apply(writeOf(retry(failed, aDecision())));
        const fresh = () => db.actions.create(aCreation({ dedupe: "k" }));
        const [retried, created] =
          retryComes === 0
            ? await Promise.all([again(), fresh()])
            : await Promise.all([fresh(), again()]).then(([a, b]) => [b, a] as const);
        expect([retried, created.kind]).toEqual([true, "matched"]);
        expect((await db.actions.keyHolder(ACCOUNT, "dedupe", "k", LEASE.now))?.id).toBe(failed.id);
      },
    );

    test("a day later takes a key that nobody holds any more, and answers for it no longer", async (db) => {
      const failed = await failedAction(db.actions, { dedupe: "k" });
      const nextDay = later(25 * 3_600_000);
      expect(await db.actions.apply(writeOf(retry(failed, aDecision(nextDay)), nextDay))).toBe(true);
      expect(await db.actions.create(aCreation({ dedupe: "k", createdAt: nextDay }))).toEqual({
        kind: "created",
        claimed: null,
      });
    });
  });

  test("what a run has left behind can't settle the next one", async (db) => {
    const slow = await claimed(db.actions, await createdAction(db.actions, { retries: 1 }));
    await db.actions.apply(settled(slow, { kind: "unknown", fault: "interrupted" }));
    const failed = await stored(db.actions, slow);
    await db.actions.apply(writeOf(retry(failed, aDecision())));
    await claimed(db.actions, await stored(db.actions, slow));
    expect(await db.actions.apply(settled(slow, answered(200)))).toBe(false);
    expect(await stored(db.actions, slow)).toMatchObject({ status: "active", run: 2, attempts: 1 });
  });
}
