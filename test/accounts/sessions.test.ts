import { describe, expect, test } from "bun:test";
import { createSessionRegistry } from "../../src/accounts/sessions.ts";
import type { SessionMember } from "../../src/core/account-store.ts";
import { SESSION_SEEN_EVERY_MS } from "../../src/core/limits.ts";
import { createSecrets } from "../../src/crypto/secrets.ts";
import { NOON } from "../support/factory.ts";

const TOKEN = "a".repeat(64);

const secrets = createSecrets(new Uint8Array(32).fill(7), (count) => new Uint8Array(count));

const PERSON = { id: "usr_1", email: "ann@example.com", passwordHash: "", createdAt: NOON };

const MEMBER: SessionMember = {
  person: PERSON,
  accountId: "acc_1",
  role: "owner",
  secretHash: null,
  lastSeenAt: NOON,
  hasOthers: false,
};

/** A registry over a store whose reads of a session end as they are told to, one after another. */
function registryOf(...reads: readonly (() => SessionMember | null)[]) {
  let count = 0;
  const session = async () => {
    const read = reads[count];
    count += 1;
    return read === undefined ? MEMBER : read();
  };
  const seen: Date[] = [];
  const registry = createSessionRegistry({
    people: { session, sessionSeen: async (_hash, at) => void seen.push(at) },
    secrets,
    clock: { now: () => NOON },
  });
  return { ...registry, seen, readCount: () => count };
}

const alive = () => MEMBER;

const away = (): never => {
  throw new Error("The database is away.");
};

test("a session's last use is noted once in a while", async () => {
  const ago = (ms: number) => () => ({ ...MEMBER, lastSeenAt: new Date(NOON.getTime() - ms) });
  const registry = registryOf(ago(SESSION_SEEN_EVERY_MS - 1), ago(SESSION_SEEN_EVERY_MS));
  await registry.resume(TOKEN);
  expect(registry.seen).toEqual([]);
  await registry.resume(TOKEN);
  expect(registry.seen).toEqual([NOON]);
});

describe("a watched session", () => {
  test("is not revoked while it lasts, and is as soon as it ends", async () => {
    const registry = registryOf(alive, alive);
    const watch = await registry.watchSession(TOKEN);
    registry.sessionEnded(secrets.hash("another"));
    expect(watch?.caller.revoked?.aborted).toBe(false);
    registry.sessionEnded(secrets.hash(TOKEN));
    expect(watch?.caller.revoked?.aborted).toBe(true);
  });

  test("that has ended, or never was, is none", async () => {
    expect(await registryOf(() => null).watchSession(TOKEN)).toBeNull();
  });

  test("that ends after it was read, when nobody watches yet, is none", async () => {
    let isOver = false;
    const registry = registryOf(
      () => {
        // Who ends it finds no stream to close.
        isOver = true;
        registry.sessionEnded(secrets.hash(TOKEN));
        return MEMBER;
      },
      () => (isOver ? null : MEMBER),
    );
    expect(await registry.watchSession(TOKEN)).toBeNull();
  });

  test("that ends while it is read the second time is revoked, whatever was read", async () => {
    const registry = registryOf(alive, () => {
      registry.sessionEnded(secrets.hash(TOKEN));
      return MEMBER;
    });
    expect((await registry.watchSession(TOKEN))?.caller.revoked?.aborted).toBe(true);
  });

  test.each<[string, boolean, boolean, () => SessionMember | null]>([
    ["as it was", false, false, alive],
    ["in another account", true, true, () => ({ ...MEMBER, accountId: "acc_2" })],
    ["with another role", true, true, () => ({ ...MEMBER, role: "reader" })],
    ["to be over", true, true, () => null],
    ["to be unreadable", true, false, away],
  ])("that is found %s is revoked or goes on", async (_how, isRevokedOfPerson, isRevokedOfAll, again) => {
    const registry = registryOf(alive, alive, again);
    const watch = await registry.watchSession(TOKEN);
    await registry.recheckPerson("usr_2");
    expect(registry.readCount()).toBe(2);
    await registry.recheckPerson(PERSON.id);
    expect(watch?.caller.revoked?.aborted).toBe(isRevokedOfPerson);

    // As another process may have left it.
    const other = registryOf(alive, alive, again);
    const watched = await other.watchSession(TOKEN);
    expect(await other.recheckSessions().catch(String)).toBe(
      again === away ? "Error: The database is away." : undefined,
    );
    expect([other.readCount(), watched?.caller.revoked?.aborted]).toEqual([3, isRevokedOfAll]);
  });

  test.each<[string, string | null, () => SessionMember | null]>([
    ["over", null, () => null],
    ["in another account", null, () => ({ ...MEMBER, accountId: "acc_2" })],
    ["with another role", null, () => ({ ...MEMBER, role: "reader" })],
    ["unreadable", "Error: The database is away.", away],
  ])("that is found %s the second time is watched no longer", async (_how, result, again) => {
    const registry = registryOf(alive, again);
    expect(await registry.watchSession(TOKEN).catch(String)).toBe(result);
    // It reads the session of each watch.
    await registry.recheckPerson(PERSON.id);
    expect(registry.readCount()).toBe(2);
  });
});
