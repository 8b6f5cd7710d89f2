import { describe, expect, test } from "bun:test";
import { systemIds } from "../../../src/core/ids.ts";
import type { SigningSeed } from "../../../src/core/account-store.ts";
import type { Action } from "../../../src/core/action.ts";
import { ACCOUNT, aCreation, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";

const ORIGIN = "https://api.example.com";

const ELSEWHERE = "https://api.example.com:8443";

function aSeed(overrides: Partial<SigningSeed> = {}): SigningSeed {
  const id = systemIds.row(NOON);
  return {
    id,
    accountId: ACCOUNT,
    origin: ORIGIN,
    use: "calls",
    sealedSeed: `sealed ${id}`,
    rotatedAt: NOON,
    ...overrides,
  };
}

/** What signing secrets come from since a rotation. */
export function testSigning(open: OpenTestStore): void {
  describe("signing seeds", () => {
    test("are none before a rotation, and then as they were written", async () => {
      await using db = await open();
      const { signing } = db.store;
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([]);
      const seed = aSeed();
      await signing.rotate(seed);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([seed]);
      await db.restart();
      expect(await db.store.signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([seed]);
    });

    test("of an origin and of all origins count alike: the two newest of both", async () => {
      await using db = await open();
      const { signing } = db.store;
      const [first, all, second] = [aSeed(), aSeed({ origin: null, use: null }), aSeed({ rotatedAt: later(5) })];
      await signing.rotate(first);
      await signing.rotate(all);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([all, first]);
      expect(await signing.seeds(ACCOUNT, ELSEWHERE, "calls")).toEqual([all]);
      await signing.rotate(second);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([second, all]);
      expect(await signing.seeds(ACCOUNT, ELSEWHERE, "calls")).toEqual([all]);
    });

    test("of calls and of callbacks are apart, but for a rotation of everything", async () => {
      await using db = await open();
      const { signing } = db.store;
      const seeds = {
        calls: aSeed(),
        callbacks: aSeed({ use: "callbacks" }),
        allCallbacks: aSeed({ origin: null, use: "callbacks" }),
        allCalls: aSeed({ origin: null, use: "calls" }),
        everything: aSeed({ origin: null, use: null }),
      };
      await signing.rotate(seeds.calls);
      await signing.rotate(seeds.callbacks);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([seeds.calls]);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "callbacks")).toEqual([seeds.callbacks]);
      await signing.rotate(seeds.allCallbacks);
      await signing.rotate(seeds.allCalls);
      expect(await signing.seeds(ACCOUNT, ELSEWHERE, "calls")).toEqual([seeds.allCalls]);
      expect(await signing.seeds(ACCOUNT, ELSEWHERE, "callbacks")).toEqual([seeds.allCallbacks]);
      await signing.rotate(seeds.everything);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([seeds.everything, seeds.allCalls]);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "callbacks")).toEqual([seeds.everything, seeds.allCallbacks]);
      expect(await signing.callbackOverlap(ACCOUNT, ORIGIN)).toBeNull();
    });

    test("are those of the account alone", async () => {
      await using db = await open();
      const { signing } = db.store;
      await signing.rotate(aSeed({ accountId: OTHER_ACCOUNT }));
      await signing.rotate(aSeed({ accountId: OTHER_ACCOUNT, origin: null, use: null }));
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([]);
    });

    test("are in the order of the rotations, also when the clock was set back between them", async () => {
      await using db = await open();
      const { signing } = db.store;
      const [before, after] = [aSeed({ rotatedAt: later(1_000_000) }), aSeed({ rotatedAt: NOON })];
      await signing.rotate(before);
      await signing.rotate(after);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([after, before]);
    });

    test("are forgotten when two newer ones have put them out of use, and nobody else's with them", async () => {
      await using db = await open();
      const { signing } = db.store;
      const [other, all] = [aSeed({ origin: ELSEWHERE }), aSeed({ origin: null, use: null })];
      for (const seed of [other, all]) await signing.rotate(seed);
      const mine = Array.from({ length: 5 }, () => aSeed());
      for (const seed of mine) await signing.rotate(seed);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual(mine.slice(3).toReversed());
      expect(await signing.seeds(ACCOUNT, ELSEWHERE, "calls")).toEqual([all, other]);
      expect(await db.count("signing_seeds")).toBe(4);
    });

    test("are listed by origin with where calls and callbacks went, each host name by its newest action", async () => {
      await using db = await open();
      const call = (url: string, ms: number, more: Partial<Action> = {}) => {
        const { hostname, host } = new URL(url);
        const at = later(ms);
        return db.actions.create(aCreation({ url, hostname, host, createdAt: at, dueAt: at, ...more }));
      };
      await call("http://b.example/x", 1);
      await call("https://b.example:8443/y", 2);
      await call("https://a.example/", 3, {
        approve: true,
        status: "awaiting_approval",
        callback: "https://hooks.example/1",
      });
      await call("https://a.example/2", 4);
      await call("https://c.example/", 5, { accountId: OTHER_ACCOUNT });
      for (const seed of [aSeed(), aSeed({ rotatedAt: later(9) }), aSeed({ origin: null, use: null })]) {
        await db.store.signing.rotate(seed);
      }
      const { calls, callbacks, rotations } = await db.store.signing.origins(ACCOUNT);
      expect(calls.toSorted((one, other) => one.origin.localeCompare(other.origin))).toEqual([
        { origin: "https://a.example", lastUsedAt: later(4) },
        { origin: "https://b.example:8443", lastUsedAt: later(2) },
      ]);
      expect(callbacks).toEqual([{ origin: "https://hooks.example", lastUsedAt: later(3) }]);
      expect(rotations).toHaveLength(2);
      expect(rotations).toContainEqual({ origin: ORIGIN, use: "calls", rotatedAt: later(9) });
      expect(rotations).toContainEqual({ origin: null, use: null, rotatedAt: NOON });
      expect(await db.store.signing.origins("acc_nobody")).toEqual({ calls: [], callbacks: [], rotations: [] });
    });

    test("of rotations at the same time are all written, one after the other", async () => {
      await using db = await open();
      const { signing } = db.store;
      const seeds = Array.from({ length: 20 }, () => aSeed());
      await Promise.all(seeds.map((seed) => signing.rotate(seed)));
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual(seeds.slice(18).toReversed());
    });
  });
}
