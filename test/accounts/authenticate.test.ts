import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import { authorize, type Role, ROLES } from "../../src/core/roles.ts";
import type { AccountStore, ApiKey } from "../../src/core/account-store.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { refusalOf } from "../actions/callers.ts";
import { FakeClock } from "../support/clock.ts";
import { ACCOUNT, anAccount, anApiKey, later, NOON } from "../support/factory.ts";
import { openFileStore, testSecrets } from "../support/store.ts";

const KEY = testSecrets.newApiKey();

const TOKEN = "t".repeat(43);

/** `authenticate` on a real store with some keys, and the calls between the two. */
async function openAuthenticate(keys: readonly Partial<ApiKey>[] = [{}], wrap = (accounts: AccountStore) => accounts) {
  const db = await openFileStore();
  const rows = keys.map((key) => anApiKey({ hash: testSecrets.hash(KEY), ...key }));
  await db.store.accounts.create(anAccount({ id: ACCOUNT }), rows);
  const asked: string[] = [];
  const used: (readonly [string, Date])[] = [];
  const accounts = wrap({
    ...db.store.accounts,
    keyByHash: (hash) => (asked.push(hash), db.store.accounts.keyByHash(hash)),
    keyUsed: (id, at) => (used.push([id, at]), db.store.accounts.keyUsed(id, at)),
  });
  const clock = new FakeClock(NOON);
  const authenticate = createAuthenticate(
    { store: { accounts }, clock },
    {
      isStopped: () => false,
      secrets: testSecrets,
      keyOfToken: async (token) => (token === TOKEN ? { key: anApiKey(rows[0]), expiresAt: later(3_000) } : null),
    },
  );
  const [key] = rows;
  return { authenticate, key, asked, used, clock, db, [Symbol.asyncDispose]: () => db[Symbol.asyncDispose]() };
}

/** A store that has read a key when `read` resolves, and answers with it once `answer` does. */
function slowReads() {
  const [read, answer] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = (accounts: AccountStore): AccountStore => ({
    ...accounts,
    async keyByHash(hash) {
      const key = await accounts.keyByHash(hash);
      read.resolve();
      await answer.promise;
      return key;
    },
  });
  return { slow, read, answer };
}

const UNAUTHORIZED = {
  code: "unauthorized",
  message:
    "Send a valid API key as `Authorization: Bearer <key>`: it is missing, mistyped, revoked or expired. The first start of Outgate prints one; an owner key makes more.",
};

describe("a key", () => {
  test.each(ROLES)("with the role %s is its caller, by its own name", async (role: Role) => {
    await using rig = await openAuthenticate([{ role, name: "billing", hold: "writes" }]);
    expect(await rig.authenticate(`Bearer ${KEY}`)).toEqual({
      accountId: ACCOUNT,
      keyId: rig.key?.id ?? "",
      keyName: "billing",
      role,
      hold: "writes",
      ...(role === "agent" ? { scope: "own", replaced: new Set() } : {}),
      actor: "key:billing",
      revoked: expect.any(AbortSignal),
    });
  });

  test.each([`bearer ${KEY}`, `BEARER ${KEY}`, `bEaReR ${KEY}`, `Bearer  ${KEY}`])("is taken as %p", async (header) => {
    await using rig = await openAuthenticate();
    expect((await rig.authenticate(header)).keyId).toBe(rig.key?.id ?? "");
  });

  test("of 20 or 200 printable characters is one, whoever made it", async () => {
    const given = ["!".repeat(20), "~".repeat(200)];
    await using rig = await openAuthenticate(
      given.map((key) => ({ hash: testSecrets.hash(key), name: key.slice(0, 1) })),
    );
    for (const key of given) expect((await rig.authenticate(`Bearer ${key}`)).keyName).toBe(key.slice(0, 1));
  });
});

describe("anything else is the same unauthorized", () => {
  let rig: Awaited<ReturnType<typeof openAuthenticate>>;

  beforeAll(async () => {
    rig = await openAuthenticate();
  });

  afterAll(() => rig[Symbol.asyncDispose]());

  test.each([
    ["no header", null],
    ["an empty one", ""],
    ["the scheme alone", "Bearer"],
    ["the scheme and a space", "Bearer "],
    ["the key alone", KEY],
    ["no space", `Bearer${KEY}`],
    ["a tab", `Bearer\t${KEY}`],
    ["something before it", ` Bearer ${KEY}`],
    ["something behind it", `Bearer ${KEY} `],
    ["a line break behind it", `Bearer ${KEY}\n`],
    ["two of them", `Bearer ${KEY}, Bearer ${KEY}`],
    ["another scheme", `Basic ${KEY}`],
    ["19 characters", `Bearer ${"a".repeat(19)}`],
    ["201 characters", `Bearer ${"a".repeat(201)}`],
    ["a character that is not ASCII", `Bearer ${KEY}é`],
    ["a megabyte", `Bearer ${"a".repeat(1_000_000)}`],
  ])("%s, which is not even looked up", async (_name, header) => {
    const before = rig.asked.length;
    expect(await refusalOf(rig.authenticate(header))).toEqual(UNAUTHORIZED);
    expect(rig.asked).toHaveLength(before);
  });

  test.each([
    ["an unknown key", testSecrets.newApiKey()],
    ["a key cut short", KEY.slice(0, -1)],
    ["a key in other case", KEY.toLowerCase()],
  ])("%s, which leaves no trace", async (_name, key) => {
    expect(await refusalOf(rig.authenticate(`Bearer ${key}`))).toEqual(UNAUTHORIZED);
    expect(rig.used).toEqual([]);
  });

  test("a revoked key", async () => {
    await using revoked = await openAuthenticate([{ revokedAt: NOON }]);
    expect(await refusalOf(revoked.authenticate(`Bearer ${KEY}`))).toEqual(UNAUTHORIZED);
  });
});

