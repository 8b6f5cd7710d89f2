import { describe, expect } from "bun:test";
import type { Action } from "../../../src/core/action.ts";
import { approve, cancel, retry } from "../../../src/core/changes.ts";
import {
  REPEATS_PER_REJECTION_MAX,
  EARLIER_REJECTIONS_SHOWN_MAX,
  REJECTION_WINDOW_MS,
  SIMILAR_REJECTIONS_COUNTED_MAX,
} from "../../../src/core/limits.ts";
import type { RejectionEntry } from "../../../src/core/rejections.ts";
import type { Store } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aDecision,
  anAction,
  anApiKey,
  creationOf,
  KEY,
  later,
  NOON,
  writeOf,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { stored } from "./steps.ts";

const REQUEST = { accountId: ACCOUNT, keyId: KEY, digest: "d" };

const anEntry = (overrides: Partial<RejectionEntry> = {}): RejectionEntry => ({
  kind: "asked",
  digest: "d",
  similar: "s",
  by: "key:ci",
  reason: "why",
  ...overrides,
});

/** `note` null: by somebody whom rejections do not bind. */
async function ask(
  { actions }: Store,
  at: Date,
  rejection: Partial<RejectionEntry> | null = {},
  action: Partial<Action> = {},
) {
  const asked = anAction({ approve: true, createdAt: at, ...action });
  return {
    asked,
    created: await actions.create({ ...creationOf(asked), rejection: rejection === null ? null : anEntry(rejection) }),
  };
}

async function reject({ actions }: Store, action: Action, at: Date, reason: string | null = "no"): Promise<boolean> {
  const change = cancel(await stored(actions, action), aDecision(at, reason));
  return actions.apply({ ...writeOf(change, at), rejection: anEntry({ kind: "rejected", by: "key:boss", reason }) });
}

async function again({ actions }: Store, action: Action, at: Date, rejection: Partial<RejectionEntry> = {}) {
  const change = retry(await stored(actions, action), aDecision(at, "why"));
  return actions.apply({ ...writeOf(change, at), rejection: anEntry(rejection) });
}

/** A request that was asked for at noon and rejected a second later. */
async function rejected(store: Store): Promise<Action> {
  const { asked } = await ask(store, NOON);
  expect(await reject(store, asked, later(1_000))).toBe(true);
  return asked;
}

