import { utcDay } from "../../../src/core/key-limits.ts";
import { describe, expect } from "bun:test";
import { ACTION_STATUSES, type Action } from "../../../src/core/action.ts";
import type { KeyKind } from "../../../src/core/dedupe.ts";
import { DEDUPE_WINDOW_MS, DAY_MS } from "../../../src/core/limits.ts";
import { type Created, type Creation } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCreation,
  anAction,
  answered,
  creationOf,
  later,
  NOON,
  OTHER_ACCOUNT,
  aDecision,
  anAccount,
  anApiKey,
  KEY,
  writeOf,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { actionInStatus, attempted, createdAction, failedAction, racing, LEASE, stored } from "./steps.ts";
import { retry } from "../../../src/core/changes.ts";
import { startAttempt } from "../../../src/core/settle.ts";

const KINDS: readonly (readonly [kind: KeyKind, member: "idempotencyKey" | "dedupe"])[] = [
  ["idempotency", "idempotencyKey"],
  ["dedupe", "dedupe"],
];

/** Which action a repeated create means (spec "Deduplication rules", decisions 3), and the daily limit of a key. */
export function testKeys(test: StoreTest): void {
  describe.each(KINDS)("the %s key", (kind, member) => {
    test.each([1, 7])("makes one action of a hundred racing creates, in turns: %s", async (db, turns) => {
      const creations = Array.from({ length: 100 }, () => aCreation({ [member]: "k" }));
      const created = await racing(creations, turns, (creation) => db.actions.create(creation));
      expectOneWinner(creations, created, kind);
      expect(await db.keyCount()).toBe(1);
    });

    test("matches for 24 h from created_at, and not a millisecond longer", async (db) => {
      const first = aCreation({ [member]: "k" });
      await db.actions.create(first);
      const inside = await db.actions.create(aCreation({ [member]: "k", createdAt: later(DEDUPE_WINDOW_MS - 1) }));
      expect(inside).toMatchObject({ kind: "matched", by: kind, action: { id: first.action.id } });
      const outside = await db.actions.create(aCreation({ [member]: "k", createdAt: later(DEDUPE_WINDOW_MS) }));
      expect(outside).toEqual({ kind: "created", claimed: null });
    });

    test("belongs to an account", async (db) => {
      const accounts = [OTHER_ACCOUNT, ACCOUNT, `${OTHER_ACCOUNT}x`, ACCOUNT.toUpperCase()];
      const ids: string[] = [];
      for (const accountId of accounts) ids.push((await createdAction(db.actions, { [member]: "k", accountId })).id);
      const holders = await Promise.all(accounts.map((account) => db.actions.keyHolder(account, kind, "k", NOON)));
      expect(holders.map((holder) => holder?.id)).toEqual(ids);
    });

    test("is told apart by every character", async (db) => {
      const keys = ["k", "K", "k ", " k", "k'", 'k"', "k%", "k_", "k\\", "k$1", "k?"];
      const created = await Promise.all(keys.map((key) => db.actions.create(aCreation({ [member]: key }))));
      expect(created).toEqual(keys.map(() => ({ kind: "created", claimed: null })));
    });

    test("means an action of each status, a dedupe key all but a failed one", async (db) => {
      for (const status of ACTION_STATUSES) {
        const action = await actionInStatus(db.actions, status, { [member]: status });
        const answers = kind === "idempotency" || status !== "failed";
        expect((await db.actions.keyHolder(ACCOUNT, kind, status, NOON))?.id).toBe(answers ? action.id : undefined);
        const created = await db.actions.create(aCreation({ [member]: status }));
        expect(created).toEqual(answers ? { kind: "matched", by: kind, action } : { kind: "created", claimed: null });
      }
    });
  });

  describe("two keys", () => {
    test("on two actions: the idempotency key says which", async (db) => {
      const [byDedupe, byIdempotency] = [anAction({ dedupe: "d" }), anAction({ idempotencyKey: "i" })];
      await db.actions.create(creationOf(byDedupe));
      await db.actions.create(creationOf(byIdempotency));
      const created = await db.actions.create(aCreation({ dedupe: "d", idempotencyKey: "i" }));
      expect(created).toMatchObject({ kind: "matched", by: "idempotency", action: { id: byIdempotency.id } });
    });

    test("do the same when all three come in one turn", async (db) => {
      const [byDedupe, byIdempotency] = [aCreation({ dedupe: "d" }), aCreation({ idempotencyKey: "i" })];
      const both = aCreation({ dedupe: "d", idempotencyKey: "i" });
      const created = await Promise.all([byDedupe, byIdempotency, both].map((each) => db.actions.create(each)));
      expect(created[2]).toMatchObject({ kind: "matched", by: "idempotency", action: { id: byIdempotency.action.id } });
    });

    test("of one text are two keys", async (db) => {
      await db.actions.create(aCreation({ dedupe: "k" }));
      expect(await db.actions.create(aCreation({ idempotencyKey: "k" }))).toEqual({ kind: "created", claimed: null });
      expect(await db.keyCount()).toBe(2);
    });

    test("are taken together or not at all", async (db) => {
      await db.actions.create(aCreation({ idempotencyKey: "i" }));
      const matched = await db.actions.create(aCreation({ idempotencyKey: "i", dedupe: "free" }));
      expect(matched.kind).toBe("matched");
      expect(await db.actions.keyHolder(ACCOUNT, "dedupe", "free", NOON)).toBeNull();
    });

    test("of a failed action: dedupe is free, idempotency still matches it", async (db) => {
      const failed = await failedAction(db.actions, { dedupe: "d", idempotencyKey: "i" });
      const again = await db.actions.create(aCreation({ dedupe: "d", idempotencyKey: "i" }));
      expect(again).toMatchObject({ kind: "matched", by: "idempotency", action: { id: failed.id } });
      expect(await db.actions.create(aCreation({ dedupe: "d" }))).toEqual({ kind: "created", claimed: null });
    });
  });

  describe("an idempotency key whose create matched by dedupe", () => {
    const both = { dedupe: "d", idempotencyKey: "i" };

    test("means that action from then on, also when it has failed since and after a restart", async (db) => {
      const held = await createdAction(db.actions, { dedupe: "d", retries: 1 });
      const first = await db.actions.create(aCreation(both));
      expect(first).toEqual({ kind: "matched", by: "dedupe", action: held });
      const failed = await attempted(db.actions, held, answered(500));
      await db.restart();
      const again = await db.actions.create(aCreation(both));
      expect(again).toEqual({ kind: "matched", by: "idempotency", action: failed });
      expect(await db.actions.create(aCreation({ idempotencyKey: "i" }))).toMatchObject({ action: { id: held.id } });
      // What the action itself was created with stays as it was.
      expect((await db.actions.find(ACCOUNT, held.id))?.idempotencyKey).toBeNull();
    });

    test("is remembered for 24 h from that create, whatever is created with it meanwhile", async (db) => {
      const bound = later(DEDUPE_WINDOW_MS - 1);
      const held = await createdAction(db.actions, { dedupe: "d" });
      expect((await db.actions.create(aCreation({ ...both, createdAt: bound }))).kind).toBe("matched");
      const createAt = (ms: number) =>
        db.actions.create(aCreation({ idempotencyKey: "i", createdAt: new Date(bound.getTime() + ms) }));
      for (const ms of [1, DEDUPE_WINDOW_MS - 1]) {
        expect(await createAt(ms)).toMatchObject({ kind: "matched", action: { id: held.id } });
      }
      expect(await createAt(DEDUPE_WINDOW_MS)).toEqual({ kind: "created", claimed: null });
    });

    test("keeps to the action that it means already, in its own account", async (db) => {
      const [byKey, elsewhere] = [aCreation({ idempotencyKey: "i" }), aCreation({ ...both, accountId: OTHER_ACCOUNT })];
      await db.actions.create(byKey);
      await db.actions.create(aCreation({ dedupe: "d" }));
      expect(await db.actions.create(elsewhere)).toMatchObject({ kind: "created" });
      expect(await db.actions.create(aCreation(both))).toMatchObject({ action: { id: byKey.action.id } });
      expect((await db.actions.keyHolder(ACCOUNT, "idempotency", "i", NOON))?.id).toBe(byKey.action.id);
    });
  });

  test("a create that matched leaves nothing behind", async (db) => {
    const held = { approve: true, callback: "https://hooks.example.com/a", notifyEmail: "boss@example.com" };
    await db.actions.create(aCreation({ idempotencyKey: "i" }));
    const { action, ...rest } = aCreation({ idempotencyKey: "i", ...held });
    expect((await db.actions.create({ action, ...rest })).kind).toBe("matched");
    expect(await db.actions.find(ACCOUNT, action.id)).toBeNull();
    expect(await db.actions.timeline(ACCOUNT, action.id)).toEqual([]);
    expect(await db.outbox(action.id)).toEqual([]);
  });

  describe("a daily limit", () => {
    test("is never exceeded by a hundred racing creates, in one turn and in many", async (db) => {
      for (const turns of [1, 7]) {
        const keyId = `key_${turns}`;
        const creations = Array.from({ length: 100 }, () => limited(30, { keyId }));
        const created = await racing(creations, turns, (creation) => db.actions.create(creation));
        expect(created.filter(({ kind }) => kind === "created")).toHaveLength(30);
        expect(created.filter(({ kind }) => kind === "budget_spent")).toHaveLength(70);
      }
    });

    test("counts held creates and those that are claimed at once, and each key by itself", async (db) => {
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

    test("is free of charge for a create that finds an older action, also when it is spent", async (db) => {
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

    test("begins again with the day, and counts a day once it comes back after the clock was set back", async (db) => {
      const on = (days: number) => limited(1, { createdAt: later(days * DAY_MS), dueAt: later(days * DAY_MS) });
      const kinds = [];
      for (const days of [0, 0, 1, 0, 1, 2]) kinds.push((await db.actions.create(on(days))).kind);
      const [made, spent] = ["created", "budget_spent"] as const;
      expect(kinds).toEqual([made, spent, made, spent, spent, made]);
      // Only days that are long over are forgotten.
      await db.store.upkeep.pruneKeys(later(2 * DAY_MS));
      expect((await db.actions.create(on(1))).kind).toBe(spent);
      await db.store.upkeep.pruneKeys(later(3 * DAY_MS));
      expect((await db.actions.create(on(1))).kind).toBe(made);
    });
  });

  describe("a daily limit, when an action is retried", () => {
    const byOther = { keyId: "key_other", limit: 30, day: utcDay(NOON) };

    test("counts against the key that calls, and is never exceeded by racing retries and creates", async (db) => {
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

    test("is not counted for a retry that another change came before", async (db) => {
      const action = await failedAction(db.actions);
      const once = { ...byOther, limit: 2 };
      const write = { ...writeOf(retry(action, aDecision())), budget: once };
      expect([await db.actions.apply(write), await db.actions.apply(write)]).toEqual([true, false]);
      expect(await db.actions.hasBudgetLeft(once)).toBe(true);
    });
  });

  test("what a key has done is its newest action, and how many it created today and in the last 24 hours", async (db) => {
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

function expectOneWinner(creations: readonly Creation[], created: readonly Created[], by: KeyKind): void {
  const winners = creations.filter((_, at) => created[at]?.kind === "created");
  expect(winners).toHaveLength(1);
  const matched = created.filter((each) => each.kind === "matched");
  expect(matched).toHaveLength(creations.length - 1);
  expect(new Set(matched.map(({ action }) => action.id))).toEqual(new Set(winners.map(({ action }) => action.id)));
  expect(new Set(matched.map((each) => each.by))).toEqual(new Set([by]));
}

/** A create of a key that may create so many a day. */
function limited(limit: number, overrides: Partial<Action> = {}): Creation {
  const creation = aCreation(overrides);
  return { ...creation, budget: { limit, day: utcDay(creation.action.createdAt) } };
}
