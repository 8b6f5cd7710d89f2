import { describe, expect } from "bun:test";
import { SESSIONS_PER_PERSON_MAX } from "../../../src/core/limits.ts";
import {
  anAccount,
  anAuditEntry,
  aPerson,
  aSession,
  aSignUp,
  aWelcomeLink,
  later,
  NOON,
} from "../../support/factory.ts";
import type { StoreTest } from "./store-test.ts";
import { FRESH, signedUp } from "./steps.ts";
import { systemIds } from "../../../src/core/ids.ts";
import type { TestStore } from "../../support/store.ts";

/** People, their sessions, and the one-time links that let them in. */
export function testPeople(test: StoreTest): void {
  describe("a sign-up", () => {
    test("makes the account, its key, the person and the session at once", async (db) => {
      const signUp = aSignUp({ email: "Ann@Example.com" });
      const { account, key, person, session } = signUp;
      expect(await db.store.people.signUp(signUp)).toBe(true);
      expect(await db.store.accounts.find(account.id)).toEqual(account);
      expect(await db.store.accounts.keyByHash(key.hash)).toEqual(key);
      const member = { person, accountId: account.id, role: "owner" } as const;
      expect(await db.store.people.session(session.hash, NOON)).toEqual({ ...member, ...FRESH });
      await db.restart();
      expect(await db.store.people.find("Ann@Example.com")).toEqual(member);
      expect((await db.store.people.findLabel(account.id)).email).toBe("Ann@Example.com");
      expect(await db.store.people.mayApprove(account.id, "ANN@example.com")).toBe(true);
      expect(await db.store.people.mayApprove("acc_other", "ann@example.com")).toBe(false);
      expect(await db.store.people.mayApprove(account.id, "eve@example.com")).toBe(false);
    });

    test("of an address that somebody has, in any case, leaves nothing behind", async (db) => {
      const { people, accounts } = db.store;
      const first = aSignUp({ email: "ann@example.com" });
      await people.signUp(first);
      for (const email of ["ann@example.com", "ANN@EXAMPLE.COM", "Ann@example.com"]) {
        const late = aSignUp({ email });
        expect(await people.signUp(late)).toBe(false);
        expect(await accounts.find(late.account.id)).toBeNull();
        expect(await accounts.keyByHash(late.key.hash)).toBeNull();
        expect(await people.session(late.session.hash, NOON)).toBeNull();
        expect(await people.find(email)).toEqual({ person: first.person, accountId: first.account.id, role: "owner" });
      }
    });

    test("keeps addresses apart by every character but its case", async (db) => {
      const emails = ["a@example.com", "a.@example.com", "a'b@example.com", "a%@example.com", "a_@example.com"];
      for (const email of emails) expect(await db.store.people.signUp(aSignUp({ email }))).toBe(true);
      for (const email of emails) expect((await db.store.people.find(email))?.person.email).toBe(email);
      expect(await db.store.people.find("b@example.com")).toBeNull();
    });
  });

  test("an account's address is null while it has no person, and that of the first of them afterwards", async (db) => {
    const account = anAccount();
    await db.store.accounts.create(account, []);
    expect((await db.store.people.findLabel(account.id)).email).toBeNull();
    await db.store.people.offer(aWelcomeLink({ accountId: account.id, hash: "link" }));
    const { person, session } = aPerson({ accountId: account.id });
    await db.store.people.welcome("link", person, session);
    expect((await db.store.people.findLabel(account.id)).email).toBe(person.email);
    expect(await db.store.people.findLabel("acc_nowhere")).toEqual({ name: null, email: null });
  });

  test("an account's name is its own, stays when the store is opened again, and can be taken away", async (db) => {
    const [one, other] = [anAccount(), anAccount()];
    for (const account of [one, other]) await db.store.accounts.create(account, []);
    expect(await db.store.people.findLabel(one.id)).toEqual({ name: null, email: null });
    const entry = anAuditEntry({ accountId: one.id, kind: "account_renamed", subject: "" });
    await db.store.people.renameAccount(one.id, "Zürich “Acme” 💳", entry);
    await db.restart();
    expect(await db.store.people.findLabel(one.id)).toEqual({ name: "Zürich “Acme” 💳", email: null });
    expect(await db.store.people.findLabel(other.id)).toEqual({ name: null, email: null });
    expect(await db.store.accounts.find(one.id)).toEqual(one);
    await db.store.people.renameAccount(one.id, null, entry);
    expect((await db.store.people.findLabel(one.id)).name).toBeNull();
    // Without an account nothing is written, and nothing noted.
    await db.store.people.renameAccount("acc_nowhere", "x", { ...entry, accountId: "acc_nowhere" });
    expect(await db.count("audit")).toBe(2);
  });

  describe("a session", () => {
    test("is found until it ends, and not a millisecond longer", async (db, { people }) => {
      const { person, accountId, begin } = await signedUp(db.store);
      const session = await begin({ expiresAt: later(1_000) });
      expect(await people.session(session.hash, later(999))).toEqual({ person, accountId, ...FRESH });
      expect(await people.session(session.hash, later(1_000))).toBeNull();
      expect(await people.session("unknown", NOON)).toBeNull();
    });

    test("keeps the hash of its secret, and gets another one by the password that its person still has", async (db) => {
      const { people } = db.store;
      const { person, begin } = await signedUp(db.store);
      const [one, other, bare] = [await begin({ secretHash: "a" }), await begin({ secretHash: "b" }), await begin()];
      await people.renewSessionSecret(bare.hash, "c", person.passwordHash);
      await people.renewSessionSecret(one.hash, "d", "another password hash");
      await people.renewSessionSecret("unknown", "e", person.passwordHash);
      await db.restart();
      const hashText = async ({ hash }: { hash: string }) => (await db.store.people.session(hash, NOON))?.secretHash;
      expect([await hashText(one), await hashText(other), await hashText(bare)]).toEqual(["a", "b", "c"]);
    });

    test("that is ended is gone, alone and for good", async (db, { people }) => {
      const { person, accountId, begin } = await signedUp(db.store);
      const [one, other] = [await begin(), await begin()];
      await people.endSession(one.hash);
      await people.endSession(one.hash);
      expect(await people.session(one.hash, NOON)).toBeNull();
      await db.restart();
      expect(await db.store.people.session(one.hash, NOON)).toBeNull();
      expect(await db.store.people.session(other.hash, NOON)).toEqual({ person, accountId, ...FRESH });
    });

    test("does not begin with a password that is not the person's any more", async (db, { people }) => {
      const { person, accountId } = await signedUp(db.store);
      const session = aSession({ personId: person.id, accountId });
      expect(await people.addSession(session, "another hash")).toBe(false);
      expect(await people.session(session.hash, NOON)).toBeNull();
    });

    test("too many of one person ends their oldest, and nobody else's", async (db, { people }) => {
      const [one, other] = [await signedUp(db.store), await signedUp(db.store)];
      const begun = [];
      for (let at = 1; at <= SESSIONS_PER_PERSON_MAX; at += 1) begun.push(await one.begin({ createdAt: later(at) }));
      const isThere = async (hash: string) => (await people.session(hash, NOON)) !== null;
      // The session of the sign-up was the oldest.
      expect(await isThere(one.session.hash)).toBe(false);
      expect(await Promise.all(begun.map(({ hash }) => isThere(hash)))).toEqual(begun.map(() => true));
      expect(await isThere(other.session.hash)).toBe(true);
    });

    test("is never the one that is too many, however far the clock was set back", async (db, { people }) => {
      const { begin } = await signedUp(db.store);
      for (let at = 1; at <= SESSIONS_PER_PERSON_MAX; at += 1) await begin({ createdAt: later(at) });
      const { hash } = await begin({ createdAt: later(-3_600_000) });
      expect(await people.session(hash, NOON)).not.toBeNull();
    });

    test("that ran out is forgotten, in passes, and so is a link; what lasts stays", async (db, { people }) => {
      const { begin } = await signedUp(db.store);
      const [dead, live] = [await begin({ expiresAt: later(-1) }), await begin()];
      await people.offer(aWelcomeLink({ hash: "dead", accountId: "acc_a", expiresAt: NOON }));
      await people.offer(aWelcomeLink({ hash: "live", accountId: "acc_b", expiresAt: later(1) }));
      expect(await people.prune(NOON)).toBe(false);
      // Asked as of before their end: only what is not there any more is not found.
      const found = await Promise.all([dead.hash, live.hash].map((hash) => people.session(hash, later(-9))));
      expect(found.map((member) => member !== null)).toEqual([false, true]);
      expect(await people.link("dead", later(-9))).toBeNull();
      expect(await people.link("live", later(-9))).not.toBeNull();
    });
  });

  describe("a new password", () => {
    test("ends every other session of its person and the links that renew it, and is nobody else's", async (db) => {
      const { people } = db.store;
      const [one, other] = [aSignUp(), aSignUp()];
      for (const signUp of [one, other]) await people.signUp(signUp);
      const { person, account } = one;
      const accountId = account.id;
      await people.offer(aWelcomeLink({ hash: "h", accountId, personId: person.id }));
      await people.offer(aWelcomeLink({ hash: "o", accountId: other.account.id, personId: other.person.id }));
      const session = aSession({ personId: person.id, accountId });
      expect(await people.changePassword(session, person.passwordHash, "next hash")).toBe(true);
      const member = { person: { ...person, passwordHash: "next hash" }, accountId, role: "owner" } as const;
      expect(await people.find(person.email)).toEqual(member);
      expect(await people.session(session.hash, NOON)).toEqual({ ...member, ...FRESH });
      expect(await people.session(one.session.hash, NOON)).toBeNull();
      expect(await people.session(other.session.hash, NOON)).not.toBeNull();
      expect([await people.link("h", NOON), (await people.link("o", NOON)) !== null]).toEqual([null, true]);
    });

    test("in place of one that is not theirs any more leaves everything as it is", async ({ store: { people } }) => {
      const signUp = aSignUp();
      await people.signUp(signUp);
      const { person, account } = signUp;
      await people.offer(aWelcomeLink({ hash: "h", accountId: account.id, personId: person.id }));
      const session = aSession({ personId: person.id, accountId: account.id });
      expect(await people.changePassword(session, "another hash", "next hash")).toBe(false);
      expect(await people.find(person.email)).toEqual({ person, accountId: account.id, role: "owner" });
      expect(await people.session(session.hash, NOON)).toBeNull();
      expect(await people.session(signUp.session.hash, NOON)).not.toBeNull();
      expect(await people.link("h", NOON)).not.toBeNull();
    });
  });

  describe("a link that makes the first person", () => {
    test("can be looked at until it ends, and not a millisecond longer", async (db) => {
      const { accountId } = await anEmptyAccount(db);
      expect(await db.store.people.offer(aWelcomeLink({ hash: "h", accountId, expiresAt: later(5) }))).toBe(true);
      const live = { accountId, personId: null, email: null, role: null };
      expect(await db.store.people.link("h", later(4))).toEqual(live);
      expect(await db.store.people.link("h", later(4))).toEqual(live);
      expect(await db.store.people.link("h", later(5))).toBeNull();
      expect(await db.store.people.link("other", NOON)).toBeNull();
    });

    test("is void when the next one is handed out", async (db, { people }) => {
      const [one, other] = [await anEmptyAccount(db), await anEmptyAccount(db)];
      await people.offer(aWelcomeLink({ hash: "first", accountId: one.accountId }));
      await people.offer(aWelcomeLink({ hash: "of another", accountId: other.accountId }));
      await people.offer(aWelcomeLink({ hash: "second", accountId: one.accountId }));
      const found = await Promise.all(["first", "of another", "second"].map((hash) => people.link(hash, NOON)));
      expect(found.map((link) => link !== null)).toEqual([false, true, true]);
    });

    test("lets its taker in, once", async (db) => {
      const { accountId, taker } = await anEmptyAccount(db);
      await db.store.people.offer(aWelcomeLink({ hash: "h", accountId }));
      const { person, session } = taker();
      expect(await db.store.people.welcome("h", person, session)).toBe("taken");
      await db.restart();
      const { people } = db.store;
      expect(await people.find(person.email)).toEqual({ person, accountId, role: "owner" });
      expect(await people.session(session.hash, NOON)).toEqual({ person, accountId, ...FRESH });
      expect(await people.link("h", NOON)).toBeNull();
      const late = taker();
      expect(await people.welcome("h", late.person, late.session)).toBe("gone");
      expect(await people.find(late.person.email)).toBeNull();
      expect(await people.session(late.session.hash, NOON)).toBeNull();
    });

    test("stays when the address is another person's", async (db, { people }) => {
      await people.signUp(aSignUp({ email: "ann@example.com" }));
      const { accountId, taker } = await anEmptyAccount(db);
      await people.offer(aWelcomeLink({ hash: "h", accountId }));
      const { person, session } = taker("ANN@example.com");
      expect(await people.welcome("h", person, session)).toBe("email_taken");
      expect((await people.findLabel(accountId)).email).toBeNull();
      expect(await people.session(session.hash, NOON)).toBeNull();
      const again = taker();
      expect(await people.welcome("h", again.person, again.session)).toBe("taken");
    });

    test("is none any more when it ran out, or belongs to another account, or renews a password", async (db) => {
      const { people } = db.store;
      const [one, other] = [await anEmptyAccount(db), await anEmptyAccount(db)];
      await people.offer(aWelcomeLink({ hash: "over", accountId: one.accountId, expiresAt: NOON }));
      await people.offer(aWelcomeLink({ hash: "of another", accountId: other.accountId }));
      await people.offer(aWelcomeLink({ hash: "password", accountId: one.accountId, personId: "per_x" }));
      for (const hash of ["over", "of another", "password", "unknown"]) {
        const { person, session } = one.taker();
        // A link of another account is there, and is not for this one: the service never asks so.
        expect(["gone", "email_taken"]).toContain(await people.welcome(hash, person, session));
        expect(await people.find(person.email)).toBeNull();
      }
      expect((await people.findLabel(one.accountId)).email).toBeNull();
    });

    test("is not handed out when the account has a person, and what was handed out is void", async (db, { people }) => {
      const { account } = await signedUp(db.store);
      expect(await people.offer(aWelcomeLink({ hash: "h", accountId: account.id }))).toBe(false);
      expect(await people.link("h", NOON)).toBeNull();
    });
  });

  describe("a link that renews a password", () => {
    test("says whose, and is void when the next one is handed out", async (db, { people }) => {
      const { person, account } = await signedUp(db.store);
      const link = { accountId: account.id, personId: person.id };
      expect(await people.offer(aWelcomeLink({ hash: "first", ...link }))).toBe(true);
      expect(await people.link("first", NOON)).toEqual({ ...link, email: person.email, role: "owner" });
      expect(await people.offer(aWelcomeLink({ hash: "second", ...link }))).toBe(true);
      expect(await people.link("first", NOON)).toBeNull();
      expect(await people.link("second", NOON)).not.toBeNull();
    });

    test("gives the password, ends every other session of the person, and works once", async (db, { people }) => {
      const [one, other] = [await signedUp(db.store), await signedUp(db.store)];
      const { person, account } = one;
      await people.offer(aWelcomeLink({ hash: "h", accountId: account.id, personId: person.id }));
      const session = aSession({ personId: person.id, accountId: account.id });
      expect(await people.renewPassword("h", "new hash", session)).toBe(true);
      const member = { person: { ...person, passwordHash: "new hash" }, accountId: account.id, role: "owner" } as const;
      expect(await people.find(person.email)).toEqual(member);
      expect(await people.session(session.hash, NOON)).toEqual({ ...member, ...FRESH });
      expect(await people.session(one.session.hash, NOON)).toBeNull();
      expect(await people.session(other.session.hash, NOON)).not.toBeNull();
      expect(await people.link("h", NOON)).toBeNull();
      const late = aSession({ personId: person.id, accountId: account.id });
      expect(await people.renewPassword("h", "newer hash", late)).toBe(false);
      expect(await people.session(late.hash, NOON)).toBeNull();
      expect(await people.find(person.email)).toEqual(member);
    });

    test("is nobody else's, and nothing after its end", async (db, { people }) => {
      const [one, other] = [await signedUp(db.store), await signedUp(db.store)];
      const link = { accountId: one.account.id, personId: one.person.id };
      await people.offer(aWelcomeLink({ hash: "h", ...link, expiresAt: later(5) }));
      const ofOther = aSession({ personId: other.person.id, accountId: other.account.id });
      expect(await people.renewPassword("h", "new hash", ofOther)).toBe(false);
      const late = aSession({ personId: one.person.id, accountId: one.account.id, createdAt: later(5) });
      expect(await people.renewPassword("h", "new hash", late)).toBe(false);
      for (const { person, account } of [one, other]) {
        expect(await people.find(person.email)).toEqual({ person, accountId: account.id, role: "owner" });
      }
    });
  });
}

/** An account without people, and who may come for it. */
async function anEmptyAccount(db: TestStore) {
  const account = anAccount();
  await db.store.accounts.create(account, []);
  return {
    accountId: account.id,
    taker: (email = `${systemIds.person(NOON)}@example.com`) => aPerson({ accountId: account.id, email }),
  };
}
