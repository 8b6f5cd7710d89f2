import { seeWhole } from "../../../src/receipts/see.ts";
import { describe, expect } from "bun:test";
import type { Outcome } from "../../../src/core/outcome.ts";
import { actionJson } from "../../../src/receipts/action-json.ts";
import type { Action } from "../../../src/core/action.ts";
import { approve, cancel, retry } from "../../../src/core/changes.ts";
import { EVENT_PAGE_BYTES_MAX, EVENT_PAGE_MAX, EVENT_SCAN_ROWS_MAX } from "../../../src/core/limits.ts";
import type { ActionStore, ActionChange } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCreation,
  aDecision,
  answered,
  later,
  OTHER_ACCOUNT,
  settled,
  writeOf,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { attempted, claimed, createdAction, stored } from "./steps.ts";

/** The feed of an account: every change of status once, in the order of the commits. */
export function testChanges(test: StoreTest): void {
  describe("the changes of an account", () => {
    test("are one for each change of status, whatever else the timeline tells of it", async (db) => {
      const held = await createdAction(db.actions, { approve: true, retries: 2 });
      await db.actions.apply(writeOf(approve(held, aDecision(later(5))), later(5)));
      await attempted(db.actions, await stored(db.actions, held), answered(503), { now: later(10) });
      const failed = await attempted(db.actions, await stored(db.actions, held), answered(500), { now: later(20) });
      await db.actions.apply(writeOf(retry(failed, aDecision(later(30))), later(30)));
      await db.actions.apply(writeOf(cancel(await stored(db.actions, held), aDecision(later(40))), later(40)));
      const told = await everyChange(db.actions);
      expect(told.map(({ action }) => action.status).join(" ")).toBe(
        "awaiting_approval pending active pending active failed awaiting_approval cancelled",
      );
      expect(told.map(({ at }) => at)).toEqual([0, 5, 5, 10, 2_010, 20, 30, 40].map(later));
    });

    test("show the action as it was after each of them, but for the body of an answer that was replaced", async (db) => {
      const seen: Action[] = [];
      const see = async (action: Action) => seen.push(await stored(db.actions, action));
      const action = await createdAction(db.actions, { method: "GET", body: null, approve: true, retries: 2 });
      await see(action);
      const decide = async (step: typeof approve | typeof retry, atMs: number) => {
        await db.actions.apply(writeOf(step(await stored(db.actions, action), aDecision(later(atMs))), later(atMs)));
        await see(action);
      };
      const attempt = async (outcome: Outcome, atMs: number) => {
        const at = { now: later(atMs), leaseUntil: later(atMs + 45_000) };
        const active = await claimed(db.actions, await stored(db.actions, action), at);
        await see(action);
        await db.actions.apply(settled(active, outcome, { now: later(atMs + 10), durationMs: 10 }));
        await see(action);
      };
      await decide(approve, 100);
      await attempt({ kind: "unknown", fault: "closed" }, 200);
      await attempt(answered(500, '{"no":1}'), 5_000);
      await decide(retry, 6_000);
      await decide(approve, 7_000);
      await attempt({ kind: "not_sent", fault: "refused" }, 8_000);
      await attempt(BROKEN, 20_000);
      await decide(retry, 30_000);
      await decide(approve, 31_000);
      await attempt(answered(200, '{"ok":true}'), 32_000);

      const told = await everyChange(db.actions);
      expect(told).toHaveLength(seen.length);
      expect(told.map((change) => shown(change.action))).toEqual(seen.map(shown));
      // The same from the middle of a run as from its beginning.
      for (const [at, { seq }] of told.entries()) {
        expect(await everyChange(db.actions, seq)).toEqual(told.slice(at + 1));
      }
      // Of the newest nothing is gone.
      expect(told.at(-1)?.action).toEqual(await stored(db.actions, action));
    });

    test("are nobody else's", async (db) => {
      await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      const mine = await createdAction(db.actions);
      await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      const told = await everyChange(db.actions);
      expect(told.map(({ action }) => action.id)).toEqual([mine.id]);
      expect(await everyChange(db.actions, 0, "acc_nobody")).toEqual([]);
    });

    test("behind a position are those of later commits, whatever the account of the position's own row", async (db) => {
      expect(await db.actions.position()).toBe(0);
      await createdAction(db.actions);
      const position = await db.actions.position();
      expect(await db.actions.changes(ACCOUNT, position)).toEqual({ changes: [], position, isLast: true });
      await createdAction(db.actions, { accountId: OTHER_ACCOUNT });
      const other = await db.actions.position();
      expect(other).toBeGreaterThan(position);
      const newest = await createdAction(db.actions);
      for (const after of [position, other]) {
        expect((await everyChange(db.actions, after)).map(({ action }) => action.id)).toEqual([newest.id]);
      }
      expect(await Promise.all([0, position, other, other + 9].map((at) => db.actions.knowsPosition(at)))).toEqual([
        true,
        true,
        true,
        false,
      ]);
    });

    test("come in pages: so many at a time, and fewer where they are large", async (db) => {
      const body = JSON.stringify({ text: "x".repeat(EVENT_PAGE_BYTES_MAX / 2) });
      const large = Array.from({ length: 3 }, () => aCreation({ body }));
      const small = Array.from({ length: EVENT_PAGE_MAX + 1 }, () => aCreation());
      for (const creation of [...large, ...small]) await db.actions.create(creation);
      const sizes: number[] = [];
      const told: ActionChange[] = [];
      for await (const page of pages(db.actions, 0)) {
        sizes.push(page.length);
        told.push(...page);
      }
      expect(sizes.slice(0, 2)).toEqual([1, 1]);
      expect(Math.max(...sizes)).toBe(EVENT_PAGE_MAX);
      expect(told.map(({ action }) => action.id)).toEqual([...large, ...small].map(({ action }) => action.id));
    });

    test("are found behind many rows of others, a bounded number of them at a time", async (db) => {
      // Two rows each.
      const other = { accountId: OTHER_ACCOUNT, approve: true };
      const others = Array.from({ length: EVENT_SCAN_ROWS_MAX / 2 + 100 }, () => aCreation(other));
      await Promise.all(others.map((creation) => db.actions.create(creation)));
      const mine = await createdAction(db.actions);
      const first = await db.actions.changes(ACCOUNT, 0);
      expect(first).toMatchObject({ changes: [], isLast: false });
      expect(await db.rowsUpTo(first.position)).toBe(EVENT_SCAN_ROWS_MAX);
      const second = await db.actions.changes(ACCOUNT, first.position);
      expect(second.changes.map(({ action }) => action.id)).toEqual([mine.id]);
      expect(second.isLast).toBe(true);
    });
  });
}

/** A 2xx whose body broke off: of a GET it counts as none. */
const BROKEN: Outcome = { ...answered(200, '"half'), truncated: true, brokenBy: "closed" };

/** As an answer shows it, without what nobody keeps. */
function shown(action: Action): unknown {
  const json = JSON.parse(actionJson(seeWhole(action), { now: later(0), receiptUrl: "/r/x" })) as Record<
    string,
    unknown
  >;
  const error = json["error"];
  const bare = typeof error === "object" ? { ...error, response_body: null } : undefined;
  return { ...json, error: bare, response_body: null, response_truncated: undefined };
}

async function everyChange(actions: ActionStore, after = 0, accountId = ACCOUNT): Promise<readonly ActionChange[]> {
  const told: ActionChange[] = [];
  for await (const page of pages(actions, after, accountId)) told.push(...page);
  return told;
}

async function* pages(
  actions: ActionStore,
  after: number,
  accountId = ACCOUNT,
): AsyncGenerator<readonly ActionChange[]> {
  for (let position = after; ;) {
    const page = await actions.changes(accountId, position);
    yield page.changes;
    if (page.isLast) return;
    position = page.position;
  }
}
