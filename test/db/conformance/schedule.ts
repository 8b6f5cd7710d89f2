import { describe, expect, test } from "bun:test";
import type { Queue, SetBack } from "../../../src/core/store.ts";
import { answered, later, NOON } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { activeAction, attempted, attemptedAction, claimed, createdAction, LEASE, stored } from "./steps.ts";

const HOUR_MS = 3_600_000;

const CALLBACK = { approve: true, callback: "https://hooks.example.com/a", notifyEmail: "boss@example.com" };

interface Case {
  readonly name: string;
  /** After noon, when the due time was written; it is two seconds later. */
  readonly nowMs: number;
  readonly byMs: number;
  /** Null: it is left as it is. */
  readonly dueMs: number | null;
}

const CASES: readonly Case[] = [
  { name: "seen at once: due when it was due", nowMs: 500 - HOUR_MS, byMs: HOUR_MS, dueMs: 2_000 - HOUR_MS },
  { name: "seen when it was overdue: due now", nowMs: 9_000 - HOUR_MS, byMs: HOUR_MS, dueMs: 9_000 - HOUR_MS },
  { name: "seen by nobody: a whole step from now", nowMs: 500 - HOUR_MS, byMs: 0, dueMs: 2_500 - HOUR_MS },
  { name: "by five seconds, seen by nobody", nowMs: -5_000, byMs: 0, dueMs: null },
  { name: "by a little more", nowMs: -5_001, byMs: 0, dueMs: -3_001 },
  { name: "to after it was written: it is no step away", nowMs: 1_000, byMs: HOUR_MS, dueMs: null },
];

/** Due times when the wall clock is set back after they were written. */
export function testSchedule(open: OpenTestStore): void {
  describe("a clock that was set back", () => {
    test.each(CASES)("$name", async ({ nowMs, byMs, dueMs }) => {
      await using db = await open();
      const action = await attempted(db.actions, await createdAction(db.actions), answered(500));
      expect(action.dueAt).toEqual(later(2_000));
      const setBack = { now: later(nowMs), byMs };
      expect(await db.actions.reschedule(setBack, 10)).toBe(dueMs === null ? 0 : 1);
      expect(await stored(db.actions, action)).toEqual({ ...action, dueAt: later(dueMs ?? 2_000) });
      // Once is enough.
      expect(await db.actions.reschedule({ now: later(nowMs + 1), byMs: 0 }, 10)).toBe(0);
    });

    test("moves what is pending and nothing else, so many at a time", async () => {
      await using db = await open();
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

    test("moves callbacks and mails, each by itself", async () => {
      await using db = await open();
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
}
