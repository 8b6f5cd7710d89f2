import { describe, expect } from "bun:test";
import { HOUR_MS } from "../../../src/core/limits.ts";
import type { Queue, SetBack } from "../../../src/core/store.ts";
import { answered, later, NOON, aDecision, anAction, creationOf, writeOf } from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import {
  activeAction,
  attempted,
  attemptedAction,
  claimed,
  createdAction,
  LEASE,
  stored,
  actionInStatus,
  claimDue,
  claimOf,
  decided,
  happeningsOf,
} from "./steps.ts";
import { cancel, retry, sendNow } from "../../../src/core/changes.ts";

const CALLBACK = { approve: true, callback: "https://hooks.example.com/a", notifyEmail: "boss@example.com" };

/** When it is noticed, counted from noon, at which a due time two seconds later was written; due times of null stay as they are. */
const CASES = [
  ["seen at once: due when it was due", { nowMs: 500 - HOUR_MS, byMs: HOUR_MS, dueMs: 2_000 - HOUR_MS }],
  ["seen when it was overdue: due now", { nowMs: 9_000 - HOUR_MS, byMs: HOUR_MS, dueMs: 9_000 - HOUR_MS }],
  ["seen by nobody: a whole step from now", { nowMs: 500 - HOUR_MS, byMs: 0, dueMs: 2_500 - HOUR_MS }],
  ["by five seconds, seen by nobody", { nowMs: -5_000, byMs: 0, dueMs: null }],
  ["by a little more", { nowMs: -5_001, byMs: 0, dueMs: -3_001 }],
  ["to after it was written: it is no step away", { nowMs: 1_000, byMs: HOUR_MS, dueMs: null }],
] as const;