describe("a known key", () => {
  test("is remembered: the store is asked once, and by the hash alone", async () => {
    await using rig = await openAuthenticate();
    for (let request = 0; request < 5; request += 1) await rig.authenticate(`Bearer ${KEY}`);
    expect(rig.asked).toEqual([testSecrets.hash(KEY)]);
  });

  test("is asked for again once it is forgotten, and refused when it is revoked by then", async () => {
    await using rig = await openAuthenticate();
    await rig.authenticate(`Bearer ${KEY}`);
    await rig.db.store.accounts.revokeKey(ACCOUNT, rig.key?.id ?? "", NOON);
    rig.authenticate.forget(testSecrets.hash(KEY));
    expect(await refusalOf(rig.authenticate(`Bearer ${KEY}`))).toMatchObject({ code: "unauthorized" });
    // Nor is a refused key remembered.
    expect(await refusalOf(rig.authenticate(`Bearer ${KEY}`))).toMatchObject({ code: "unauthorized" });
    expect(rig.asked).toHaveLength(3);
  });

  test("that is forgotten while it is being read is not remembered as it was", async () => {
    const { slow, read, answer } = slowReads();
    await using rig = await openAuthenticate([{}], slow);
    const first = rig.authenticate(`Bearer ${KEY}`);
    await read.promise;
    rig.authenticate.forget(testSecrets.hash(KEY));
    answer.resolve();
    await first;
    await rig.authenticate(`Bearer ${KEY}`);
    expect(rig.asked).toHaveLength(2);
  });

  test("is one caller to all who came in by it at a time, and forgotten it is none of them", async () => {
    await using rig = await openAuthenticate();
    const [one, other] = await Promise.all([rig.authenticate(`Bearer ${KEY}`), rig.authenticate(`Bearer ${KEY}`)]);
    for (const caller of [one, other]) authorize(caller, "read");
    rig.authenticate.forget(testSecrets.hash(KEY));
    for (const caller of [one, other]) {
      const refused = Promise.try(() => authorize(caller, "read"));
      expect(await refusalOf(refused)).toEqual(UNAUTHORIZED);
    }
    authorize(await rig.authenticate(`Bearer ${KEY}`), "read");
  });

  test("forgotten while it was read is read again, and every caller hears of its end from then on", async () => {
    const { slow, read, answer } = slowReads();
    await using rig = await openAuthenticate([{}], slow);
    const late = rig.authenticate(`Bearer ${KEY}`);
    await read.promise;
    await rig.db.store.accounts.revokeKey(ACCOUNT, rig.key?.id ?? "", NOON);
    rig.authenticate.forget(testSecrets.hash(KEY));
    answer.resolve();
    expect(await refusalOf(late)).toEqual(UNAUTHORIZED);
  });

  test("is read again after five seconds: what a hand has revoked meanwhile ends all that is open by it", async () => {
    await using rig = await openAuthenticate();
    const { revoked } = await rig.authenticate(`Bearer ${KEY}`);
    await rig.db.store.accounts.revokeKey(ACCOUNT, rig.key?.id ?? "", NOON);
    rig.clock.advance(4_999);
    await rig.authenticate(`Bearer ${KEY}`);
    rig.clock.advance(1);
    expect(await refusalOf(rig.authenticate(`Bearer ${KEY}`))).toEqual(UNAUTHORIZED);
    expect(revoked?.aborted).toBeTrue();
  });

  test("that another process revoked ends all that is open by it, and nothing of another key", async () => {
    const other = testSecrets.newApiKey();
    await using rig = await openAuthenticate([{}, { hash: testSecrets.hash(other) }]);
    const callers = [await rig.authenticate(`Bearer ${KEY}`), await rig.authenticate(`Bearer ${other}`)];
    const aborted = () => callers.map(({ revoked }) => revoked?.aborted);
    await rig.authenticate.recheck();
    expect(aborted()).toEqual([false, false]);
    await rig.db.store.accounts.revokeKey(ACCOUNT, rig.key?.id ?? "", NOON);
    await rig.authenticate.recheck();
    expect(aborted()).toEqual([true, false]);
    expect(await refusalOf(rig.authenticate(`Bearer ${KEY}`))).toEqual(UNAUTHORIZED);
  });

  test("that ten thousand others have displaced still ends at once when it is revoked", async () => {
    const any = (accounts: AccountStore): AccountStore => ({
      ...accounts,
      keyByHash: async (hash) => anApiKey({ hash }),
      keyUsed: async () => {},
    });
    await using rig = await openAuthenticate([{}], any);
    const { revoked } = await rig.authenticate(`Bearer ${KEY}`);
    for (let other = 0; other <= 10_000; other += 1) await rig.authenticate(`Bearer another-key-no-${10_000 + other}`);
    expect(revoked?.aborted).toBeFalse();
    rig.authenticate.forget(testSecrets.hash(KEY));
    expect(revoked?.aborted).toBeTrue();
  });

  test("is noted as used once a minute", async () => {
    await using rig = await openAuthenticate();
    const { authenticate, clock, used, key } = rig;
    const id = key?.id ?? "";
    await authenticate(`Bearer ${KEY}`);
    clock.advance(59_999);
    await authenticate(`Bearer ${KEY}`);
    expect(used).toEqual([[id, NOON]]);
    clock.advance(1);
    await authenticate(`Bearer ${KEY}`);
    expect(used).toEqual([
      [id, NOON],
      [id, later(60_000)],
    ]);
    expect((await rig.db.store.accounts.keyByHash(testSecrets.hash(KEY)))?.lastUsedAt).toEqual(later(60_000));
  });

  test("lets its caller in although the disk is full: only the note of its use is lost", async () => {
    const full = (accounts: AccountStore): AccountStore => ({
      ...accounts,
      keyUsed: () => Promise.reject(new StoreUnavailable("The disk is full.")),
    });
    await using rig = await openAuthenticate([{}], full);
    expect((await rig.authenticate(`Bearer ${KEY}`)).accountId).toBe(ACCOUNT);
  });
});

