import { describe, expect } from "bun:test";
import { REPLACED_KEYS_MAX } from "../../../src/core/limits.ts";
import type { ApiKey } from "../../../src/core/account-store.ts";
import { StoreUnavailable } from "../../../src/core/store.ts";
import {
  ACCOUNT,
  aCreation,
  anAccount,
  anApiKey,
  anAuditEntry,
  aQuery,
  aSignUp,
  later,
  OTHER_ACCOUNT,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { audited, claimDue } from "./steps.ts";

/** Accounts, their keys, and what the store says of itself. */
export function testAccounts(test: StoreTest): void {
  describe("accounts", () => {
    test("the first one is the one that was made first, whatever the clock said, and there is none before it", async (db) => {
      const { accounts } = db.store;
      expect(await accounts.first()).toBeNull();
      const first = anAccount({ createdAt: later(5) });
      const more = [anAccount(), anAccount({ createdAt: later(-9_000) })];
      await accounts.create(first, []);
      for (const account of more) await accounts.create(account, []);
      expect(await accounts.first()).toEqual(first);
      await db.store.people.signUp(aSignUp());
      await db.restart();
      expect(await db.store.accounts.first()).toEqual(first);
      expect(await db.store.accounts.find(first.id)).toEqual(first);
      expect(await db.store.accounts.find("acc_nowhere")).toBeNull();
    });

    test("come with their keys or not at all", async ({ store: { accounts } }) => {
      const account = anAccount();
      const keys = [anApiKey({ hash: "same" }), anApiKey({ hash: "same" })];
      expect(await accounts.create(account, keys).then(Boolean, () => "refused")).toBe("refused");
      expect(await accounts.find(account.id)).toBeNull();
      expect(await accounts.keyByHash("same")).toBeNull();
      await accounts.create(account, keys.slice(0, 1));
      expect(await accounts.find(account.id)).toEqual(account);
    });
  });

  describe("keys that replaced others", () => {
    test("are followed from one to the next, and what was not replaced has none", async ({ store: { accounts } }) => {
      const chain = ["key_1", "key_2", "key_3"];
      for (const [at, id] of chain.entries()) {
        const key = anApiKey({
          id,
          role: "agent",
          scope: at === 2 ? "account" : "own",
          replaces: chain[at - 1] ?? null,
        });
        expect(await accounts.addKey(key)).toBe(true);
        expect(await accounts.addKey({ ...key, name: "again" })).toBe(false);
        expect(await accounts.findKey(ACCOUNT, id)).toEqual(key);
        expect(await accounts.keyByHash(key.hash)).toEqual(key);
      }
      expect(await accounts.findKey(OTHER_ACCOUNT, "key_1")).toBeNull();
      expect(await accounts.replacedBy("key_1")).toEqual([]);
      expect(await accounts.replacedBy("key_3")).toEqual(["key_2", "key_1"]);
      expect(await accounts.replacedBy("key_nobody")).toEqual([]);
    });

    test("are followed so far at most, whatever somebody wrote there", async ({ store: { accounts } }) => {
      await accounts.addKey(anApiKey({ id: "key_1", replaces: "key_2" }));
      await accounts.addKey(anApiKey({ id: "key_2", replaces: "key_1" }));
      expect(await accounts.replacedBy("key_1")).toHaveLength(REPLACED_KEYS_MAX);
    });
  });

  describe("accounts that nobody has allowed", () => {
    const STOP = { at: later(1), reason: "Signed up." };
    const end = () => ({ at: later(2), by: "key:owner" as const, audit: anAuditEntry({ kind: "account_allowed" }) });

    test("are stopped once, all but the first and those that were allowed, and go on when they are", async (db) => {
      const { accounts, people, pauses } = db.store;
      const first = anAccount();
      await accounts.create(first, []);
      const [eve, bob] = [aSignUp({ email: "eve@example.com" }), aSignUp({ email: "bob@example.com" })];
      await people.signUp(eve);
      await people.signUp({ ...bob, allowedBy: "system" });
      expect([await accounts.stopOthers(STOP), await accounts.stopOthers(STOP)]).toEqual([1, 0]);
      const { id } = eve.account;
      expect(await pauses.inForce(null)).toMatchObject([
        { accountId: id, kind: "sign_up", subject: id, reason: "Signed up.", createdBy: "system", cancels: false },
      ]);
      await db.restart();
      expect(await db.store.accounts.list(9)).toMatchObject([
        { id, email: "eve@example.com", isStopped: true, isFirst: false, allowedAt: null },
        { id: bob.account.id, isStopped: false, allowedAt: bob.account.createdAt },
        { id: first.id, email: null, isStopped: false, isFirst: true, allowedAt: null },
      ]);
      expect(await db.store.accounts.list(1)).toHaveLength(1);
      expect(await db.store.accounts.allow("acc_nobody", end())).toBe(false);
      for (const _twice of [1, 2]) expect(await db.store.accounts.allow(id, end())).toBe(true);
      expect(await db.store.pauses.inForce(null)).toEqual([]);
      expect(await db.store.accounts.stopOthers(STOP)).toBe(0);
    });

    test("are stopped in the commit of the first hold, from which on nobody signs up", async (db) => {
      const { accounts, people, pauses } = db.store;
      const first = anAccount();
      await accounts.create(first, [anApiKey({ accountId: first.id })]);
      const eve = { ...aSignUp({ email: "eve@example.com" }), untilHold: true };
      expect(await people.signUp(eve)).toBe(true);
      await accounts.addKey(anApiKey({ accountId: eve.account.id, hold: "all" }));
      expect(await accounts.hasHold()).toBe(false);
      const closed = { ...STOP, audit: anAuditEntry({ accountId: first.id, kind: "signups_closed" }) };
      const held = () => anApiKey({ accountId: first.id, hold: "writes" });
      for (const _twice of [1, 2]) await accounts.addKey(held(), undefined, closed);
      expect(await accounts.hasHold()).toBe(true);
      expect(await pauses.inForce(eve.account.id)).toHaveLength(1);
      expect(await audited(db.store, { accountId: first.id })).toHaveLength(1);
      const late = { ...aSignUp({ email: "late@example.com" }), untilHold: true };
      expect(await people.signUp(late)).toBe(false);
      expect(await accounts.find(late.account.id)).toBeNull();
      expect(await people.signUp({ ...late, untilHold: false })).toBe(true);
    });

    test("have nothing claimed, of actions and of what they owe", async ({ store: { accounts, actions } }) => {
      await accounts.create(anAccount(), []);
      await accounts.create(anAccount({ id: ACCOUNT }), []);
      const { action } = aCreation({});
      await actions.create({ ...aCreation({ id: action.id }), action });
      await accounts.stopOthers(STOP);
      const at = { now: later(3), leaseUntil: later(9) };
      expect(await claimDue(actions, action, { lease: at })).toEqual([]);
      await accounts.allow(ACCOUNT, end());
      expect(await claimDue(actions, action, { lease: at })).toHaveLength(1);
    });
  });

  describe("keys", () => {
    test("are found by their hash, as they were written, revoked ones too", async ({ store: { accounts } }) => {
      const key = anApiKey({ name: `it's "x" \u{1f600} $1`, role: "agent", hold: "writes", lastUsedAt: later(1) });
      const revoked = anApiKey({ revokedAt: later(2) });
      await accounts.create(anAccount(), [key]);
      await accounts.addKey(revoked);
      expect(await accounts.keyByHash(key.hash)).toEqual(key);
      expect(await accounts.keyByHash(revoked.hash)).toEqual(revoked);
      expect(await accounts.keyByHash("unknown")).toBeNull();
    });

    test("remember when they were used last", async ({ store: { accounts } }) => {
      const [used, other] = [anApiKey(), anApiKey()];
      await accounts.create(anAccount(), [used, other]);
      await accounts.keyUsed(used.id, later(7));
      expect(await accounts.keyByHash(used.hash)).toEqual({ ...used, lastUsedAt: later(7) });
      expect(await accounts.keyByHash(other.hash)).toEqual(other);
    });
  });

  describe("the keys of an account", () => {
    test("are listed as they were written: the live ones first, then the revoked, each in the order of time", async (db) => {
      const { accounts } = db.store;
      const old = anApiKey({ name: `it's "x" \u{1f600} $1`, role: "reader", hold: "all", lastUsedAt: later(3) });
      const young = anApiKey({ createdAt: later(2) });
      const revokedLast = anApiKey({ createdAt: later(-9), revokedAt: later(5) });
      const revokedFirst = anApiKey({ createdAt: later(-1), revokedAt: later(4) });
      for (const key of [revokedLast, young, old, revokedFirst]) await accounts.addKey(key);
      await accounts.addKey(anApiKey({ accountId: OTHER_ACCOUNT }));
      expect(await accounts.keys(ACCOUNT, 10)).toEqual([old, young, revokedFirst, revokedLast]);
      expect(await accounts.keys(ACCOUNT, 3)).toEqual([old, young, revokedFirst]);
      expect(await accounts.keys("acc_nowhere", 10)).toEqual([]);
    });

    test("of one moment are listed in the same order each time", async ({ store: { accounts } }) => {
      const same = Array.from({ length: 9 }, () => anApiKey());
      for (const key of same) await accounts.addKey(key);
      const listed = await accounts.keys(ACCOUNT, 10);
      expect(listed).toEqual(same.toSorted((a, b) => (a.id < b.id ? -1 : 1)));
    });

    test("are revoked for good, one at a time, and the first time counts", async (db, { accounts }) => {
      const [key, other] = [anApiKey(), anApiKey()];
      await accounts.create(anAccount({ id: ACCOUNT }), [key, other]);
      const revoked: ApiKey = { ...key, revokedAt: later(7), revokedBy: "user:dana@example.com" };
      expect(await accounts.revokeKey(ACCOUNT, key.id, later(7), { by: "user:dana@example.com" })).toEqual(revoked);
      expect(await accounts.revokeKey(ACCOUNT, key.id, later(9), { by: "key:boss" })).toEqual(revoked);
      expect(await accounts.keyByHash(key.hash)).toEqual(revoked);
      expect(await accounts.keyByHash(other.hash)).toEqual(other);
      await db.restart();
      expect(await db.store.accounts.keyByHash(key.hash)).toEqual(revoked);
    });

    test("of another account are neither revoked nor returned", async ({ store: { accounts } }) => {
      const key = anApiKey({ accountId: OTHER_ACCOUNT });
      await accounts.addKey(key);
      expect(await accounts.revokeKey(ACCOUNT, key.id, later(7))).toBeNull();
      expect(await accounts.revokeKey(ACCOUNT, "key_nobody", later(7))).toBeNull();
      expect(await accounts.keyByHash(key.hash)).toEqual(key);
    });
  });

  test("facts are kept by name, the newest value of each", async ({ store: { facts } }) => {
    expect(await facts.read("master_key")).toBeNull();
    await facts.write({ master_key: "one" });
    await facts.write({ master_key: "two" });
    await facts.write({ other: "x" });
    expect(await facts.read("master_key")).toBe("two");
  });

  test("facts are written and forgotten together", async ({ store: { facts } }) => {
    await facts.write({ next: "two" });
    await facts.write({ now: "two", next: null, nothing: null });
    expect(await Promise.all(["now", "next", "nothing"].map((name) => facts.read(name)))).toEqual(["two", null, null]);
  });

  test("a store that is closed has written everything, and refuses what comes later", async (db) => {
    const creations = Array.from({ length: 20 }, () => aCreation());
    const created = creations.map((creation) => db.actions.create(creation));
    await db.store.close();
    expect(await Promise.all(created)).toEqual(creations.map(() => ({ kind: "created", claimed: null })));
    const { actions } = db;
    const late = [
      actions.create(aCreation()),
      actions.find(ACCOUNT, "act_x"),
      actions.list(aQuery()),
      db.store.probe(),
    ];
    const ends = await Promise.allSettled(late);
    expect(ends.map((end) => end.status === "rejected" && end.reason instanceof StoreUnavailable)).toEqual(
      late.map(() => true),
    );
    await db.store.close();
    await db.restart();
    const found = await Promise.all(creations.map(({ action }) => db.actions.find(ACCOUNT, action.id)));
    expect(found).toEqual(creations.map(({ action }) => action));
  });
}
