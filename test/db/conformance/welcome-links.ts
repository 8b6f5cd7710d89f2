import { describe, expect, test } from "bun:test";
import { systemIds } from "../../../src/core/ids.ts";
import { anAccount, aPerson, aSession, aSignUp, aWelcomeLink, later, NOON } from "../../support/factory.ts";
import type { OpenTestStore, TestStore } from "../../support/store.ts";
import { nextTurns } from "./steps.ts";

/** One-time links: the one that makes an account's first person, and those that renew a password. */
export function testWelcomeLinks(open: OpenTestStore): void {
  describe("a link that makes the first person", () => {
    test("can be looked at until it ends, and not a millisecond longer", async () => {
      await using db = await open();
      const { accountId } = await anEmptyAccount(db);
      expect(await db.store.people.offer(aWelcomeLink({ hash: "h", accountId, expiresAt: later(5) }))).toBe(true);
      const live = { accountId, personId: null, email: null, role: null };
      expect(await db.store.people.link("h", later(4))).toEqual(live);
      expect(await db.store.people.link("h", later(4))).toEqual(live);
      expect(await db.store.people.link("h", later(5))).toBeNull();
      expect(await db.store.people.link("other", NOON)).toBeNull();
    });

    test("is void when the next one is handed out", async () => {
      await using db = await open();
      const { people } = db.store;
      const [one, other] = [await anEmptyAccount(db), await anEmptyAccount(db)];
      await people.offer(aWelcomeLink({ hash: "first", accountId: one.accountId }));
      await people.offer(aWelcomeLink({ hash: "of another", accountId: other.accountId }));
      await people.offer(aWelcomeLink({ hash: "second", accountId: one.accountId }));
      const found = await Promise.all(["first", "of another", "second"].map((hash) => people.link(hash, NOON)));
      expect(found.map((link) => link !== null)).toEqual([false, true, true]);
    });

    test("lets its taker in, once", async () => {
      await using db = await open();
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

    test("lets one of fifty in that race for it, in one turn and in many", async () => {
      await using db = await open();
      const { people } = db.store;
      for (const turns of [1, 5]) {
        const { accountId, taker } = await anEmptyAccount(db);
        const hash = `h${turns}`;
        await people.offer(aWelcomeLink({ hash, accountId }));
        const racing = Array.from({ length: 50 }, () => taker());
        const became = await Promise.all(
          racing.map(async ({ person, session }, at) => {
            await nextTurns(at % turns);
            return people.welcome(hash, person, session);
          }),
        );
        expect(became.toSorted()).toEqual([...Array.from({ length: 49 }, () => "gone" as const), "taken"]);
        expect((await people.labelOf(accountId)).email).toBe(racing[became.indexOf("taken")]?.person.email ?? "");
      }
    });

    test("stays when the address is another person's", async () => {
      await using db = await open();
      const { people } = db.store;
      await people.signUp(aSignUp({ email: "ann@example.com" }));
      const { accountId, taker } = await anEmptyAccount(db);
      await people.offer(aWelcomeLink({ hash: "h", accountId }));
      const { person, session } = taker("ANN@example.com");
      expect(await people.welcome("h", person, session)).toBe("email_taken");
      expect((await people.labelOf(accountId)).email).toBeNull();
      expect(await people.session(session.hash, NOON)).toBeNull();
      const again = taker();
      expect(await people.welcome("h", again.person, again.session)).toBe("taken");
    });

    test("is none any more when it ran out, or belongs to another account, or renews a password", async () => {
      await using db = await open();
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
      expect((await people.labelOf(one.accountId)).email).toBeNull();
    });

    test("is not handed out when the account has a person, and what was handed out is void", async () => {
      await using db = await open();
      const { people } = db.store;
      const { account } = await signedUp(db);
      expect(await people.offer(aWelcomeLink({ hash: "h", accountId: account.id }))).toBe(false);
      expect(await people.link("h", NOON)).toBeNull();
    });
  });

  describe("a link that renews a password", () => {
    test("says whose, and is void when the next one is handed out", async () => {
      await using db = await open();
      const { people } = db.store;
      const { person, account } = await signedUp(db);
      const link = { accountId: account.id, personId: person.id };
      expect(await people.offer(aWelcomeLink({ hash: "first", ...link }))).toBe(true);
      expect(await people.link("first", NOON)).toEqual({ ...link, email: person.email, role: "owner" });
      expect(await people.offer(aWelcomeLink({ hash: "second", ...link }))).toBe(true);
      expect(await people.link("first", NOON)).toBeNull();
      expect(await people.link("second", NOON)).not.toBeNull();
    });

    test("gives the password, ends every other session of the person, and works once", async () => {
      await using db = await open();
      const { people } = db.store;
      const [one, other] = [await signedUp(db), await signedUp(db)];
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

    test("is nobody else's, and nothing after its end", async () => {
      await using db = await open();
      const { people } = db.store;
      const [one, other] = [await signedUp(db), await signedUp(db)];
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

/** A session of an owner that was not used since it began. */
const FRESH = { role: "owner", secretHash: null, lastSeenAt: null, hasOthers: false } as const;

/** An account without people, and who may come for it. */
async function anEmptyAccount(db: TestStore) {
  const account = anAccount();
  await db.store.accounts.create(account, []);
  return {
    accountId: account.id,
    taker: (email = `${systemIds.person()}@example.com`) => aPerson({ accountId: account.id, email }),
  };
}

async function signedUp(db: TestStore) {
  const signUp = aSignUp();
  await db.store.people.signUp(signUp);
  return signUp;
}
