import { expect, test } from "bun:test";
import { createAuthenticate } from "../../src/accounts/authenticate.ts";
import { createSessionRegistry } from "../../src/accounts/sessions.ts";
import type { SessionMember } from "../../src/core/account-store.ts";
import { FakeClock } from "../support/clock.ts";
import { ACCOUNT, anApiKey, NOON } from "../support/factory.ts";
import { openFileStore, testSecrets } from "../support/store.ts";

const MEMBER: SessionMember = {
  person: { id: "per_1", email: "ada@example.com", passwordHash: "", createdAt: NOON },
  accountId: ACCOUNT,
  role: "owner",
  secretHash: null,
  lastSeenAt: null,
  hasOthers: true,
};

test("a stream of a session that another process ended is closed; while the store is away it stays open", async () => {
  const row: { session: SessionMember | null; isAway: boolean } = { session: MEMBER, isAway: false };
  const people = {
    session: () => (row.isAway ? Promise.reject(new Error("away")) : Promise.resolve(row.session)),
    sessionSeen: () => Promise.reject(new Error("full")),
  };
  const registry = createSessionRegistry({ people, secrets: testSecrets, clock: new FakeClock() });
  const watch = await registry.watchSession("token");
  await registry.recheckSessions();
  row.isAway = true;
  expect(await registry.recheckSessions().catch(String)).toBe("Error: away");
  expect(watch?.caller.revoked?.aborted).toBe(false);
  row.isAway = false;
  row.session = null;
  await registry.recheckSessions();
  expect(watch?.caller.revoked?.aborted).toBe(true);
});

test("a stream is closed when another process takes its session to another account, or gives its person another role", async () => {
  for (const change of [{ accountId: "acc_other" }, { role: "reader" }] as const) {
    let now = MEMBER;
    const people = { session: () => Promise.resolve(now), sessionSeen: () => Promise.resolve() };
    const registry = createSessionRegistry({ people, secrets: testSecrets, clock: new FakeClock() });
    const watch = await registry.watchSession("token");
    await registry.recheckSessions();
    expect(watch?.caller.revoked?.aborted).toBe(false);
    now = { ...MEMBER, ...change };
    await registry.recheckSessions();
    expect(watch?.caller.revoked?.aborted, JSON.stringify(change)).toBe(true);
  }
});

test("a key that another process revoked ends its streams and waits, and no other key's", async () => {
  await using db = await openFileStore();
  const { accounts } = db.store;
  const texts = ["og_one_key_of_forty_characters_or_so_0001", "og_two_key_of_forty_characters_or_so_0002"];
  const keys = texts.map((text, n) => anApiKey({ id: `key_${n}`, accountId: ACCOUNT, hash: testSecrets.hash(text) }));
  for (const key of keys) await accounts.addKey(key);
  const clock = new FakeClock();
  const authenticate = createAuthenticate(
    { store: { accounts }, clock },
    { isStopped: () => false, secrets: testSecrets },
  );
  const callers = await Promise.all(texts.map((text) => authenticate(`Bearer ${text}`)));
  await authenticate.recheck();
  const aborted = () => callers.map(({ revoked }) => revoked?.aborted);
  expect(aborted()).toEqual([false, false]);
  await accounts.revokeKey(ACCOUNT, "key_0", clock.now());
  await authenticate.recheck();
  expect(aborted()).toEqual([true, false]);
  const again = await authenticate(`Bearer ${texts[0]}`).catch((error: unknown) => String(error));
  expect(again).toContain("Send a valid API key");
});
