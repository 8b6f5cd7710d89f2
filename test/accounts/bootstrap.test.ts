import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import { bootstrap } from "../../src/accounts/bootstrap.ts";
import { createRootSecretOf } from "../../src/accounts/root-secret.ts";
import { systemIds } from "../../src/ids.ts";
import type { Store } from "../../src/ports/store.ts";
import { isWellFormedApiKey } from "../../src/secrets/api-keys.ts";
import { verifies } from "../spec/verifies.ts";
import { FakeClock } from "../support/clock.ts";
import { NOON } from "../support/factory.ts";
import { openFileStore, openStoreAt, temporaryFolder, testSecrets } from "../support/store.ts";

const clock = new FakeClock(NOON);

const start = ({ accounts, people }: Store, givenOwnerKey: string | null = null) =>
  bootstrap({ accounts, people, secrets: testSecrets, ids: systemIds, clock, givenOwnerKey });

/** Whose key it is, or null for nobody's. */
async function holderOf({ accounts }: Store, key: string) {
  const authenticate = createAuthenticate({ accounts, secrets: testSecrets, clock });
  const { accountId, role, keyName, hold } = await authenticate(`Bearer ${key}`);
  return { accountId, role, keyName, hold };
}

describe("the first start", () => {
  test("makes an account with an owner key and an agent key, shown once", async () => {
    verifies("decision.0.key-prefix", "spec.convention.prefixed-ids");
    await using db = await openFileStore();
    const keys = await start(db.store);
    const account = await db.store.accounts.first();
    expect(account).toMatchObject({ id: expect.stringMatching(/^acc_[0-9a-z]+$/) });
    expect(account?.createdAt).toEqual(NOON);
    const accountId = account?.id ?? "";
    expect(keys).toEqual({
      ownerKey: expect.any(String),
      agentKey: expect.any(String),
      welcomeToken: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    for (const key of [keys?.ownerKey ?? "", keys?.agentKey ?? ""]) {
      expect(key).toMatch(/^og_[0-9A-Za-z]{36}$/);
      expect(isWellFormedApiKey(key)).toBe(true);
    }
    expect(await holderOf(db.store, keys?.ownerKey ?? "")).toEqual({
      accountId,
      role: "owner",
      keyName: "owner",
      hold: "none",
    });
    expect(await holderOf(db.store, keys?.agentKey ?? "")).toEqual({
      accountId,
      role: "agent",
      keyName: "agent",
      hold: "none",
    });
  });

  test("gives the account a root secret that only the master key opens", async () => {
    await using db = await openFileStore();
    await start(db.store);
    const account = await db.store.accounts.first();
    const rootSecretOf = createRootSecretOf(db.store.accounts, (_accountId, sealed, place) =>
      testSecrets.open(sealed, place),
    );
    expect(await rootSecretOf(account?.id ?? "")).toHaveLength(32);
    const error: unknown = await rootSecretOf("acc_none").catch((thrown: unknown) => thrown);
    expect(error).toEqual(new Error("Account acc_none has no row."));
  });

  test("takes an owner key as it is given", async () => {
    verifies("decision.10.bootstrap-api-key");
    await using db = await openFileStore();
    const given = "a key of ours: no checksum".replaceAll(" ", "_");
    expect(await start(db.store, given)).toMatchObject({ ownerKey: null });
    expect(await holderOf(db.store, given)).toMatchObject({ role: "owner", keyName: "owner" });
  });

  test("leaves no key in the files, only what it is known by", async () => {
    verifies("hostile.6.keys-hashed");
    await using folder = await temporaryFolder();
    const store = await openStoreAt(join(folder.path, "outgate.db"));
    const keys = await start(store);
    await store.close();
    const bytes = readdirSync(folder.path).map((file) => readFileSync(join(folder.path, file)));
    const isThere = (text: string) => bytes.some((content) => content.includes(text));
    for (const key of [keys?.ownerKey ?? "", keys?.agentKey ?? ""]) {
      expect(isThere(testSecrets.hash(key))).toBe(true);
      // Four characters are kept to tell keys by; five would already be a part of the secret.
      expect(isThere(key.slice(0, -4))).toBe(false);
      expect(isThere(key.slice(3, 12))).toBe(false);
    }
  });
});

describe("a later start", () => {
  test("makes nothing and shows nothing", async () => {
    await using db = await openFileStore();
    const keys = await start(db.store);
    const account = await db.store.accounts.first();
    expect(await start(db.store)).toBeNull();
    expect(await start(db.store)).toBeNull();
    expect(await db.store.accounts.first()).toEqual(account);
    expect(await holderOf(db.store, keys?.ownerKey ?? "")).toMatchObject({ role: "owner" });
  });

  test("adds an owner key that it did not know, and the old ones go on", async () => {
    verifies("decision.10.bootstrap-api-key");
    await using db = await openFileStore();
    const keys = await start(db.store);
    const account = await db.store.accounts.first();
    const given = testSecrets.newApiKey();
    expect(await start(db.store, given)).toBeNull();
    expect(await holderOf(db.store, given)).toMatchObject({ accountId: account?.id ?? "", role: "owner" });
    expect(await holderOf(db.store, keys?.ownerKey ?? "")).toMatchObject({ role: "owner" });
  });

  test("with the key that it knows adds nothing", async () => {
    await using db = await openFileStore();
    const given = testSecrets.newApiKey();
    await start(db.store, given);
    const before = await db.store.accounts.keyByHash(testSecrets.hash(given));
    let added = 0;
    const accounts = { ...db.store.accounts, addKey: async () => void (added += 1) };
    expect(await start({ ...db.store, accounts }, given)).toBeNull();
    expect(added).toBe(0);
    expect(await db.store.accounts.keyByHash(testSecrets.hash(given))).toEqual(before);
  });
});
