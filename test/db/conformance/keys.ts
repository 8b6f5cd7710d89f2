import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES } from "../../../src/core/action.ts";
import type { KeyKind } from "../../../src/core/dedupe.ts";
import { DEDUPE_WINDOW_MS } from "../../../src/core/limits.ts";
import type { Created, Creation } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCreation,
  anAction,
  answered,
  creationOf,
  later,
  NOON,
  OTHER_ACCOUNT,
} from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { actionInStatus, attempted, createdAction, failedAction, nextTurns } from "./steps.ts";

const KINDS: readonly (readonly [kind: KeyKind, member: "idempotencyKey" | "dedupe"])[] = [
  ["idempotency", "idempotencyKey"],
  ["dedupe", "dedupe"],
];

/** Which action a repeated create means (spec "Deduplication rules", decisions 3). */
export function testKeys(open: OpenTestStore): void {
  describe.each(KINDS)("the %s key", (kind, member) => {
    test("makes one action of a hundred racing creates in one turn", async () => {
      await using db = await open();
      const creations = Array.from({ length: 100 }, () => aCreation({ [member]: "k" }));
      const created = await Promise.all(creations.map((creation) => db.actions.create(creation)));
      expectOneWinner(creations, created, kind);
      expect(await db.keyCount()).toBe(1);
    });

    test("makes one action of a hundred racing creates in many turns", async () => {
      await using db = await open();
      const creations = Array.from({ length: 100 }, () => aCreation({ [member]: "k" }));
      const created = await Promise.all(
        creations.map(async (creation, at) => {
          await nextTurns(at % 7);
          return db.actions.create(creation);
        }),
      );
      expectOneWinner(creations, created, kind);
    });

    test("matches for 24 h from created_at, and not a millisecond longer", async () => {
      await using db = await open();
      const first = aCreation({ [member]: "k" });
      await db.actions.create(first);
      const inside = await db.actions.create(aCreation({ [member]: "k", createdAt: later(DEDUPE_WINDOW_MS - 1) }));
      expect(inside).toMatchObject({ kind: "matched", by: kind, action: { id: first.action.id } });
      const outside = await db.actions.create(aCreation({ [member]: "k", createdAt: later(DEDUPE_WINDOW_MS) }));
      expect(outside).toEqual({ kind: "created", claimed: null });
    });

    test("belongs to an account", async () => {
      await using db = await open();
      const accounts = [OTHER_ACCOUNT, ACCOUNT, `${OTHER_ACCOUNT}x`, ACCOUNT.toUpperCase()];
      for (const accountId of accounts) {
        expect(await db.actions.create(aCreation({ [member]: "k", accountId }))).toEqual({
          kind: "created",
          claimed: null,
        });
      }
      const holders = await Promise.all(accounts.map((account) => db.actions.holderOf(account, kind, "k", NOON)));
      expect(holders.map((holder) => holder?.accountId)).toEqual(accounts);
    });

    test("is told apart by every character", async () => {
      await using db = await open();
      const keys = ["k", "K", "k ", " k", "k'", 'k"', "k%", "k_", "k\\", "k$1", "k?"];
      const created = await Promise.all(keys.map((key) => db.actions.create(aCreation({ [member]: key }))));
      expect(created).toEqual(keys.map(() => ({ kind: "created", claimed: null })));
    });

    test("means an action of each status, a dedupe key all but a failed one", async () => {
      await using db = await open();
      for (const status of ACTION_STATUSES) {
        const action = await actionInStatus(db.actions, status, { [member]: status });
        const answers = kind === "idempotency" || status !== "failed";
        expect((await db.actions.holderOf(ACCOUNT, kind, status, NOON))?.id).toBe(answers ? action.id : undefined);
        const created = await db.actions.create(aCreation({ [member]: status }));
        expect(created).toEqual(answers ? { kind: "matched", by: kind, action } : { kind: "created", claimed: null });
      }
    });

    test("that nobody has used means nothing", async () => {
      await using db = await open();
      expect(await db.actions.holderOf(ACCOUNT, kind, "k", NOON)).toBeNull();
    });
  });

  describe("two keys", () => {
    test("on two actions: the idempotency key says which", async () => {
      await using db = await open();
      const [byDedupe, byIdempotency] = [anAction({ dedupe: "d" }), anAction({ idempotencyKey: "i" })];
      await db.actions.create(creationOf(byDedupe));
      await db.actions.create(creationOf(byIdempotency));
      const created = await db.actions.create(aCreation({ dedupe: "d", idempotencyKey: "i" }));
      expect(created).toMatchObject({ kind: "matched", by: "idempotency", action: { id: byIdempotency.id } });
    });

    test("do the same when all three come in one turn", async () => {
      await using db = await open();
      const [byDedupe, byIdempotency] = [aCreation({ dedupe: "d" }), aCreation({ idempotencyKey: "i" })];
      const both = aCreation({ dedupe: "d", idempotencyKey: "i" });
      const created = await Promise.all([byDedupe, byIdempotency, both].map((each) => db.actions.create(each)));
      expect(created[2]).toMatchObject({ kind: "matched", by: "idempotency", action: { id: byIdempotency.action.id } });
    });

    test("of one text are two keys", async () => {
      await using db = await open();
      await db.actions.create(aCreation({ dedupe: "k" }));
      expect(await db.actions.create(aCreation({ idempotencyKey: "k" }))).toEqual({ kind: "created", claimed: null });
      expect(await db.keyCount()).toBe(2);
    });

    test("are taken together or not at all", async () => {
      await using db = await open();
      await db.actions.create(aCreation({ idempotencyKey: "i" }));
      const matched = await db.actions.create(aCreation({ idempotencyKey: "i", dedupe: "free" }));
      expect(matched.kind).toBe("matched");
      expect(await db.actions.holderOf(ACCOUNT, "dedupe", "free", NOON)).toBeNull();
    });

    test("of a failed action: dedupe is free, idempotency still matches it", async () => {
      await using db = await open();
      const failed = await failedAction(db.actions, { dedupe: "d", idempotencyKey: "i" });
      const again = await db.actions.create(aCreation({ dedupe: "d", idempotencyKey: "i" }));
      expect(again).toMatchObject({ kind: "matched", by: "idempotency", action: { id: failed.id } });
      expect(await db.actions.create(aCreation({ dedupe: "d" }))).toEqual({ kind: "created", claimed: null });
    });
  });

  describe("an idempotency key whose create matched by dedupe", () => {
    const both = { dedupe: "d", idempotencyKey: "i" };

    test("means that action from then on, also when it has failed since and after a restart", async () => {
      await using db = await open();
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

    test("is remembered for 24 h from that create, whatever is created with it meanwhile", async () => {
      await using db = await open();
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

    test("keeps to the action that it means already, in its own account", async () => {
      await using db = await open();
      const [byKey, elsewhere] = [aCreation({ idempotencyKey: "i" }), aCreation({ ...both, accountId: OTHER_ACCOUNT })];
      await db.actions.create(byKey);
      await db.actions.create(aCreation({ dedupe: "d" }));
      expect(await db.actions.create(elsewhere)).toMatchObject({ kind: "created" });
      expect(await db.actions.create(aCreation(both))).toMatchObject({ action: { id: byKey.action.id } });
      expect((await db.actions.holderOf(ACCOUNT, "idempotency", "i", NOON))?.id).toBe(byKey.action.id);
    });

    test("means one action for a hundred racing creates while that action fails", async () => {
      await using db = await open();
      const held = await createdAction(db.actions, { dedupe: "d", retries: 1 });
      const failing = attempted(db.actions, held, answered(500));
      const created = await Promise.all(
        Array.from({ length: 100 }, async (_, at) => {
          await nextTurns(at % 9);
          const creation = aCreation(both);
          const answer = await db.actions.create(creation);
          return answer.kind === "matched" ? answer.action.id : creation.action.id;
        }),
      );
      await failing;
      expect(new Set(created).size).toBe(1);
      expect((await db.actions.holderOf(ACCOUNT, "idempotency", "i", NOON))?.id).toBe(created[0]);
    });
  });

  test("the dedupe key of a failed action goes to one of a hundred racing creates", async () => {
    await using db = await open();
    await failedAction(db.actions, { dedupe: "k" });
    const creations = Array.from({ length: 100 }, () => aCreation({ dedupe: "k" }));
    const created = await Promise.all(creations.map((creation) => db.actions.create(creation)));
    expectOneWinner(creations, created, "dedupe");
  });

  test("a create that matched leaves nothing behind", async () => {
    await using db = await open();
    const held = { approve: true, callback: "https://hooks.example.com/a", notifyEmail: "boss@example.com" };
    await db.actions.create(aCreation({ idempotencyKey: "i" }));
    const { action, ...rest } = aCreation({ idempotencyKey: "i", ...held });
    expect((await db.actions.create({ action, ...rest })).kind).toBe("matched");
    expect(await db.actions.find(ACCOUNT, action.id)).toBeNull();
    expect(await db.actions.timeline(ACCOUNT, action.id)).toEqual([]);
    expect(await db.outbox(action.id)).toEqual([]);
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
