import { DomainError } from "../../../src/core/domain-error.ts";
import { describe, expect } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import { cancel, retry, pastAttempts } from "../../../src/core/changes.ts";
import { DEDUPE_WINDOW_MS, TIMELINE_ROWS_MAX, ATTEMPTS_KEPT } from "../../../src/core/limits.ts";
import { notificationsFor } from "../../../src/core/notification.ts";
import type { ChangeWrite, ActionStore } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCreation,
  aDecision,
  answered,
  later,
  NOON,
  OTHER_ACCOUNT,
  writeOf,
  anAction,
  anAttempt,
  creationOf,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { actionInStatus, attempted, createdAction, stored, attemptedAction, claimed } from "./steps.ts";
import type { Outcome } from "../../../src/core/outcome.ts";
import { settleLate } from "../../../src/core/settle.ts";

/** What an action tells and owes, what came back of earlier attempts, and what the store counts and forgets. */
export function testTimeline(test: StoreTest): void {
  describe("a timeline", () => {
    test("tells everything that happened, oldest first, with the status after it", async (db) => {
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
          event: anAttempt(1, {
            response_code: 503,
            error: "The target answered with status 503.",
            duration_ms: 10,
            next_retry_at: later(2_010).toISOString(),
          }),
        },
        {
          at: later(20),
          run: 1,
          status: "cancelled",
          event: { type: "cancelled", actor: "key:boss", reason: "no longer" },
        },
      ]);
    });

    test("has numbers that grow over all actions, in the order of the commits", async (db) => {
      const actions = [await createdAction(db.actions), await createdAction(db.actions, { createdAt: later(-1) })];
      for (const action of actions.toReversed()) await attempted(db.actions, action, answered(200));
      const entries = (await Promise.all(actions.map(({ id }) => db.actions.timeline(ACCOUNT, id)))).flat();
      const seqs = entries.map(({ seq }) => seq);
      expect(new Set(seqs).size).toBe(8);
      const order = entries.toSorted((a, b) => a.seq - b.seq).map(({ event }) => event.type);
      const attempt = ["started", "attempt", "completed"] as const;
      expect(order).toEqual(["created", "created", ...attempt, ...attempt]);
    });

    test("of another account's action, or of none, is empty", async (db) => {
      const { id } = await createdAction(db.actions);
      expect(await db.actions.timeline(OTHER_ACCOUNT, id)).toEqual([]);
      expect(await db.actions.timeline(ACCOUNT, "act_nowhere")).toEqual([]);
    });

    test("shows at most so many rows, the newest of them", async (db) => {
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

  test("what an action owes is written with the change that owes it, and stays as it was", async (db) => {
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

  test("what waits is counted by status, and what is final is not", async (db) => {
    const statuses = ["pending", "pending", "pending", "active", "awaiting_approval", "awaiting_approval"] as const;
    for (const status of [...statuses, "completed", "failed", "cancelled"] as const) {
      await actionInStatus(db.actions, status, { accountId: status === "active" ? OTHER_ACCOUNT : ACCOUNT });
    }
    expect(await db.actions.waiting()).toEqual({ pending: 3, active: 1, awaiting_approval: 2 });
  });

  test("an action belongs to its account", async (db) => {
    const action = await createdAction(db.actions);
    expect(await db.actions.find(OTHER_ACCOUNT, action.id)).toBeNull();
    expect(await db.actions.find(ACCOUNT, "act_nowhere")).toBeNull();
    expect(await stored(db.actions, action)).toEqual(action);
  });

  test("keys are forgotten when their window is over, a bounded number at a time", async (db) => {
    const ages = [...Array.from({ length: 1_200 }, () => 0), 1, 2];
    const created = ages.map((age, at) => db.actions.create(aCreation({ dedupe: `k${at}`, createdAt: later(age) })));
    await Promise.all(created);
    const now = later(DEDUPE_WINDOW_MS);
    expect(await db.store.upkeep.pruneKeys(later(DEDUPE_WINDOW_MS - 1))).toBe(false);
    expect(await db.keyCount()).toBe(1_202);
    let passes = 1;
    while (await db.store.upkeep.pruneKeys(now)) passes += 1;
    expect(passes).toBeGreaterThan(1);
    expect(await db.keyCount()).toBe(2);
    expect(await db.actions.keyHolder(ACCOUNT, "dedupe", "k1200", now)).not.toBeNull();
  });

  describe("a result that comes too late", () => {
    const INTERRUPTED: Outcome = { kind: "unknown", fault: "interrupted" };
    const backoff = { baseMs: 2_000, capMs: 3_600_000 };
    const write = (action: Action, outcome: Outcome, attempt = 1): ChangeWrite => {
      const end = { outcome, now: later(9), durationMs: 41, timeoutMs: 30_000, backoff, chance: 0.5 };
      return writeOf(settleLate(action, { ...end, run: 1, attempt }), later(9));
    };
    const heard = async (actions: ActionStore, { id }: Action) =>
      (await actions.changes(ACCOUNT, 0)).changes
        .filter((change) => change.action.id === id)
        .map(({ action, isLateResult = false }) => `${action.status}${isLateResult ? " late" : ""}`);

    test("completes an action that waits, and is one change of its status", async (db) => {
      const before = await attemptedAction(db.actions, INTERRUPTED, { retries: 3 });
      expect(before.status).toBe("pending");
      const done = write(before, withHeaders(200, '{"n":1.0}'));
      expect([await db.actions.apply(done), await db.actions.apply(done)]).toEqual([true, false]);
      expect([await db.actions.isApplied(done), await stored(db.actions, before)]).toEqual([true, done.change.after]);
      expect(await heard(db.actions, before)).toEqual(["pending", "active", "pending", "completed"]);
    });

    test("of a failed action is kept with it, is an event of its own, and its dedupe key goes on naming it", async (db) => {
      const dedupe = "k";
      const failed = await attemptedAction(db.actions, INTERRUPTED, { retries: 1, dedupe });
      expect(await db.actions.keyHolder(ACCOUNT, "dedupe", dedupe, later(9))).toBeNull();
      const error = write(failed, withHeaders(500, '"no"'));
      expect(await db.actions.apply(error)).toBe(true);
      expect(await db.actions.keyHolder(ACCOUNT, "dedupe", dedupe, later(9))).toBeNull();
      const late = write(await stored(db.actions, failed), withHeaders(200, '{"n":12345678901234567890}'));
      expect(await db.actions.apply(late)).toBe(true);
      await db.restart();
      const now = await stored(db.actions, failed);
      expect(now).toEqual(late.change.after);
      expect(now).toMatchObject({ status: "failed", lateResult: { responseBody: '{"n":12345678901234567890}' } });
      expect((await db.actions.keyHolder(ACCOUNT, "dedupe", dedupe, later(9)))?.id).toBe(failed.id);
      expect(await heard(db.actions, failed)).toEqual(["pending", "active", "failed", "failed late", "failed late"]);
      expect([...(await db.actions.withLateSuccess([failed.id, "act_x"]))]).toEqual([failed.id]);
      const again = await db.actions.create(creationOf(anAction({ dedupe })));
      expect(again).toMatchObject({ kind: "matched", by: "dedupe", action: { id: failed.id } });
    });

    test("that changes nothing adds its row to the timeline, of its own run, and keeps its response", async (db) => {
      const first = await attemptedAction(db.actions, INTERRUPTED, { retries: 3 });
      const completed = await attempted(db.actions, first, withHeaders(200, "2"));
      for (const attempt of [1, 2]) {
        const note = write(completed, withHeaders(503, '"late"'), attempt);
        expect(await db.actions.isApplied(note)).toBe(false);
        expect([await db.actions.apply(note), await db.actions.isApplied(note)]).toEqual([true, true]);
      }
      expect(await stored(db.actions, first)).toEqual(completed);
      const rows = (await db.actions.timeline(ACCOUNT, first.id)).filter(({ event }) => event.type === "attempt");
      expect(rows.map(({ run, event }) => [run, "late" in event && event.late])).toEqual([
        [1, false],
        [1, false],
        [1, "noted"],
        [1, "noted"],
      ]);
      expect(await heard(db.actions, first)).toEqual(["pending", "active", "pending", "active", "completed"]);
      const past = pastAttempts(
        completed,
        await db.actions.timeline(ACCOUNT, first.id),
        await db.actions.responses(ACCOUNT, first.id),
      );
      expect(past.map(({ responseBody }) => responseBody)).toEqual([null, "2", '"late"', '"late"']);
    });

    test("of an earlier run is kept while a later one awaits approval, which it does not disturb", async (db) => {
      const failed = await attemptedAction(db.actions, INTERRUPTED, { retries: 1, notifyEmail: "ann@example.com" });
      await db.actions.apply(writeOf(retry(failed, aDecision())));
      const again = await stored(db.actions, failed);
      const note = write(again, withHeaders(200, "1"));
      // Its mails and callbacks are those of the change that holds it.
      expect(note.outbox).toEqual([]);
      expect(await db.actions.apply(note)).toBe(true);
      // A second time is no altered row.
      expect([await db.actions.apply(note), await stored(db.actions, failed)]).toMatchObject([
        true,
        { revision: again.revision },
      ]);
      expect(await stored(db.actions, failed)).toMatchObject({
        run: 2,
        revision: again.revision,
        lateResult: { run: 1 },
      });
      expect(await claimed(db.actions, again)).toMatchObject({ lateResult: { run: 1, responseCode: 200 } });
    });
  });

  describe("the responses of earlier attempts", () => {
    const bodies = async (actions: ActionStore, { id }: Action) =>
      (await actions.responses(ACCOUNT, id)).map(({ run, attempt, responseBody }) => [run, attempt, responseBody]);

    test("are kept when another attempt follows, and the last one only in the action", async (db) => {
      const action = await createdAction(db.actions, { retries: 3 });
      await fail(db.actions, action, [1, 2]);
      const last = await attempted(db.actions, await stored(db.actions, action), withHeaders(200, "3"));
      expect(last.result).toMatchObject({ responseBody: "3", responseHeaders: HEADERS });
      expect(await stored(db.actions, action)).toEqual(last);
      expect(await db.actions.responses(ACCOUNT, action.id)).toEqual([
        { run: 1, attempt: 2, responseHeaders: HEADERS, responseBody: "2", responseTruncated: false },
        { run: 1, attempt: 1, responseHeaders: HEADERS, responseBody: "1", responseTruncated: false },
      ]);
    });

    test("are none of an action that succeeds at once, and none of other accounts", async (db) => {
      const done = await createdAction(db.actions);
      await attempted(db.actions, done, withHeaders(200, "1"));
      expect(await db.actions.responses(ACCOUNT, done.id)).toEqual([]);
      const others = await createdAction(db.actions, { accountId: OTHER_ACCOUNT, retries: 2 });
      await fail(db.actions, others, [1]);
      expect(await db.actions.responses(ACCOUNT, others.id)).toEqual([]);
      expect(await db.actions.responses(OTHER_ACCOUNT, others.id)).toHaveLength(1);
    });

    test("are bounded over all runs: the newest stay", async (db) => {
      const action = await createdAction(db.actions, { retries: 8 });
      await fail(db.actions, action, [1, 2, 3, 4, 5, 6, 7]);
      const kept = [7, 6, 5, 4, 3].map((n) => [1, n, String(n)]);
      expect(kept).toHaveLength(ATTEMPTS_KEPT);
      expect(await bodies(db.actions, action)).toEqual(kept);
      const failed = await fail(db.actions, action, [8]);
      expect(failed.status).toBe("failed");
      const again = retry(failed, aDecision(later(99)));
      expect(await db.actions.apply(writeOf(again, later(99)))).toBe(true);
      expect(await bodies(db.actions, action)).toEqual([8, 7, 6, 5, 4].map((n) => [1, n, String(n)]));
      await fail(db.actions, action, [1]);
      expect((await bodies(db.actions, action)).slice(0, 2)).toEqual([
        [2, 1, "1"],
        [1, 8, "8"],
      ]);
    });

    test("are not kept by a change that lost", async (db) => {
      const action = await createdAction(db.actions, { retries: 1 });
      const failed = await fail(db.actions, action, [1]);
      const again = writeOf(retry(failed, aDecision(later(9))), later(9));
      const stale = { ...again, change: { ...again.change, before: { ...failed, revision: failed.revision - 1 } } };
      expect(await db.actions.apply(stale)).toBe(false);
      expect(await bodies(db.actions, action)).toEqual([]);
    });
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

const HEADERS = '[["x-request-id","r1"],["set-cookie","••••"]]';

function withHeaders(code: number, body: string | null): Outcome {
  const answer = answered(code, body);
  return answer.kind === "answered" ? { ...answer, headers: HEADERS } : answer;
}

/** Makes attempts that fail, each with its number as the body. */
async function fail(actions: ActionStore, action: Action, numbers: readonly number[]): Promise<Action> {
  let last = await stored(actions, action);
  for (const n of numbers) last = await attempted(actions, last, withHeaders(503, String(n)), { now: later(n) });
  return last;
}