/** Actions that are not sent before a time, or from a time on, and due times when the wall clock is set back. */
export function testWaiting(test: StoreTest): void {
  describe("a clock that was set back", () => {
    test.each(CASES)("%s", async (db, [, { nowMs, byMs, dueMs }]) => {
      const action = await attempted(db.actions, await createdAction(db.actions), answered(500));
      expect(action.dueAt).toEqual(later(2_000));
      const setBack = { now: later(nowMs), byMs };
      expect(await db.actions.reschedule(setBack, 10)).toBe(dueMs === null ? 0 : 1);
      expect(await stored(db.actions, action)).toEqual({ ...action, dueAt: later(dueMs ?? 2_000) });
      // Once is enough.
      expect(await db.actions.reschedule({ now: later(nowMs + 1), byMs: 0 }, 10)).toBe(0);
    });

    test("moves what is pending and nothing else, so many at a time", async (db) => {
      const setBack: SetBack = { now: later(-HOUR_MS), byMs: HOUR_MS };
      const pending = await Promise.all([1, 2, 3].map(() => createdAction(db.actions)));
      const held = await createdAction(db.actions, { approve: true });
      const active = await activeAction(db.actions);
      const done = await attemptedAction(db.actions, answered(200));
      const before = await Promise.all([held, active, done].map((action) => stored(db.actions, action)));
      expect([await db.actions.reschedule(setBack, 2), await db.actions.reschedule(setBack, 2)]).toEqual([2, 1]);
      for (const action of pending) expect((await stored(db.actions, action)).dueAt).toEqual(later(-HOUR_MS));
      expect(await Promise.all([held, active, done].map((action) => stored(db.actions, action)))).toEqual(before);
      // A claim that knew of the time before is as good as one that did not.
      const [first] = pending;
      if (first !== undefined) expect((await claimed(db.actions, first, LEASE)).status).toBe("active");
    });

    test("moves callbacks and mails, each by itself", async (db) => {
      await createdAction(db.actions, CALLBACK);
      const due = async (queue: Queue<unknown>) => (await queue.lanes(null, 10)).map(({ dueAt }) => dueAt);
      const setBack: SetBack = { now: later(-HOUR_MS), byMs: 0 };
      const { callbacks, mails } = db.notifications;
      expect(await callbacks.reschedule(setBack, 10)).toBe(1);
      expect([await due(callbacks), await due(mails)]).toEqual([[later(-HOUR_MS)], [NOON]]);
      expect(await mails.reschedule(setBack, 10)).toBe(1);
      expect(await due(mails)).toEqual([later(-HOUR_MS)]);
    });
  });

  describe("an action with a run_at", () => {
    const runAt = later(HOUR_MS).getTime();

    test("is stored as it is, in its lane, and claimed at its time and not before", async (db) => {
      const extras = {
        runAt,
        delaySeconds: 3_600,
        timeoutMs: 5_000,
        backoff: { baseMs: 1, capMs: 2 },
        giveUpOn: [401],
      };
      const action = await createdAction(db.actions, { extras, dueAt: later(HOUR_MS), expiresAt: later(2 * HOUR_MS) });
      expect(action).toMatchObject({ extras, dueAt: later(HOUR_MS), expiresAt: later(2 * HOUR_MS) });
      await db.restart();
      expect(await stored(db.actions, action)).toEqual(action);
      expect(await db.actions.firstDueAt()).toEqual(later(HOUR_MS));
      expect(await claimDue(db.actions, action, { lease: at(HOUR_MS - 1) })).toEqual([]);
      expect(await claimDue(db.actions, action, { lease: at(HOUR_MS) })).toMatchObject([{ id: action.id, extras }]);
    });

    test("stays where it is when the clock is set back; a retry of it moves like any other", async (db) => {
      const action = await createdAction(db.actions, { extras: { runAt }, dueAt: later(HOUR_MS) });
      const setBack = { now: later(-HOUR_MS), byMs: HOUR_MS };
      expect(await db.actions.reschedule(setBack, 10)).toBe(0);
      expect(await stored(db.actions, action)).toEqual(action);
      const brought = await createdAction(db.actions, {
        extras: { runAt },
        dueAt: later(HOUR_MS),
        url: "https://b.example/",
      });
      await db.actions.apply(writeOf(sendNow(brought, aDecision())));
      expect(await db.actions.reschedule(setBack, 10)).toBe(1);
      expect((await stored(db.actions, brought)).dueAt).toEqual(later(-HOUR_MS));
      await decided(db.actions, cancel, action);
      await db.actions.apply(writeOf(retry(await stored(db.actions, action), aDecision())));
      expect(await db.actions.reschedule(setBack, 10)).toBe(1);
    });

    test("is brought forward once, with an entry of its own", async (db) => {
      const action = await createdAction(db.actions, { extras: { runAt }, dueAt: later(HOUR_MS) });
      const write = writeOf(sendNow(action, aDecision()));
      expect([await db.actions.apply(write), await db.actions.apply(write)]).toEqual([true, false]);
      expect(await happeningsOf(db.actions, action)).toEqual(["created", "sent_now"]);
      expect(await claimDue(db.actions, action)).toHaveLength(1);
    });
  });

  describe("an action that has expired", () => {
    const expiresAt = later(HOUR_MS);

    test("is never claimed, and hides nothing behind it, whatever the time that its claim names", async (db) => {
      const first = await createdAction(db.actions, { expiresAt });
      const second = await createdAction(db.actions, { createdAt: later(1), dueAt: later(1) });
      const claim = claimOf(first, { limit: 1, lease: at(HOUR_MS) });
      const { rows, next } = await db.actions.claimDue(claim);
      expect([rows.map(({ row }) => row.id), next]).toEqual([[second.id], []]);
      expect((await db.actions.claimDue(claim)).rows).toEqual([]);
      // Of several lanes too, which is another statement.
      const other = await createdAction(db.actions, { url: "https://b.example/" });
      const lanes = [...claimOf(first).lanes, ...claimOf(other).lanes];
      const both = await db.actions.claimDue({ ...claim, lanes });
      expect(both.rows.map(({ row }) => row.id)).toEqual([other.id]);
      expect(await stored(db.actions, first)).toEqual(first);
      expect(await claimDue(db.actions, first, { lease: at(HOUR_MS - 1) })).toHaveLength(1);
    });

    test("is found while it waits, pending or held, by time and id, in pages", async (db, { upkeep }) => {
      const pending = await createdAction(db.actions, { expiresAt });
      const held = await createdAction(db.actions, { expiresAt: later(5), approve: true });
      const same = await createdAction(db.actions, { expiresAt });
      await createdAction(db.actions, { expiresAt: later(HOUR_MS + 1) });
      await createdAction(db.actions);
      await activeAction(db.actions, { expiresAt, url: "https://b.example/" });
      await actionInStatus(db.actions, "cancelled", { expiresAt });
      const [one, other] = [pending, same].toSorted((a, b) => (a.id < b.id ? -1 : 1));
      const expected = [held, one, other].map((action) => ({
        id: action?.id,
        accountId: action?.accountId,
        expiresAt: action?.expiresAt,
      }));
      expect(await upkeep.expired(expiresAt, null, 9)).toEqual(expected as never);
      const first = await upkeep.expired(expiresAt, null, 2);
      expect(first).toEqual(expected.slice(0, 2) as never);
      expect(await upkeep.expired(expiresAt, first.at(-1) ?? null, 2)).toEqual(expected.slice(2) as never);
      expect(await upkeep.expired(later(4), null, 9)).toEqual([]);
    });

    test("while its create brings a claim is claimed like any other: it has not expired yet", async (db) => {
      const created = await db.actions.create({ ...creationOf(anAction({ expiresAt })), claim: LEASE });
      expect(created).toMatchObject({ kind: "created", claimed: { expiresAt, leaseUntil: LEASE.leaseUntil } });
    });

    test("between two attempts is not claimed either", async (db) => {
      const action = await attempted(
        db.actions,
        await createdAction(db.actions, { expiresAt: later(1_000) }),
        answered(500),
      );
      expect(action.dueAt).toEqual(later(2_000));
      expect(await claimDue(db.actions, action, { lease: at(2_000) })).toEqual([]);
      expect(await db.store.upkeep.expired(later(1_000), null, 9)).toMatchObject([{ id: action.id }]);
    });
  });

  test("a lease is lengthened while its claim holds: what was settled or taken over meanwhile stays as it is", async (db) => {
    const active = await activeAction(db.actions);
    expect(await db.actions.extendLease(active, later(200_000))).toBe(true);
    expect(await stored(db.actions, active)).toEqual({ ...active, leaseUntil: later(200_000) });
    expect(await db.actions.orphans(later(100_000), 9, null)).toEqual([]);
    expect(await db.actions.extendLease({ ...active, revision: active.revision - 1 }, later(1))).toBe(false);
    const pending = await createdAction(db.actions, { url: "https://b.example/" });
    expect(await db.actions.extendLease(pending, later(1))).toBe(false);
    expect((await stored(db.actions, pending)).leaseUntil).toBeNull();
  });
}

const at = (ms: number) => ({ ...LEASE, now: later(ms) });
