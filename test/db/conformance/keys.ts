import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES } from "../../../src/domain/action.ts";
import { answersFor, isInWindow, type KeyKind } from "../../../src/domain/dedupe.ts";
import { DEDUPE_WINDOW_MS } from "../../../src/domain/limits.ts";
import type { Created, Creation } from "../../../src/ports/store.ts";
import { verifies } from "../../spec/verifies.ts";
import { ACCOUNT, aCreation, anAction, creationOf, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";
import { actionInStatus, failedAction, nextTurns } from "./steps.ts";

const KINDS: readonly (readonly [kind: KeyKind, member: "idempotencyKey" | "dedupe"])[] = [
  ["idempotency", "idempotencyKey"],
  ["dedupe", "dedupe"],
];

/** Which action a repeated create means (spec "Deduplication rules", decisions 3). */
export function testKeys(open: OpenTestStore): void {
  describe.each(KINDS)("the %s key", (kind, member) => {
    test("makes one action of a hundred racing creates in one turn", async () => {
      verifies("spec.service.deduplicate", "spec.dedupe.no-new-action");
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
      verifies("decision.3.window", "spec.dedupe.window", "spec.idempotency.window", "spec.limit.dedupe-window");
      await using db = await open();
      const first = aCreation({ [member]: "k" });
      await db.actions.create(first);
      const inside = await db.actions.create(aCreation({ [member]: "k", createdAt: later(DEDUPE_WINDOW_MS - 1) }));
      expect(inside).toMatchObject({ kind: "matched", by: kind, action: { id: first.action.id } });
      const outside = await db.actions.create(aCreation({ [member]: "k", createdAt: later(DEDUPE_WINDOW_MS) }));
      expect(outside).toEqual({ kind: "created", claimed: null });
    });

    test("belongs to an account", async () => {
      verifies("spec.account.dedupe-scope", "spec.dedupe.scope", "spec.idempotency.scope");
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

    test("means an action of each status as the law says", async () => {
      verifies("decision.3.idempotency-first", "decision.3.dedupe-ignores-failed", "spec.dedupe.ignores-failed");
      await using db = await open();
      for (const status of ACTION_STATUSES) {
        const action = await actionInStatus(db.actions, status, { [member]: status });
        const answers = answersFor(kind, status) && isInWindow(NOON, NOON);
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
      verifies("decision.3.idempotency-first");
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

  test("the dedupe key of a failed action goes to one of a hundred racing creates", async () => {
    verifies("decision.3.dedupe-ignores-failed");
    await using db = await open();
    await failedAction(db.actions, { dedupe: "k" });
    const creations = Array.from({ length: 100 }, () => aCreation({ dedupe: "k" }));
    const created = await Promise.all(creations.map((creation) => db.actions.create(creation)));
    expectOneWinner(creations, created, "dedupe");
  });

  test("a create that matched leaves nothing behind", async () => {
    verifies("spec.dedupe.no-new-action");
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
