import { describe, expect, test } from "bun:test";
import { systemIds } from "../../../src/core/ids.ts";
import type { SealedText } from "../../../src/core/account-store.ts";
import type { Store } from "../../../src/core/store.ts";
import { aChannel, aCreation, aCredential, anAccount, anArtifact, anAuditEntry, NOON } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";

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

async function all(store: Store, keyId: string, pageSize: number): Promise<readonly SealedText[]> {
  const found: SealedText[] = [];
  for (;;) {
    const page = await store.sealed.find(keyId, found.at(-1)?.place ?? null, pageSize);
    found.push(...page);
    if (page.length === 0) return found;
  }
}

/** Sealed texts as a change of the key finds and replaces them. */
export function testSealed(open: OpenTestStore): void {
  describe("sealed texts", () => {
    test("are found wherever they stand, each once, whatever the size of a page", async () => {
      await using db = await open();
      expect(await db.store.sealed.find(OTHER, null, 9)).toEqual([]);
      await fill(db.store, 7);
      const whole = await all(db.store, OTHER, 1_000);
      const columns = whole.map(({ place }) => `${place.table}.${place.column}`);
      expect(new Set(columns)).toEqual(
        new Set([
          "accounts.sealed_root_secret",
          "signing_seeds.sealed_seed",
          "actions.sealed_headers",
          "channels.sealed_config",
          "credentials.sealed_secret",
          "oauth_artifacts.sealed_payload",
        ]),
      );
      expect(whole).toHaveLength(1 + 2 + 7 + 1 + 1 + 1);
      for (const size of [1, 2, 3, 9, 11]) expect(await all(db.store, OTHER, size)).toEqual(whole);
    });

    test("are every column that is called so", async () => {
      await using db = await open();
      await fill(db.store, 1);
      const found = new Set((await all(db.store, OTHER, 99)).map(({ place }) => `${place.table}.${place.column}`));
      expect([...found].toSorted()).toEqual([...(await db.columns("sealed%"))]);
    });

    test("of one key are not found under that key", async () => {
      await using db = await open();
      await fill(db.store, 3);
      expect(await all(db.store, "aaaaaaaa", 99)).toHaveLength(2 + 3 + 3);
      const header = (await all(db.store, "bbbbbbbb", 99)).find(({ place }) => place.table === "actions");
      expect(await all(db.store, header?.sealed.slice(0, 8) ?? "", 99)).toHaveLength(1 + 4);
    });

    test("are replaced where they still stand, and nowhere else", async () => {
      await using db = await open();
      await fill(db.store, 2);
      const before = await all(db.store, OTHER, 99);
      const stale = { ...before[0], place: before[0]?.place ?? { table: "", row: "", column: "" }, sealed: "another" };
      await db.store.sealed.replace([
        ...before.slice(1).map((text, n) => ({ ...text, by: `${OTHER}.${n}` })),
        { ...stale, by: `${OTHER}.stale` },
      ]);
      expect(await all(db.store, OTHER, 99)).toEqual(before.slice(0, 1));
      await db.restart();
      const after = await all(db.store, "zzzzzzzz", 99);
      expect(after.map(({ place }) => place)).toEqual(before.map(({ place }) => place));
      expect(after.map(({ sealed }) => sealed).slice(1)).toEqual(before.slice(1).map((_, n) => `${OTHER}.${n}`));
    });

    test("in a place that holds none are refused, and none of the others is written", async () => {
      await using db = await open();
      await fill(db.store, 1);
      const [text] = await all(db.store, OTHER, 1);
      const place = { table: "actions", row: "act_1", column: "body" };
      const replaced = db.store.sealed.replace([
        { place: text?.place ?? place, sealed: text?.sealed ?? "", by: "x" },
        { place, sealed: "", by: "x" },
      ]);
      expect(await replaced.then(Boolean, () => "refused")).toBe("refused");
      expect((await all(db.store, OTHER, 1))[0]).toEqual(text);
    });
  });
}
