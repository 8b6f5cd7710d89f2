import { describe, expect, test } from "bun:test";
import { CALLBACK_HOSTS_MAX } from "../../../src/core/limits.ts";
import type { AuditEntry } from "../../../src/core/audit.ts";
import type { Store } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCreation,
  anAccount,
  anApiKey,
  anAuditEntry,
  later,
  NOON,
  OTHER_ACCOUNT,
} from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";

const entry = (accountId: string, host: string): AuditEntry =>
  anAuditEntry({ accountId, kind: "callback_hosts_changed", subject: host });

const put = ({ callbackHosts }: Store, accountId: string, host: string, createdAt = NOON) =>
  callbackHosts.put({ accountId, host, createdAt }, entry(accountId, host));

const audited = async ({ audit }: Store) => {
  const all = { accountId: ACCOUNT, kinds: [], actors: [], since: null, until: null, before: null, limit: 99 };
  return (await audit.page(all)).rows.map(({ subject }) => subject);
};

/** Where callbacks of keys with a hold or a limit may go. */
export function testCallbackHosts(open: OpenTestStore): void {
  describe("callback hosts", () => {
    test("are listed by account, in the order of the alphabet, and stay as they were when they come again", async () => {
      await using db = await open();
      for (const host of ["b.example", "a.example:81"]) expect(await put(db.store, ACCOUNT, host)).toBe("written");
      expect(await put(db.store, ACCOUNT, "b.example", later(5))).toBe("written");
      await put(db.store, OTHER_ACCOUNT, "c.example");
      await db.restart();
      expect(await db.store.callbackHosts.list(ACCOUNT)).toEqual([
        { accountId: ACCOUNT, host: "a.example:81", createdAt: NOON },
        { accountId: ACCOUNT, host: "b.example", createdAt: NOON },
      ]);
    });

    test("are removed once, and nobody else's with them; each change is in the audit log", async () => {
      await using db = await open();
      const { callbackHosts } = db.store;
      for (const account of [ACCOUNT, OTHER_ACCOUNT]) await put(db.store, account, "a.example");
      const removed = entry(ACCOUNT, "a.example");
      expect(await callbackHosts.remove(ACCOUNT, "a.example", removed)).toBe(true);
      expect(await callbackHosts.remove(ACCOUNT, "a.example", removed)).toBe(false);
      expect((await audited(db.store)).length).toBe(2);
      expect(await callbackHosts.list(ACCOUNT)).toEqual([]);
      expect(await callbackHosts.list(OTHER_ACCOUNT)).toHaveLength(1);
    });

    test("are never more than an account may list, however many race", async () => {
      await using db = await open();
      const { callbackHosts } = db.store;
      const hosts = Array.from({ length: CALLBACK_HOSTS_MAX + 20 }, (_, n) => `h${n}.example`);
      const ends = await Promise.all(hosts.map((host) => put(db.store, ACCOUNT, host)));
      expect(ends.filter((end) => end === "full")).toHaveLength(20);
      const listed = await callbackHosts.list(ACCOUNT);
      expect(listed).toHaveLength(CALLBACK_HOSTS_MAX);
      expect(await put(db.store, ACCOUNT, listed[0]?.host ?? "")).toBe("written");
    });
  });

  test("a notification knows the rules under which its action was created", async () => {
    await using db = await open();
    const creation = aCreation({
      approve: true,
      callback: "https://h.example/",
      creator: { role: "agent", hold: "writes" },
    });
    await db.actions.create(creation);
    expect((await db.actions.find(ACCOUNT, creation.action.id))?.creator).toEqual({ role: "agent", hold: "writes" });
    expect(await db.notifications.creatorOf(creation.outbox[0]?.id ?? "")).toMatchObject({
      role: "agent",
      hold: "writes",
    });
    expect(await db.notifications.creatorOf("nobody")).toBeNull();
  });

  test("a notification knows whether the key of its action has limits, also when the key is revoked or gone", async () => {
    await using db = await open();
    const { accounts } = db.store;
    const limits = [
      { hosts: ["a.example"] },
      { methods: ["GET"] },
      { dailyActions: 1 },
      { expiresAt: later(-1) },
    ] as const;
    const keys = limits.map((limit, at) => anApiKey({ id: `key_${at}`, revokedAt: later(at), ...limit }));
    await accounts.create(anAccount({ id: ACCOUNT }), [...keys, anApiKey({ id: "key_free" })]);
    await accounts.create(anAccount({ id: OTHER_ACCOUNT }), [anApiKey({ id: "key_theirs", accountId: OTHER_ACCOUNT })]);
    const limitedOf = async (keyId: string) => {
      const creation = aCreation({ approve: true, callback: "https://h.example/", keyId });
      await db.actions.create(creation);
      return (await db.notifications.creatorOf(creation.outbox[0]?.id ?? ""))?.isLimited;
    };
    for (const { id } of keys) expect(await limitedOf(id), id).toBe(true);
    expect([await limitedOf("key_gone"), await limitedOf("key_theirs")]).toEqual([true, true]);
    // A person has no key.
    expect([await limitedOf("key_free"), await limitedOf("")]).toEqual([false, false]);
  });
}
