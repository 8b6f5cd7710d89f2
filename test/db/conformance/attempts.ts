import { describe, expect, test } from "bun:test";
import type { Action } from "../../../src/actions/action.ts";
import { retry } from "../../../src/actions/changes.ts";
import { ATTEMPTS_KEPT } from "../../../src/config/limits.ts";
import type { Outcome } from "../../../src/actions/outcome.ts";
import type { ActionStore } from "../../../db/store.ts";
import { ACCOUNT, aDecision, answered, later, OTHER_ACCOUNT, writeOf } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { attempted, createdAction, stored } from "./steps.ts";

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

/** What came back of earlier attempts. */
export function testAttempts(open: OpenTestStore): void {
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
