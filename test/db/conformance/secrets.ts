import { describe, expect } from "bun:test";
import { systemIds } from "../../../src/core/ids.ts";
import type { SigningSeed, SealedText } from "../../../src/core/account-store.ts";
import type { Action } from "../../../src/core/action.ts";
import {
  ACCOUNT,
  aCreation,
  later,
  NOON,
  OTHER_ACCOUNT,
  aChannel,
  aCredential,
  anAccount,
  anArtifact,
  anAuditEntry,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import type { Store } from "../../../src/core/store.ts";
import { words } from "../../support/words.ts";

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

/** What signing secrets come from since a rotation, and sealed texts as a change of the key finds them. */
export function testSecrets(test: StoreTest): void {
  describe("signing seeds", () => {
    test("are none before a rotation, and then as they were written", async (db, { signing }) => {
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([]);
      const [seed, none] = [aSeed(), { origin: ORIGIN, use: "calls", id: null } as const];
      expect(await signing.rotate(seed, undefined, none)).toBe(true);
      // Shown before that rotation.
      expect(await signing.rotate(aSeed(), undefined, none)).toBe(false);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([seed]);
      await db.restart();
      expect(await db.store.signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([seed]);
    });

    test("of an origin and of all origins count alike: the two newest of both", async ({ store: { signing } }) => {
      const [first, all, second] = [aSeed(), aSeed({ origin: null, use: null }), aSeed({ rotatedAt: later(5) })];
      await signing.rotate(first);
      await signing.rotate(all);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([all, first]);
      expect(await signing.seeds(ACCOUNT, ELSEWHERE, "calls")).toEqual([all]);
      await signing.rotate(second);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([second, all]);
      expect(await signing.seeds(ACCOUNT, ELSEWHERE, "calls")).toEqual([all]);
    });

    test("of calls and of callbacks are apart, but for a rotation of everything", async ({ store: { signing } }) => {
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

    test("are those of the account alone", async ({ store: { signing } }) => {
      await signing.rotate(aSeed({ accountId: OTHER_ACCOUNT }));
      await signing.rotate(aSeed({ accountId: OTHER_ACCOUNT, origin: null, use: null }));
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([]);
    });

    test("are in the order of the rotations, also when the clock was set back between them", async (db) => {
      const { signing } = db.store;
      const [before, after] = [aSeed({ rotatedAt: later(1_000_000) }), aSeed({ rotatedAt: NOON })];
      await signing.rotate(before);
      await signing.rotate(after);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual([after, before]);
    });

    test("are forgotten when two newer ones have put them out of use, and nobody else's with them", async (db) => {
      const { signing } = db.store;
      const [other, all] = [aSeed({ origin: ELSEWHERE }), aSeed({ origin: null, use: null })];
      for (const seed of [other, all]) await signing.rotate(seed);
      const mine = Array.from({ length: 5 }, () => aSeed());
      for (const seed of mine) await signing.rotate(seed);
      expect(await signing.seeds(ACCOUNT, ORIGIN, "calls")).toEqual(mine.slice(3).toReversed());
      expect(await signing.seeds(ACCOUNT, ELSEWHERE, "calls")).toEqual([all, other]);
      expect(await db.count("signing_seeds")).toBe(4);
    });

    test("are listed by origin with where calls and callbacks went, each host name by its newest action", async (db) => {
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
  });

  describe("sealed texts", () => {
    test("are found wherever they stand, each once, whatever the size of a page", async (db) => {
      expect(await db.store.sealed.find(OTHER, null, 9)).toEqual([]);
      await fill(db.store, 7);
      const whole = await sealedTexts(db.store, OTHER, 1_000);
      const columns = whole.map(({ place }) => `${place.table}.${place.column}`);
      expect(new Set(columns)).toEqual(
        new Set(
          words(`accounts.sealed_root_secret signing_seeds.sealed_seed actions.sealed_headers
            channels.sealed_config credentials.sealed_secret oauth_artifacts.sealed_payload`),
        ),
      );
      expect(whole).toHaveLength(1 + 2 + 7 + 1 + 1 + 1);
      for (const size of [1, 2, 3, 9, 11]) expect(await sealedTexts(db.store, OTHER, size)).toEqual(whole);
    });

    test("are every column that is called so", async (db) => {
      await fill(db.store, 1);
      const found = new Set(
        (await sealedTexts(db.store, OTHER, 99)).map(({ place }) => `${place.table}.${place.column}`),
      );
      expect([...found].toSorted()).toEqual([...(await db.columns("sealed%"))]);
    });

    test("of one key are not found under that key", async (db) => {
      await fill(db.store, 3);
      expect(await sealedTexts(db.store, "aaaaaaaa", 99)).toHaveLength(2 + 3 + 3);
      const header = (await sealedTexts(db.store, "bbbbbbbb", 99)).find(({ place }) => place.table === "actions");
      expect(await sealedTexts(db.store, header?.sealed.slice(0, 8) ?? "", 99)).toHaveLength(1 + 4);
    });

    test("are replaced where they still stand, and nowhere else", async (db) => {
      await fill(db.store, 2);
      const before = await sealedTexts(db.store, OTHER, 99);
      const stale = { ...before[0], place: before[0]?.place ?? { table: "", row: "", column: "" }, sealed: "another" };
      await db.store.sealed.replace([
        ...before.slice(1).map((text, n) => ({ ...text, by: `${OTHER}.${n}` })),
        { ...stale, by: `${OTHER}.stale` },
      ]);
      expect(await sealedTexts(db.store, OTHER, 99)).toEqual(before.slice(0, 1));
      await db.restart();
      const after = await sealedTexts(db.store, "zzzzzzzz", 99);
      expect(after.map(({ place }) => place)).toEqual(before.map(({ place }) => place));
      expect(after.map(({ sealed }) => sealed).slice(1)).toEqual(before.slice(1).map((_, n) => `${OTHER}.${n}`));
    });

    test("in a place that holds none are refused, and none of the others is written", async (db) => {
      await fill(db.store, 1);
      const [text] = await sealedTexts(db.store, OTHER, 1);
      const place = { table: "actions", row: "act_1", column: "body" };
      const replaced = db.store.sealed.replace([
        { place: text?.place ?? place, sealed: text?.sealed ?? "", by: "x" },
        { place, sealed: "", by: "x" },
      ]);
      expect(await replaced.then(Boolean, () => "refused")).toBe("refused");
      expect((await sealedTexts(db.store, OTHER, 1))[0]).toEqual(text);
    });
  });
}

const OTHER = "00000000";

/** One sealed text of each kind and more of the most frequent; an action without headers has none. */
async function fill(store: Store, headers: number): Promise<void> {
  const account = anAccount({ sealedRootSecret: "aaaaaaaa.root" });
  await store.accounts.create(account, []);
  for (const origin of ["https://a.example", null]) {
    const seed = {
      id: systemIds.row(NOON),
      accountId: account.id,
      origin,
      use: origin === null ? null : ("calls" as const),
      sealedSeed: "bbbbbbbb.seed",
      rotatedAt: NOON,
    };
    await store.signing.rotate(seed);
  }
  for (let n = 0; n < headers; n += 1) await store.actions.create(aCreation({ headers: { "X-N": String(n) } }));
  await store.actions.create(aCreation());
  const channel = aChannel();
  await store.channels.put(channel, anAuditEntry({ kind: "channel_added", subject: channel.id }));
  const credential = aCredential();
  await store.credentials.add(credential, anAuditEntry({ kind: "credential_added", subject: credential.id }));
  await store.oauth.put(anArtifact({ kind: "Interaction", sealedPayload: "cccccccc.payload" }));
}

async function sealedTexts(store: Store, keyId: string, pageSize: number): Promise<readonly SealedText[]> {
  const found: SealedText[] = [];
  for (;;) {
    const page = await store.sealed.find(keyId, found.at(-1)?.place ?? null, pageSize);
    found.push(...page);
    if (page.length === 0) return found;
  }
}