/** What people have rejected, and how often it was asked for again. */
export function testRejections(test: StoreTest): void {
  describe("a request that was rejected", () => {
    test("counts as similar for others of its key, up to a bound and for a day, also when the key is replaced", async (db) => {
      const { rejections, accounts } = db.store;
      await Promise.all(
        Array.from({ length: SIMILAR_REJECTIONS_COUNTED_MAX + 1 }, async (_, n) => {
          const { asked } = await ask(db.store, NOON, { digest: `d${n}` });
          const change = cancel(await stored(db.store.actions, asked), aDecision(later(n), "no"));
          const rejection = anEntry({ kind: "rejected", digest: `d${n}`, similar: n < 3 ? "few" : "s" });
          expect(await db.store.actions.apply({ ...writeOf(change, later(n)), rejection })).toBe(true);
        }),
      );
      const now = later(1_000);
      const count = (similar: string, digest: string, at = now, keyId = KEY) =>
        rejections.similar({ accountId: ACCOUNT, keyId, digest, similar }, at);
      expect(await count("few", "other")).toBe(3);
      // The identical one is told by itself.
      expect(await count("few", "d1")).toBe(2);
      expect(await count("s", "other")).toBe(SIMILAR_REJECTIONS_COUNTED_MAX - 2);
      expect([await count("", "other"), await count("few", "other", now, "key_other")]).toEqual([0, 0]);
      expect(await count("few", "other", later(REJECTION_WINDOW_MS + 1))).toBe(1);
      await accounts.addKey(anApiKey({ id: "key_next", replaces: KEY, createdAt: now }));
      expect(await count("few", "other", now, "key_next")).toBe(3);
    });

    test("is asked for again twice at most, by creates and retries that race, and a restart forgets nothing", async (db) => {
      const first = await rejected(db.store);
      const race = Array.from({ length: 20 }, (_, n) =>
        n % 2 === 0
          ? ask(db.store, later(2_000)).then(({ created }) => created.kind === "created")
          : again(db.store, first, later(2_000)),
      );
      expect((await Promise.all(race)).filter(Boolean)).toHaveLength(REPEATS_PER_REJECTION_MAX);
      await db.restart();
      expect(await db.store.rejections.count(REQUEST, later(3_000))).toEqual({
        rejectedAt: later(1_000),
        repeatedAt: [later(2_000), later(2_000)],
        fullSince: null,
      });
      const { created } = await ask(db.store, later(4_000));
      expect(created).toMatchObject({
        kind: "rejected_before",
        rejections: { rejectedAt: later(1_000), repeatedAt: [later(2_000), later(2_000)] },
      });
    });

    test("is not asked for again without a reason, and then nothing of it is written", async (db) => {
      const first = await rejected(db.store);
      for (const reason of [null, "", " \n"]) {
        const { asked, created } = await ask(db.store, later(2_000), { reason });
        expect(created).toMatchObject({
          kind: "rejected_before",
          rejections: { rejectedAt: later(1_000), repeatedAt: [] },
        });
        expect(await db.actions.find(ACCOUNT, asked.id)).toBeNull();
        expect(await again(db.store, first, later(2_000), { reason })).toBe(false);
      }
      expect((await stored(db.actions, first)).run).toBe(1);
      expect((await db.store.rejections.count(REQUEST, later(3_000))).repeatedAt).toEqual([]);
    });

    test("counts until 24 hours are over, to the millisecond, and is forgotten then", async (db) => {
      await rejected(db.store);
      const end = 1_000 + REJECTION_WINDOW_MS;
      expect((await ask(db.store, later(end - 1), { reason: null })).created.kind).toBe("rejected_before");
      expect((await ask(db.store, later(end), { reason: null })).created.kind).toBe("created");
      await db.store.rejections.prune(later(end - 1));
      expect(await db.count("rejections")).toBe(1);
      expect(await db.store.rejections.prune(later(end))).toBe(false);
      expect(await db.count("rejections")).toBe(0);
    });

    test("counts by account, key and request, and not for whoever may approve", async (db) => {
      await rejected(db.store);
      const at = later(2_000);
      expect((await ask(db.store, at, { reason: null, digest: "e" })).created.kind).toBe("created");
      expect((await ask(db.store, at, { reason: null }, { keyId: "key_two" })).created.kind).toBe("created");
      expect((await ask(db.store, at, { reason: null }, { accountId: "acc_two" })).created.kind).toBe("created");
      expect((await ask(db.store, at, null)).created.kind).toBe("created");
      expect((await db.store.rejections.count(REQUEST, at)).repeatedAt).toEqual([]);
    });

    test("counts no more once it was approved", async (db) => {
      await rejected(db.store);
      const { asked } = await ask(db.store, later(2_000));
      const change = approve(await stored(db.actions, asked), aDecision(later(3_000)));
      expect(
        await db.actions.apply({ ...writeOf(change, later(3_000)), rejection: anEntry({ kind: "approved" }) }),
      ).toBe(true);
      expect(await db.count("rejections")).toBe(0);
      expect((await ask(db.store, later(4_000), { reason: null })).created.kind).toBe("created");
    });

    test("finds the older action by its key as ever: that is no new question", async (db) => {
      const { asked } = await ask(db.store, NOON, {}, { idempotencyKey: "i", dedupe: "d" });
      await reject(db.store, asked, later(1_000));
      for (const keys of [{ idempotencyKey: "i" }, { dedupe: "d" }]) {
        const { created } = await ask(db.store, later(2_000), { reason: null }, keys);
        expect(created).toMatchObject({ kind: "matched", action: { id: asked.id } });
      }
      expect((await db.store.rejections.count(REQUEST, later(3_000))).repeatedAt).toEqual([]);
    });

    test("tells what was said before, oldest first, and why it is asked for now", async (db) => {
      const first = await rejected(db.store);
      await again(db.store, first, later(2_000), { reason: "first" });
      await reject(db.store, first, later(3_000), null);
      const held = anAction({ approve: true, createdAt: later(4_000) });
      const creation = creationOf(held);
      const [created, ...rest] = creation.events;
      const told =
        created === undefined ? [] : [{ type: "created", actor: "key:ci", reason: "second" } as const, ...rest];
      await db.actions.create({ ...creation, events: told, rejection: anEntry({ reason: "second" }) });
      expect(await db.store.rejections.earlier(held, "d", later(5_000))).toEqual({
        reason: "second",
        rejections: [
          { kind: "rejected", at: later(1_000), by: "key:boss", reason: "no" },
          { kind: "asked", at: later(2_000), by: "key:ci", reason: "first" },
          { kind: "rejected", at: later(3_000), by: "key:boss", reason: null },
        ],
      });
      // Of another request only why it is asked for.
      expect(await db.store.rejections.earlier(held, "e", later(5_000))).toEqual({ reason: "second", rejections: [] });
    });

    test("tells the newest of what was said, and no more", async (db) => {
      for (let n = 0; n < EARLIER_REJECTIONS_SHOWN_MAX + 3; n += 1) {
        const { asked } = await ask(db.store, later(n * 10), null);
        await reject(db.store, asked, later(n * 10 + 1), `${n}`);
      }
      const { asked } = await ask(db.store, later(500), null);
      const { rejections } = await db.store.rejections.earlier(asked, "d", later(500));
      expect(rejections.map(({ reason }) => reason)).toEqual(["3", "4", "5", "6", "7", "8", "9", "10", "11", "12"]);
    });
  });
}
