import { describe, expect, test } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import { pastAttempts } from "../../../src/core/attempts.ts";
import { retry } from "../../../src/core/changes.ts";
import { ATTEMPTS_KEPT } from "../../../src/core/limits.ts";
import type { Outcome } from "../../../src/core/outcome.ts";
import { settleLate } from "../../../src/core/settle.ts";
import type { ActionStore, ChangeWrite } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aDecision,
  anAction,
  answered,
  creationOf,
  later,
  OTHER_ACCOUNT,
  writeOf,
} from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { attempted, attemptedAction, claimed, createdAction, stored } from "./steps.ts";

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

/** What came back of earlier attempts, and of those that were closed too early. */
export function testAttempts(open: OpenTestStore): void {
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

    test("completes an action that waits, and is one change of its status", async () => {
      await using db = await open();
      const before = await attemptedAction(db.actions, INTERRUPTED, { retries: 3 });
      expect(before.status).toBe("pending");
      const done = write(before, withHeaders(200, '{"n":1.0}'));
      expect([await db.actions.apply(done), await db.actions.apply(done)]).toEqual([true, false]);
      expect([await db.actions.isApplied(done), await stored(db.actions, before)]).toEqual([true, done.change.after]);
      expect(await heard(db.actions, before)).toEqual(["pending", "active", "pending", "completed"]);
    });

    test("of a failed action is kept with it, is an event of its own, and its dedupe key goes on naming it", async () => {
      await using db = await open();
      const dedupe = "k";
      const failed = await attemptedAction(db.actions, INTERRUPTED, { retries: 1, dedupe });
      expect(await db.actions.holderOf(ACCOUNT, "dedupe", dedupe, later(9))).toBeNull();
      const error = write(failed, withHeaders(500, '"no"'));
      expect(await db.actions.apply(error)).toBe(true);
      expect(await db.actions.holderOf(ACCOUNT, "dedupe", dedupe, later(9))).toBeNull();
      const late = write(await stored(db.actions, failed), withHeaders(200, '{"n":12345678901234567890}'));
      expect(await db.actions.apply(late)).toBe(true);
      await db.restart();
      const now = await stored(db.actions, failed);
      expect(now).toEqual(late.change.after);
      expect(now).toMatchObject({ status: "failed", lateResult: { responseBody: '{"n":12345678901234567890}' } });
      expect((await db.actions.holderOf(ACCOUNT, "dedupe", dedupe, later(9)))?.id).toBe(failed.id);
      expect(await heard(db.actions, failed)).toEqual(["pending", "active", "failed", "failed late", "failed late"]);
      expect([...(await db.actions.withLateSuccess([failed.id, "act_x"]))]).toEqual([failed.id]);
      const again = await db.actions.create(creationOf(anAction({ dedupe })));
      expect(again).toMatchObject({ kind: "matched", by: "dedupe", action: { id: failed.id } });
    });

    test("that changes nothing adds its row to the timeline, of its own run, and keeps its response", async () => {
      await using db = await open();
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

    test("of an earlier run is kept while a later one awaits approval, which it does not disturb", async () => {
      await using db = await open();
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

    test("are kept when another attempt follows, and the last one only in the action", async () => {
      await using db = await open();
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

    test("are none of an action that succeeds at once, and none of other accounts", async () => {
      await using db = await open();
      const done = await createdAction(db.actions);
      await attempted(db.actions, done, withHeaders(200, "1"));
      expect(await db.actions.responses(ACCOUNT, done.id)).toEqual([]);
      const others = await createdAction(db.actions, { accountId: OTHER_ACCOUNT, retries: 2 });
      await fail(db.actions, others, [1]);
      expect(await db.actions.responses(ACCOUNT, others.id)).toEqual([]);
      expect(await db.actions.responses(OTHER_ACCOUNT, others.id)).toHaveLength(1);
    });

    test("are bounded over all runs: the newest stay", async () => {
      await using db = await open();
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

    test("are not kept by a change that lost", async () => {
      await using db = await open();
      const action = await createdAction(db.actions, { retries: 1 });
      const failed = await fail(db.actions, action, [1]);
      const again = writeOf(retry(failed, aDecision(later(9))), later(9));
      const stale = { ...again, change: { ...again.change, before: { ...failed, revision: failed.revision - 1 } } };
      expect(await db.actions.apply(stale)).toBe(false);
      expect(await bodies(db.actions, action)).toEqual([]);
    });
  });
}
