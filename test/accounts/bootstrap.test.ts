import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import { bootstrap, forgetFirstKeys } from "../../src/accounts/bootstrap.ts";
import { createSigningService } from "../../src/accounts/signing-secrets.ts";
import { systemIds } from "../../src/core/ids.ts";
import type { Store } from "../../src/core/store.ts";
import { isWellFormedApiKey } from "../support/api-key.ts";
import { FakeClock } from "../support/clock.ts";
import { anAuditQuery, NOON } from "../support/factory.ts";
import { createLog } from "../../src/observability/log.ts";
import { openFileStore, openStoreAt, temporaryFolder, testSecrets } from "../support/store.ts";

const clock = new FakeClock(NOON);

const log = createLog(() => {}, clock, "error");

const start = ({ accounts, people, facts }: Store, givenOwnerKey: string | null = null) =>
  bootstrap({ accounts, people, facts, secrets: testSecrets, ids: systemIds, clock, givenOwnerKey });

/** A start that shows what it made, as the service does. */
const shown = async (store: Store, givenOwnerKey: string | null = null) => {
  const keys = await start(store, givenOwnerKey);
  await forgetFirstKeys(store.facts);
  return keys;
};

/** Whose key it is, or null for nobody's. */
async function keyHolder({ accounts }: Store, key: string) {
  const authenticate = createAuthenticate(
    { store: { accounts }, clock },
    { isStopped: () => false, secrets: testSecrets },
  );
  const { accountId, role, keyName, hold } = await authenticate(`Bearer ${key}`);
  return { accountId, role, keyName, hold };
}

describe("the first start", () => {
  test("makes an account with an owner key and an agent key, the same ones on two nodes at once", async () => {
    await using db = await openFileStore();
    const [keys, other] = await Promise.all([start(db.store), start(db.store)]);
    expect(other).toEqual(keys);
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
    expect(await keyHolder(db.store, keys?.ownerKey ?? "")).toEqual({
      accountId,
      role: "owner",
      keyName: "owner",
      hold: "none",
    });
    expect(await keyHolder(db.store, keys?.agentKey ?? "")).toEqual({
      accountId,
      role: "agent",
      keyName: "agent",
      hold: "none",
    });
  });

  test("is in the audit log with both keys", async () => {
    await using db = await openFileStore();
    await start(db.store);
    const { accounts, audit } = db.store;
    const accountId = (await accounts.first())?.id ?? "";
    const { rows } = await audit.page(anAuditQuery({ accountId }));
    const keys = await accounts.keys(accountId, 9);
    expect(rows).toHaveLength(2);
    expect(new Set(rows.map(({ subject }) => subject))).toEqual(new Set(keys.map(({ id }) => id)));
    for (const row of rows)
      expect(row).toMatchObject({ kind: "key_created", actor: "system", detail: { via: "system" } });
  });

  test("gives the account a root secret that only the master key opens", async () => {
    await using db = await openFileStore();
    await start(db.store);
    const account = await db.store.accounts.first();
    const { id = "", sealedRootSecret = "" } = account ?? {};
    const place = { table: "accounts", row: id, column: "sealed_root_secret" };
    expect(testSecrets.open(sealedRootSecret, place)).toHaveLength(32);
    const app = { store: db.store, log, clock, ids: systemIds };
    const { find } = createSigningService(app, testSecrets, 0);
    const error: unknown = await find("acc_none", "https://a.example", NOON, "calls").catch(
      (thrown: unknown) => thrown,
    );
    expect(error).toEqual(new Error("Account acc_none has no row."));
  });

  test("takes an owner key as it is given", async () => {
    await using db = await openFileStore();
    const given = "a key of ours: no checksum".replaceAll(" ", "_");
    expect(await start(db.store, given)).toMatchObject({ ownerKey: null });
    expect(await keyHolder(db.store, given)).toMatchObject({ role: "owner", keyName: "owner" });
  });

  test("leaves no key in the files, only what it is known by", async () => {
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
    const keys = await shown(db.store);
    const account = await db.store.accounts.first();
    expect(await start(db.store)).toBeNull();
    expect(await start(db.store)).toBeNull();
    expect(await db.store.accounts.first()).toEqual(account);
    expect(await keyHolder(db.store, keys?.ownerKey ?? "")).toMatchObject({ role: "owner" });
  });

  test("adds an owner key that it did not know, and the old ones go on", async () => {
    await using db = await openFileStore();
    const keys = await shown(db.store);
    const account = await db.store.accounts.first();
    const given = testSecrets.newApiKey();
    expect(await start(db.store, given)).toBeNull();
    expect(await keyHolder(db.store, given)).toMatchObject({ accountId: account?.id ?? "", role: "owner" });
    expect(await keyHolder(db.store, keys?.ownerKey ?? "")).toMatchObject({ role: "owner" });
  });

  test("with the key that it knows adds nothing", async () => {
    await using db = await openFileStore();
    const given = testSecrets.newApiKey();
    await shown(db.store, given);
    const before = await db.store.accounts.keyByHash(testSecrets.hash(given));
    let added = 0;
    const addKey = async () => (added += 1) > 0;
    const accounts = { ...db.store.accounts, addKey };
    expect(await start({ ...db.store, accounts }, given)).toBeNull();
    expect(added).toBe(0);
    expect(await db.store.accounts.keyByHash(testSecrets.hash(given))).toEqual(before);
  });
});

