import { DomainError } from "../../../src/core/domain-error.ts";
import { describe, expect, test } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import { cancel, retry } from "../../../src/core/changes.ts";
import { DEDUPE_WINDOW_MS, TIMELINE_ROWS_MAX } from "../../../src/core/limits.ts";
import { notificationsFor } from "../../../src/core/notification.ts";
import type { ChangeWrite } from "../../../src/core/store.ts";
import { ACCOUNT, aCreation, aDecision, answered, later, NOON, OTHER_ACCOUNT, writeOf } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { actionInStatus, attempted, createdAction, stored } from "./steps.ts";

/** What an action tells and owes, and what the store counts and forgets. */
export function testTimeline(open: OpenTestStore): void {
  describe("a timeline", () => {
    test("tells everything that happened, oldest first, with the status after it", async () => {
      await using db = await open();
      const action = await createdAction(db.actions);
      const waiting = await attempted(db.actions, action, answered(503), { now: later(10) });
      await db.actions.apply(writeOf(cancel(waiting, aDecision(later(20), "no longer")), later(20)));
      const entries = await db.actions.timeline(ACCOUNT, action.id);
      expect(entries.map(({ at, run, status, event }) => ({ at, run, status, event }))).toEqual([
        { at: NOON, run: 1, status: "pending", event: { type: "created", actor: "key:test" } },
        { at: NOON, run: 1, status: "active", event: { type: "started" } },
        {
          at: later(10),
          run: 1,
          status: "pending",
          event: {
            type: "attempt",
            attempt: 1,
            outcome: "answered",
            response_code: 503,
            error: "The target answered with status 503.",
            duration_ms: 10,
            next_retry_at: later(2_010).toISOString(),
            location: null,
          },
        },
        {
          at: later(20),
          run: 1,
          status: "cancelled",
          event: { type: "cancelled", actor: "key:boss", reason: "no longer" },
        },
      ]);
    });

    test("has numbers that grow over all actions, in the order of the commits", async () => {
      await using db = await open();
      const actions = [await createdAction(db.actions), await createdAction(db.actions, { createdAt: later(-1) })];
      for (const action of actions.toReversed()) await attempted(db.actions, action, answered(200));
      const entries = (await Promise.all(actions.map(({ id }) => db.actions.timeline(ACCOUNT, id)))).flat();
      const seqs = entries.map(({ seq }) => seq);
      expect(new Set(seqs).size).toBe(8);
      const order = entries.toSorted((a, b) => a.seq - b.seq).map(({ event }) => event.type);
      const attempt = ["started", "attempt", "completed"] as const;
      expect(order).toEqual(["created", "created", ...attempt, ...attempt]);
    });

    test("of another account's action, or of none, is empty", async () => {
      await using db = await open();
      const { id } = await createdAction(db.actions);
      expect(await db.actions.timeline(OTHER_ACCOUNT, id)).toEqual([]);
      expect(await db.actions.timeline(ACCOUNT, "act_nowhere")).toEqual([]);
    });

    test("shows at most so many rows, the newest of them", async () => {
      await using db = await open();
      const action = await createdAction(db.actions);
      const steps = backAndForth(action, TIMELINE_ROWS_MAX + 1);
      const won = await Promise.all(steps.map((step) => db.actions.apply(step)));
      expect(won.every(Boolean)).toBe(true);
      const entries = await db.actions.timeline(ACCOUNT, action.id);
      expect(entries).toHaveLength(TIMELINE_ROWS_MAX);
      expect(entries[0]).toMatchObject({ event: { type: "retried" }, run: 2 });
      expect(entries.at(-1)).toMatchObject({ event: { type: "cancelled" }, run: TIMELINE_ROWS_MAX / 2 + 1 });
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map(({ seq }) => seq).toSorted((a, b) => a - b));
    });
  });

  test("what an action owes is written with the change that owes it, and stays as it was", async () => {
    await using db = await open();
    const target = "https://hooks.example.com/a?b=1";
    const expected: string[] = [];
    const bodies: (string | null)[] = [];
    for (const status of ["awaiting_approval", "completed", "failed", "cancelled"] as const) {
      const action = await actionInStatus(db.actions, status, { callback: target });
      expect(notificationsFor(action, [])).toMatchObject([{ event: `action.${status}`, target }]);
      const rows = await db.outbox(action.id);
      expected.push(...rows.map(({ event }) => event));
      bodies.push(...rows.map(({ payload }) => payload));
    }
    expect(expected).toEqual(["awaiting_approval", "completed", "failed", "cancelled"].map((name) => `action.${name}`));
    const seen = bodies.map((body) => JSON.parse(body ?? "null")).map(({ type, data }) => `${type} ${data.status}`);
    expect(seen).toEqual(expected.map((event) => `${event} ${event.replace("action.", "")}`));
  });

  test("what waits is counted by status, and what is final is not", async () => {
    await using db = await open();
    const statuses = ["pending", "pending", "pending", "active", "awaiting_approval", "awaiting_approval"] as const;
    for (const status of [...statuses, "completed", "failed", "cancelled"] as const) {
      await actionInStatus(db.actions, status, { accountId: status === "active" ? OTHER_ACCOUNT : ACCOUNT });
    }
    expect(await db.actions.waiting()).toEqual({ pending: 3, active: 1, awaiting_approval: 2 });
  });

  test("an action belongs to its account", async () => {
    await using db = await open();
    const action = await createdAction(db.actions);
    expect(await db.actions.find(OTHER_ACCOUNT, action.id)).toBeNull();
    expect(await db.actions.find(ACCOUNT, "act_nowhere")).toBeNull();
    expect(await stored(db.actions, action)).toEqual(action);
  });

  test("keys are forgotten when their window is over, a bounded number at a time", async () => {
    await using db = await open();
    const ages = [...Array.from({ length: 1_200 }, () => 0), 1, 2];
    const created = ages.map((age, at) => db.actions.create(aCreation({ dedupe: `k${at}`, createdAt: later(age) })));
    await Promise.all(created);
    const now = later(DEDUPE_WINDOW_MS);
    expect(await db.actions.pruneKeys(later(DEDUPE_WINDOW_MS - 1))).toBe(false);
    expect(await db.keyCount()).toBe(1_202);
    let passes = 1;
    while (await db.actions.pruneKeys(now)) passes += 1;
    expect(passes).toBeGreaterThan(1);
    expect(await db.keyCount()).toBe(2);
    expect(await db.actions.holderOf(ACCOUNT, "dedupe", "k1200", now)).not.toBeNull();
  });
}

/** Cancels and retries in turn, each on what the one before it will have made of the action. */
function backAndForth(action: Action, count: number): readonly ChangeWrite[] {
  const writes: ChangeWrite[] = [];
  let before = action;
  for (let step = 0; step < count; step += 1) {
    const change = (step % 2 === 0 ? cancel : retry)(before, aDecision());
    if (change instanceof DomainError) throw new Error(change.message);
    writes.push(writeOf(change));
    before = change.after;
  }
  return writes;
}
