import { describe, expect, test } from "bun:test";
import { CALLBACK_HOSTS_MAX } from "../../../src/core/limits.ts";
import { ACCOUNT, aCreation, anAccount, anApiKey, later, NOON, OTHER_ACCOUNT } from "../../support/factory.ts";
import type { OpenTestStore } from "../../support/store.ts";

/** Where callbacks of keys with a hold or a limit may go. */
export function testCallbackHosts(open: OpenTestStore): void {
  describe("callback hosts", () => {
    test("are listed by account, in the order of the alphabet, and stay as they were when they come again", async () => {
      await using db = await open();
      const { callbackHosts } = db.store;
      for (const host of ["b.example", "a.example:81"])
        expect(await callbackHosts.add(ACCOUNT, host, NOON)).toBe("added");
      expect(await callbackHosts.add(ACCOUNT, "b.example", later(5))).toBe("added");
      await callbackHosts.add(OTHER_ACCOUNT, "c.example", NOON);
      await db.restart();
      expect(await db.store.callbackHosts.list(ACCOUNT)).toEqual([
        { host: "a.example:81", createdAt: NOON },
        { host: "b.example", createdAt: NOON },
      ]);
    });

    test("are removed once, and nobody else's with them", async () => {
      await using db = await open();
      const { callbackHosts } = db.store;
      for (const account of [ACCOUNT, OTHER_ACCOUNT]) await callbackHosts.add(account, "a.example", NOON);
      expect(await callbackHosts.remove(ACCOUNT, "a.example")).toBe(true);
      expect(await callbackHosts.remove(ACCOUNT, "a.example")).toBe(false);
      expect(await callbackHosts.list(ACCOUNT)).toEqual([]);
      expect(await callbackHosts.list(OTHER_ACCOUNT)).toHaveLength(1);
    });

    test("are never more than an account may list, however many race", async () => {
      await using db = await open();
      const { callbackHosts } = db.store;
      const hosts = Array.from({ length: CALLBACK_HOSTS_MAX + 20 }, (_, n) => `h${n}.example`);
      const ends = await Promise.all(hosts.map((host) => callbackHosts.add(ACCOUNT, host, NOON)));
      expect(ends.filter((end) => end === "full")).toHaveLength(20);
      const listed = await callbackHosts.list(ACCOUNT);
      expect(listed).toHaveLength(CALLBACK_HOSTS_MAX);
      expect(await callbackHosts.add(ACCOUNT, listed[0]?.host ?? "", NOON)).toBe("added");
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
    for (const { id } of keys) expect([id, await limitedOf(id)]).toEqual([id, true]);
    expect([await limitedOf("key_gone"), await limitedOf("key_theirs")]).toEqual([true, true]);
    // A person has no key.
    expect([await limitedOf("key_free"), await limitedOf("")]).toEqual([false, false]);
  });
}
