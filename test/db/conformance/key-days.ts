import { describe, expect, test } from "bun:test";
import { dayOf } from "../../../src/core/store.ts";
import { DAY_MS } from "../../../src/core/limits.ts";
import { retry } from "../../../src/core/changes.ts";
import { startAttempt } from "../../../src/core/settle.ts";
import type { Creation } from "../../../src/core/store.ts";
import type { Action } from "../../../src/core/action.ts";
import {
  ACCOUNT,
  aCreation,
  aDecision,
  anAccount,
  anApiKey,
  KEY,
  later,
  NOON,
  writeOf,
} from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { failedAction, LEASE, nextTurns, stored } from "./steps.ts";

/** A create of a key that may create so many a day. */
function limited(limit: number, overrides: Partial<Action> = {}): Creation {
  const creation = aCreation(overrides);
  return { ...creation, budget: { limit, day: dayOf(creation.action.createdAt) } };
}

/** The daily limit of a key. */
export function testKeyDays(open: OpenTestStore): void {
  describe("a daily limit", () => {
    test("is never exceeded by a hundred racing creates, in one turn and in many", async () => {
      await using db = await open();
      for (const turns of [1, 7]) {
        const keyId = `key_${turns}`;
        const created = await Promise.all(
          Array.from({ length: 100 }, async (_, at) => {
            await nextTurns(at % turns);
            return db.actions.create(limited(30, { keyId }));
          }),
        );
        expect(created.filter(({ kind }) => kind === "created")).toHaveLength(30);
        expect(created.filter(({ kind }) => kind === "budget_spent")).toHaveLength(70);
      }
    });

    test("counts held creates and those that are claimed at once, and each key by itself", async () => {
      await using db = await open();
      const held = limited(2, { approve: true, status: "awaiting_approval", dueAt: null });
      const claimed = limited(2);
      expect((await db.actions.create(held)).kind).toBe("created");
      expect(await db.actions.create({ ...claimed, claim: LEASE })).toEqual({
        kind: "created",
        claimed: startAttempt(claimed.action, LEASE),
      });
      const late = limited(2);
      expect(await db.actions.create(late)).toEqual({ kind: "budget_spent" });
      expect(await db.actions.find(ACCOUNT, late.action.id)).toBeNull();
      expect(await db.actions.timeline(ACCOUNT, late.action.id)).toEqual([]);
      expect((await db.actions.create(limited(2, { keyId: "key_other" }))).kind).toBe("created");
      // A create without a limit neither counts nor is counted.
      expect((await db.actions.create(aCreation())).kind).toBe("created");
    });

    test("is free of charge for a create that finds an older action, also when it is spent", async () => {
      await using db = await open();
      const first = limited(2, { dedupe: "k", idempotencyKey: "i" });
      expect((await db.actions.create(first)).kind).toBe("created");
      for (let count = 0; count < 5; count += 1) {
        const same = await db.actions.create(limited(2, { dedupe: "k" }));
        expect(same).toMatchObject({ kind: "matched", action: { id: first.action.id } });
      }
      expect((await db.actions.create(limited(2))).kind).toBe("created");
      expect((await db.actions.create(limited(2))).kind).toBe("budget_spent");
      for (const key of [{ dedupe: "k" }, { idempotencyKey: "i" }]) {
        expect((await db.actions.create(limited(2, key))).kind).toBe("matched");
      }
    });

    test("begins again with the day, and counts a day once it comes back after the clock was set back", async () => {
      await using db = await open();
      const on = (days: number) => limited(1, { createdAt: later(days * DAY_MS), dueAt: later(days * DAY_MS) });
      const kinds = [];
      for (const days of [0, 0, 1, 0, 1, 2]) kinds.push((await db.actions.create(on(days))).kind);
      const [made, spent] = ["created", "budget_spent"] as const;
      expect(kinds).toEqual([made, spent, made, spent, spent, made]);
      // Only days that are long over are forgotten.
      await db.actions.pruneKeys(later(2 * DAY_MS));
      expect((await db.actions.create(on(1))).kind).toBe(spent);
      await db.actions.pruneKeys(later(3 * DAY_MS));
      expect((await db.actions.create(on(1))).kind).toBe(made);
    });
  });

  describe("a daily limit, when an action is retried", () => {
    const byOther = { keyId: "key_other", limit: 30, day: dayOf(NOON) };

    test("counts against the key that calls, and is never exceeded by racing retries and creates", async () => {
      await using db = await open();
      const failed = await Promise.all(Array.from({ length: 50 }, () => failedAction(db.actions)));
      const writes = failed.map((action) => ({ ...writeOf(retry(action, aDecision())), budget: byOther }));
      const creates = Array.from({ length: 50 }, () => limited(30, { keyId: byOther.keyId }));
      const done = await Promise.all([
        ...writes.map((write) => db.actions.apply(write)),
        ...creates.map(async (creation) => (await db.actions.create(creation)).kind === "created"),
      ]);
      expect(done.filter(Boolean)).toHaveLength(30);
      expect(await db.actions.hasBudgetLeft(byOther)).toBe(false);
      const runs = await Promise.all(failed.map(async (action) => (await stored(db.actions, action)).run));
      expect(runs.map((run) => run === 2)).toEqual(done.slice(0, 50));
      expect((await db.actions.create(limited(1))).kind).toBe("created");
    });

    test("is not counted for a retry that another change came before", async () => {
      await using db = await open();
      const action = await failedAction(db.actions);
      const once = { ...byOther, limit: 2 };
      const write = { ...writeOf(retry(action, aDecision())), budget: once };
      expect([await db.actions.apply(write), await db.actions.apply(write)]).toEqual([true, false]);
      expect(await db.actions.hasBudgetLeft(once)).toBe(true);
    });
  });

  test("what a key has done is its newest action, and how many it created today and in the last 24 hours", async () => {
    await using db = await open();
    const { accounts } = db.store;
    await accounts.create(anAccount({ id: ACCOUNT }), [
      anApiKey({ id: KEY }),
      anApiKey({ id: "key_limited", dailyActions: 5, hosts: ["a.example"], methods: ["GET"], expiresAt: later(9) }),
      anApiKey({ id: "key_idle" }),
    ]);
    const [yesterday, lastEvening] = [later(-DAY_MS), later(-DAY_MS / 2 - 1)];
    for (const createdAt of [yesterday, lastEvening, NOON, later(5)])
      await db.actions.create(aCreation({ createdAt, dueAt: createdAt }));
    await db.actions.create(limited(5, { keyId: "key_limited" }));
    await db.restart();
    const use = await db.store.accounts.keyUse(ACCOUNT, later(10));
    // Ids of actions begin with their time.
    const lastCall = { createdAt: later(5), method: "POST", status: "pending", responseCode: null };
    expect(use.get(KEY)).toMatchObject({ lastCall, actionsToday: 2, actionsLastDay: 3 });
    expect(use.get("key_limited")).toMatchObject({ lastCall: { createdAt: NOON }, actionsToday: 1 });
    expect(use.get("key_idle")).toEqual({ lastCall: null, actionsToday: 0, actionsLastDay: 0 });
    expect((await db.store.accounts.keyUse("acc_other", NOON)).size).toBe(0);
    const limitedKey = (await db.store.accounts.keys(ACCOUNT, 9)).find(({ id }) => id === "key_limited");
    expect(limitedKey).toMatchObject({
      dailyActions: 5,
      hosts: ["a.example"],
      methods: ["GET"],
      expiresAt: later(9),
    });
    expect(await db.store.accounts.keyByHash(limitedKey?.hash ?? "")).toEqual(limitedKey ?? null);
  });
}