describe("a start that ended before it showed the keys", () => {
  test("is repeated by the next one, which shows the same", async () => {
    await using db = await openFileStore();
    const keys = await start(db.store);
    await db.restart();
    expect(await start(db.store)).toEqual(keys);
    await forgetFirstKeys(db.store.facts);
    expect(await start(db.store)).toBeNull();
    expect(await keyHolder(db.store, keys?.agentKey ?? "")).toMatchObject({ role: "agent" });
  });

  test("leaves, at whichever of its writes it ended, a store whose next start shows keys that work", async () => {
    for (let writes = 0; ; writes += 1) {
      await using db = await openFileStore();
      const dying = dieAfter(db.store, writes);
      const isOver = await start(dying).then(
        () => true,
        () => false,
      );
      await db.restart();
      const keys = await start(db.store);
      expect(await keyHolder(db.store, keys?.ownerKey ?? "")).toMatchObject({ role: "owner" });
      expect(await keyHolder(db.store, keys?.agentKey ?? "")).toMatchObject({ role: "agent" });
      expect(await db.store.people.link(testSecrets.hash(keys?.welcomeToken ?? ""), NOON)).toMatchObject({
        email: null,
      });
      expect([await db.count("accounts"), await db.count("api_keys")]).toEqual([1, 2]);
      if (isOver) break;
    }
  });

  test("shows a link that works, also when the first one ran out", async () => {
    await using db = await openFileStore();
    const late = new FakeClock(NOON);
    const startLate = () =>
      bootstrap({ ...db.store, secrets: testSecrets, ids: systemIds, clock: late, givenOwnerKey: null });
    const keys = await startLate();
    late.advance(8 * 86_400_000);
    const again = await startLate();
    expect(again).toEqual({
      ...keys,
      ownerKey: keys?.ownerKey ?? "",
      agentKey: keys?.agentKey ?? "",
      welcomeToken: again?.welcomeToken ?? "",
    });
    expect(again?.welcomeToken).not.toBe(keys?.welcomeToken);
    expect(await db.store.people.link(testSecrets.hash(again?.welcomeToken ?? ""), late.now())).not.toBeNull();
  });

  test("shows nothing any more once one of the keys was revoked", async () => {
    await using db = await openFileStore();
    const keys = await start(db.store);
    const row = await db.store.accounts.keyByHash(testSecrets.hash(keys?.agentKey ?? ""));
    await db.store.accounts.revokeKey(row?.accountId ?? "", row?.id ?? "", NOON);
    expect(await start(db.store)).toBeNull();
    expect(await db.store.facts.read("first-keys")).toBeNull();
  });
});

/** The store of a process that ends at one of its writes: after so many of them, before the next or right after it. */
function dieAfter(store: Store, steps: number): Store {
  const { accounts, people, facts } = store;
  let left = steps;
  const step = (when: string) => {
    left -= 1;
    if (left === -1) throw new Error(`killed ${when} a write`);
  };
  const dying = async <Result>(write: () => Promise<Result>): Promise<Result> => {
    step("before");
    const result = await write();
    step("after");
    return result;
  };
  return {
    ...store,
    accounts: {
      ...accounts,
      create: (...all) => dying(() => accounts.create(...all)),
      addKey: (...all) => dying(() => accounts.addKey(...all)),
    },
    people: { ...people, offer: (link) => dying(() => people.offer(link)) },
    facts: {
      ...facts,
      write: (values) => dying(() => facts.write(values)),
    },
  };
}