test("an access token is taken only where the caller takes tokens, and until it expires", async () => {
  await using rig = await openAuthenticate();
  const withToken = () => rig.authenticate(`Bearer ${TOKEN}`, true);
  expect((await withToken()).keyId).toBe(rig.key?.id ?? "");
  expect(await refusalOf(rig.authenticate(`Bearer ${TOKEN}`))).toEqual(UNAUTHORIZED);
  rig.clock.advance(2_999);
  await withToken();
  rig.clock.advance(1);
  expect(await refusalOf(withToken())).toEqual(UNAUTHORIZED);
});

describe("a key that expires", () => {
  test("is refused from then on, and its signal is given, without being asked", async () => {
    await using rig = await openAuthenticate([{ expiresAt: later(90_000_000) }]);
    const caller = await rig.authenticate(`Bearer ${KEY}`);
    expect(caller.limits).toEqual({ hosts: null, methods: null, dailyActions: null, expiresAt: later(90_000_000) });
    // The longest timer lasts 24 days.
    expect(rig.clock.nextMs).toBe(3_600_000);
    for (let hours = 0; hours < 24; hours += 1) rig.clock.advance(3_600_000);
    expect(caller.revoked?.aborted).toBe(false);
    rig.clock.advance(3_599_999);
    expect((await rig.authenticate(`Bearer ${KEY}`)).keyId).toBe(rig.key?.id ?? "");
    rig.clock.advance(1);
    expect(caller.revoked?.aborted).toBe(true);
    expect(await refusalOf(rig.authenticate(`Bearer ${KEY}`))).toMatchObject(UNAUTHORIZED);
    expect(rig.clock.timers).toBe(0);
  });

  test("is refused at once if the clock is set, and its timer ends with it", async () => {
    await using rig = await openAuthenticate([{ expiresAt: later(3_000) }]);
    await rig.authenticate(`Bearer ${KEY}`);
    rig.clock.jump(3_000);
    expect(await refusalOf(rig.authenticate(`Bearer ${KEY}`))).toEqual(UNAUTHORIZED);
    rig.authenticate.forget(testSecrets.hash(KEY));
    expect(rig.clock.timers).toBe(0);
  });

  test("makes no other key be read again, however often it is sent", async () => {
    const other = testSecrets.newApiKey();
    await using rig = await openAuthenticate([{ expiresAt: NOON }, { hash: testSecrets.hash(other), name: "other" }]);
    const slow = Array.from({ length: 20 }, () => refusalOf(rig.authenticate(`Bearer ${KEY}`)));
    await Promise.all([...slow, rig.authenticate(`Bearer ${other}`)]);
    expect(rig.asked).toHaveLength(21);
  });
});
