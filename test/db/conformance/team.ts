import { describe, expect } from "bun:test";
import { approve } from "../../../src/core/changes.ts";
import { INVITATIONS_OPEN_MAX } from "../../../src/core/limits.ts";
import type { Actor, MemberRole } from "../../../src/core/roles.ts";
import type { ApiKey } from "../../../src/core/account-store.ts";
import type { ChangeWrite, Decider } from "../../../src/core/store.ts";
import type { Joining, StoredInvitation } from "../../../src/core/team-store.ts";
import {
  aCreation,
  aDecision,
  aGrant,
  anApiKey,
  anAuditEntry,
  anInvitation,
  aPerson,
  aSession,
  aSignUp,
  aWelcomeLink,
  joined,
  later,
  NOON,
  writeOf,
} from "../../support/factory.ts";
import type { TestStore } from "../../support/store.ts";
import type { StoreTest } from "./store-test.ts";
import { audited, racingAtLast } from "./steps.ts";

const AUDIT = anAuditEntry();

const NO_MORE = { audit: [], dropsPassword: false } as const;

/** The people of an account, their roles and invitations. */
export function testTeam(test: StoreTest): void {
  describe("a member", () => {
    test("has a role, and is listed in the order in which they joined", async (db, { team, people }) => {
      const { ann, accountId } = await anAccountOfAnn(db);
      const bob = await joins(db, accountId, "approver", { at: later(5) });
      expect(await team.members(accountId, 10)).toEqual([
        { personId: ann.id, email: ann.email, role: "owner", joinedAt: NOON, lastSeenAt: null },
        {
          personId: bob.person.id,
          email: bob.person.email,
          role: "approver",
          joinedAt: later(5),
          lastSeenAt: later(5),
        },
      ]);
      expect(await team.members(accountId, 1)).toHaveLength(1);
      expect((await people.find(bob.person.email))?.role).toBe("approver");
      expect((await people.session(bob.session.hash, NOON))?.role).toBe("approver");
      expect(await team.member("acc_other", ann.id)).toBeNull();
    });

    test("may be asked for approval unless they are a reader", async (db) => {
      const { accountId } = await anAccountOfAnn(db);
      for (const [role, may] of [
        ["owner", true],
        ["approver", true],
        ["reader", false],
      ] as const) {
        const { person } = await joins(db, accountId, role);
        expect(await db.store.people.mayApprove(accountId, person.email), role).toEqual(may);
      }
    });

    test("gets another role, with an entry in the audit log", async (db, { team }) => {
      const { accountId } = await anAccountOfAnn(db);
      const { person } = await joins(db, accountId, "reader");
      const entry = anAuditEntry({ accountId, kind: "member_role_changed", subject: person.email });
      expect(await team.changeRole(accountId, person.id, "owner", entry)).toBe("done");
      expect((await team.member(accountId, person.id))?.role).toBe("owner");
      expect(await team.changeRole("acc_other", person.id, "reader", AUDIT)).toBe("gone");
      expect(await team.changeRole(accountId, "per_nobody", "reader", AUDIT)).toBe("gone");
      expect((await audited(db.store, { accountId })).map(({ kind }) => kind)).toEqual(["member_role_changed"]);
    });

    test("ends the links to them with the right to approve, also those that are stored later, and no others", async (db) => {
      const { team, links } = db.store;
      for (const loses of ["lowered", "removed"] as const) {
        const { accountId } = await anAccountOfAnn(db);
        const { person } = await joins(db, accountId, "approver");
        const asked = async (notifyEmail: string, ofAccount = accountId) => {
          const held = aCreation({ accountId: ofAccount, approve: true, notifyEmail });
          await db.actions.create(held);
          return { actionId: held.action.id, run: 1, decision: "approve", hash: held.action.id } as const;
        };
        const [own, unsent, other] = [
          await asked(person.email.toUpperCase()),
          await asked(person.email),
          await asked(`not-${person.email}`),
        ];
        const elsewhere = await asked(person.email, "acc_other");
        await links.keep([own, other, elsewhere], later(7));
        const audit = anAuditEntry({ at: later(1) });
        if (loses === "removed") expect(await team.remove(accountId, person.id, audit)).toBe("done");
        else expect(await team.changeRole(accountId, person.id, "reader", audit)).toBe("done");
        expect(await links.keep([unsent], later(7))).toEqual(later(1));
        for (const [link, expiresAt] of [
          [own, later(1)],
          [unsent, later(1)],
          [other, later(7)],
          [elsewhere, later(7)],
        ] as const)
          expect((await links.find(link))?.expiresAt).toEqual(expiresAt);
        // What is kept under the same name leads to the receipt.
        expect((await links.find(own))?.hash).toBe(own.hash);
      }
    });

    test("decides nothing more once they may not, on a page or by a link that was read before; nor does a key", async (db) => {
      const { team, links } = db.store;
      const { ann, accountId } = await anAccountOfAnn(db);
      const { person } = await joins(db, accountId, "approver");
      const byPerson = { of: "person", personId: person.id, roles: ["owner", "approver"] } as const;
      const byLink = { of: "link", decision: "approve", expiresAt: later(7) } as const;
      const key = anApiKey({ accountId });
      await db.store.accounts.addKey(key);
      const all: readonly Decider[] = [byPerson, byLink, { of: "key", keyId: key.id }];
      const decided = async () => {
        const writes: ChangeWrite[] = [];
        for (const decider of all) {
          const { action, ...more } = aCreation({ accountId, approve: true, notifyEmail: person.email });
          await db.actions.create({ action, ...more });
          await links.keep([{ actionId: action.id, run: 1, decision: "approve", hash: action.id }], later(7));
          writes.push({ ...writeOf(approve(action, aDecision())), decider });
        }
        return () => Promise.all(writes.map((write) => db.store.actions.apply(write)));
      };
      const [before, after] = [await decided(), await decided()];
      expect(await before()).toEqual([true, true, true]);
      await team.changeRole(accountId, person.id, "reader", anAuditEntry({ at: later(1) }));
      // Nor do they make keys, write rules, change roles or remove anybody.
      const { accounts, rules } = db.store;
      const manages = async (createdById: string, createdBy: Actor) => {
        const by = { createdById, createdBy };
        return [
          await accounts.addKey(anApiKey({ accountId, ...by }), AUDIT, undefined, true),
          await rules.replace({ accountId, rules: [], expected: await rules.findVersion(accountId), audit: AUDIT, by }),
          await team.changeRole(accountId, person.id, "reader", AUDIT, by),
          await team.remove(accountId, "per_nobody", AUDIT, by),
        ];
      };
      const expectBoth = async (...results: Awaited<ReturnType<typeof manages>>) => {
        expect(await manages(ann.id, "user:ann@example.com")).toEqual(results);
        expect(await manages(key.id, "key:ci")).toEqual(results);
      };
      await expectBoth(true, true, "done", "gone");
      await joins(db, accountId, "owner");
      await team.changeRole(accountId, ann.id, "approver", AUDIT);
      await accounts.revokeKey(accountId, key.id, later(1));
      await expectBoth(false, "not_manager", "not_manager", "not_manager");
      expect(await after()).toEqual([false, false, false]);
    });

    test("ends their grants with the right to approve, and these stay ended when the right returns", async (db) => {
      const { accountId } = await anAccountOfAnn(db);
      const { person } = await joins(db, accountId, "approver");
      const { team, grants, accounts } = db.store;
      const granted = async (createdById: string) => {
        const held = aCreation({ accountId, approve: true });
        await db.actions.create(held);
        const grant = aGrant({ accountId, actionId: held.action.id, createdById });
        expect(await db.actions.apply({ ...writeOf(approve(held.action, aDecision())), grant })).toBe(true);
        return grant;
      };
      const boss = anApiKey({ accountId });
      await accounts.addKey(boss);
      const own = await granted(person.id);
      const other = await granted(boss.id);
      const before = await grants.version();
      await team.changeRole(accountId, person.id, "owner", AUDIT);
      expect(await grants.list(accountId, NOON)).toHaveLength(2);
      await team.changeRole(accountId, person.id, "reader", AUDIT);
      await team.changeRole(accountId, person.id, "owner", AUDIT);
      expect(await grants.list(accountId, NOON)).toEqual([other]);
      expect(await grants.version()).not.toBe(before);
      expect([await grants.wasEnded(accountId, own.id), await grants.wasEnded(accountId, other.id)]).toEqual([
        true,
        false,
      ]);
      await granted(person.id);
      await team.remove(accountId, person.id, AUDIT);
      const key = anApiKey({ accountId });
      await accounts.addKey(key);
      await granted(key.id);
      await accounts.revokeKey(accountId, key.id, NOON);
      expect(await grants.list(accountId, NOON)).toEqual([other]);
      // Stored only after their makers have lost the right, though decided before.
      const { person: lowered } = await joins(db, accountId, "reader");
      const expired = anApiKey({ accountId, expiresAt: NOON });
      await accounts.addKey(expired);
      for (const makerId of [person.id, lowered.id, key.id, expired.id]) {
        const late = await granted(makerId);
        expect([makerId, await grants.wasEnded(accountId, late.id)]).toEqual([makerId, true]);
      }
      expect(await grants.listOpen(accountId, NOON, 9)).toEqual([other]);
    });

    test("who is removed loses their sessions in the account at once, and keeps those in others", async (db) => {
      const { accountId } = await anAccountOfAnn(db);
      const elsewhere = await anAccountOfAnn(db);
      const { person, session } = await joins(db, accountId, "reader");
      const other = await joins(db, elsewhere.accountId, "reader", { known: person });
      const { team, people } = db.store;
      expect(await team.remove(accountId, person.id, AUDIT)).toBe("done");
      expect(await people.session(session.hash, NOON)).toBeNull();
      expect(await people.session(other.session.hash, NOON)).not.toBeNull();
      expect(await people.find(person.email)).toMatchObject({ accountId: elsewhere.accountId });
      expect(await team.remove(accountId, person.id, AUDIT)).toBe("gone");
    });

    test("has one link that resets their password, whichever of their accounts it is made in", async (db) => {
      const [one, other] = [await anAccountOfAnn(db), await anAccountOfAnn(db)];
      const { person } = await joins(db, one.accountId, "reader");
      await joins(db, other.accountId, "reader", { known: person });
      const { people } = db.store;
      await people.offer(aWelcomeLink({ hash: "first", accountId: one.accountId, personId: person.id }));
      await people.offer(aWelcomeLink({ hash: "second", accountId: other.accountId, personId: person.id }));
      expect(await people.link("first", NOON)).toBeNull();
      expect(await people.link("second", NOON)).not.toBeNull();
    });

    test("who is in no account any more is forgotten: their address is free", async (db, { team, people }) => {
      const { accountId } = await anAccountOfAnn(db);
      const identity = { issuer: "https://id.example", subject: "1" };
      const { person } = await joins(db, accountId, "owner", { identity });
      expect(await team.identified(identity)).toMatchObject({ person, accountId });
      await team.remove(accountId, person.id, AUDIT);
      expect(await team.identified(identity)).toBeNull();
      expect(await people.signUp(aSignUp({ email: person.email }))).toBe(true);
    });

    test("who is the last owner stays one", async (db, { team, people }) => {
      const { ann, accountId } = await anAccountOfAnn(db);
      await joins(db, accountId, "approver");
      const before = (await audited(db.store)).length;
      expect(await team.changeRole(accountId, ann.id, "approver", AUDIT)).toBe("last_owner");
      expect(await team.remove(accountId, ann.id, AUDIT)).toBe("last_owner");
      expect(await team.changeRole(accountId, ann.id, "owner", AUDIT)).toBe("done");
      expect((await people.find(ann.email))?.role).toBe("owner");
      // Of the three only the one that was written.
      expect(await audited(db.store)).toHaveLength(before + 1);
    });
  });

  describe("a session", () => {
    test("goes to another account of its person, and to none that they are not in", async (db, { people, team }) => {
      const [one, other] = [await anAccountOfAnn(db), await anAccountOfAnn(db)];
      const { person, session } = await joins(db, one.accountId, "owner", { at: later(1) });
      expect(await people.switchAccount(session.hash, other.accountId, later(9))).toBe(false);
      expect((await people.session(session.hash, NOON))?.hasOthers).toBe(false);
      await joins(db, other.accountId, "reader", { at: later(1), known: person });
      expect(await people.session(session.hash, NOON)).toMatchObject({ accountId: one.accountId, hasOthers: true });
      expect(await people.switchAccount(session.hash, other.accountId, later(9))).toBe(true);
      const switched = { accountId: other.accountId, role: "reader", hasOthers: true };
      expect(await people.session(session.hash, NOON)).toMatchObject(switched);
      // The next login begins there.
      expect(await people.find(person.email)).toMatchObject({ accountId: other.accountId });
      await people.renameAccount(one.accountId, "Acme", anAuditEntry({ accountId: one.accountId }));
      expect(await team.accountsOf(person.id, 10)).toEqual([
        { accountId: other.accountId, role: "reader", name: null, email: other.ann.email },
        { accountId: one.accountId, role: "owner", name: "Acme", email: one.ann.email },
      ]);
      expect(await people.switchAccount("unknown", one.accountId, later(9))).toBe(false);
    });

    test("is listed with where it began and when it was used, and ended by its own person alone", async (db) => {
      const { accountId, ann } = await anAccountOfAnn(db);
      const { people, team } = db.store;
      const begin = async (at: Date, more: object = {}) => {
        const session = aSession({ personId: ann.id, accountId, createdAt: at, ...more });
        await people.addSession(session, ann.passwordHash);
        return session;
      };
      const [old, mine] = [await begin(later(1), { client: "192.0.2.7", browser: "Firefox" }), await begin(later(2))];
      const over = await begin(later(3), { expiresAt: later(4) });
      await people.sessionSeen(old.hash, later(60_000));
      const seen = { ...old, lastSeenAt: later(60_000) };
      expect((await people.sessionsOf(ann.id, later(4))).slice(0, 2)).toEqual([mine, seen]);
      expect((await team.member(accountId, ann.id))?.lastSeenAt).toEqual(later(60_000));
      expect(await people.endSessions("per_other", { only: old.hash }, AUDIT)).toBe(0);
      expect(await people.endSessions(ann.id, { only: old.hash }, AUDIT)).toBe(1);
      expect(await people.session(old.hash, NOON)).toBeNull();
      // That of the sign-up, and the one that is over.
      expect(await people.endSessions(ann.id, { except: mine.hash }, AUDIT)).toBe(2);
      expect((await people.sessionsOf(ann.id, NOON)).map(({ hash }) => hash)).toEqual([mine.hash]);
      expect(await people.session(over.hash, NOON)).toBeNull();
    });
  });

  describe("an invitation", () => {
    test("is gone when all links are made worthless", async (db) => {
      const { team, links } = db.store;
      const invitation = anInvitation();
      expect(await team.invite(invitation, null, AUDIT)).toBe("done");
      await links.forgetAll();
      expect(await team.invitation({ id: invitation.id }, NOON)).toBeNull();
    });

    test("is open until it ends, found by its token, id and address, and listed without its hash", async (db) => {
      const { team } = db.store;
      const [first, second] = [anInvitation({ email: "Bob@example.com" }), anInvitation({ createdAt: later(1) })];
      for (const each of [first, second]) expect(await team.invite(each, null, AUDIT)).toBe("done");
      await db.restart();
      const { team: again } = db.store;
      const { hash: _, ...shown } = first;
      expect((await again.invitations(first.accountId, NOON, 10))[1]).toEqual(shown);
      expect(JSON.stringify(await again.invitations(first.accountId, NOON, 10))).not.toContain("hash");
      expect(await again.invitation({ hash: first.hash }, NOON)).toEqual(first);
      expect(await again.invitation({ id: first.id }, NOON)).toEqual(first);
      expect(await again.invitationsOf("bob@EXAMPLE.com", NOON, 9)).toEqual([first]);
      expect(await again.invitation({ hash: first.hash }, first.expiresAt)).toBeNull();
      expect(await again.invitations(first.accountId, first.expiresAt, 10)).toEqual([]);
    });

    test("takes the place of an older one of the same address, whose link is void", async ({ store: { team } }) => {
      const [first, second] = [anInvitation({ email: "bob@example.com" }), anInvitation({ email: "BOB@example.com" })];
      for (const each of [first, second]) expect(await team.invite(each, null, AUDIT)).toBe("done");
      expect(await team.invitation({ hash: first.hash }, NOON)).toBeNull();
      expect(await team.invitations(first.accountId, NOON, 10)).toHaveLength(1);
      // Another account's is its own.
      await team.invite(anInvitation({ email: "bob@example.com", accountId: "acc_other" }), null, AUDIT);
      expect(await team.invitation({ hash: second.hash }, NOON)).not.toBeNull();
    });

    test("is refused for a member, and beyond the bound, also of racing ones", async (db, { team }) => {
      const { ann, accountId } = await anAccountOfAnn(db);
      const invite = (email?: string) =>
        team.invite(anInvitation({ accountId, ...(email === undefined ? {} : { email }) }), null, AUDIT);
      expect(await invite(ann.email.toUpperCase())).toBe("member");
      const all = await racingAtLast(Array.from({ length: INVITATIONS_OPEN_MAX + 5 }), () => invite());
      expect(all.filter((one) => one === "full")).toHaveLength(5);
      expect(await team.invitations(accountId, NOON, 500)).toHaveLength(INVITATIONS_OPEN_MAX);
    });

    test("is of no use when it was withdrawn or is over, or the person's password has changed", async (db) => {
      const { ann, accountId } = await anAccountOfAnn(db);
      const elsewhere = await anAccountOfAnn(db);
      const { team } = db.store;
      const invitation = anInvitation({ accountId });
      await team.invite(invitation, null, AUDIT);
      expect(await team.withdraw("acc_other", invitation.id, AUDIT)).toBe(false);
      const stale = joining(invitation, { ...elsewhere.ann, passwordHash: "older" }, false);
      expect(await team.join(stale)).toBe(false);
      expect(await team.join({ ...joining(invitation, elsewhere.ann, false), at: invitation.expiresAt })).toBe(false);
      expect(await team.withdraw(accountId, invitation.id, AUDIT)).toBe(true);
      expect(await team.withdraw(accountId, invitation.id, AUDIT)).toBe(false);
      expect(await team.join(joining(invitation, elsewhere.ann, false))).toBe(false);
      expect((await team.members(accountId, 10)).map(({ personId }) => personId)).toEqual([ann.id]);
    });

    test("is of use only while whoever made it may manage the account, and replacing their key changes nothing", async (db) => {
      const { ann, accountId } = await anAccountOfAnn(db);
      const { person: bob } = await joins(db, accountId, "owner");
      const { team, accounts } = db.store;
      const made = (createdById: string | null, createdBy: Actor = "key:boss") =>
        anInvitation({ accountId, createdBy, createdById });
      const key = (more: Partial<ApiKey> = {}) => anApiKey({ accountId, ...more });
      const [first, live] = [key(), key()];
      const next = key({ replaces: first.id });
      const last = key({ replaces: next.id, expiresAt: later(60_000) });
      for (const each of [first, live, next, last, key({ role: "agent", id: "key_agent" })])
        await accounts.addKey(each);
      await accounts.revokeKey(accountId, first.id, NOON);
      await accounts.revokeKey(accountId, next.id, NOON);
      const managers = async (at = NOON) => [...(await team.managers(accountId, at))];
      expect((await managers()).toSorted()).toEqual(
        expect.arrayContaining([ann.id, bob.id, first.id, live.id, next.id, last.id].toSorted()),
      );
      expect(await managers()).not.toContain("key_agent");
      expect(await managers(later(60_000))).not.toContain(first.id);
      expect(await team.managers("acc_other", NOON)).toEqual(new Set());
      const uses = async (invitation: StoredInvitation, at = NOON) => {
        await team.invite(invitation, null, AUDIT);
        return team.join({ ...joining(invitation, aPerson({ accountId }).person, true), at });
      };
      expect(await uses(made(bob.id))).toBe(true);
      expect(await uses(made(first.id))).toBe(true);
      expect(await uses(made(live.id))).toBe(true);
      // By an older version, which kept no ids.
      expect(await uses(made(null))).toBe(true);
      expect(await uses(made(null, "user:gone@example.com"))).toBe(false);
      expect(await uses(made("key_agent"))).toBe(false);
      expect(await uses(made(first.id), later(60_000))).toBe(false);
      await team.changeRole(accountId, bob.id, "approver", AUDIT);
      await accounts.revokeKey(accountId, live.id, NOON);
      expect([await uses(made(bob.id)), await uses(made(live.id)), await uses(made("per_gone"))]).toEqual([
        false,
        false,
        false,
      ]);
    });

    test("takes the session of a person who is signed in along, and is used once", async (db) => {
      const { accountId } = await anAccountOfAnn(db);
      const elsewhere = await anAccountOfAnn(db);
      const { person, session } = await joins(db, elsewhere.accountId, "owner");
      const invitation = anInvitation({ accountId, role: "reader" });
      await db.store.team.invite(invitation, null, AUDIT);
      expect(await db.store.team.join({ ...joining(invitation, person, false), session: session.hash })).toBe(true);
      expect(await db.store.people.session(session.hash, NOON)).toMatchObject({ accountId, role: "reader" });
      // It is used, and whoever is a member already joins by no other one.
      const other = anInvitation({ accountId });
      await db.store.team.invite(other, null, AUDIT);
      expect(await db.store.team.join(joining(invitation, aPerson({ accountId }).person, true))).toBe(false);
      expect(await db.store.team.join(joining(other, person, false))).toBe(false);
    });

    test("that is mailed is a row of the outbox, which goes when it is over", async ({ store: { team, outbox } }) => {
      const invitation = anInvitation({ email: "Bob@example.com" });
      const { accountId } = invitation;
      await team.invite(invitation, { id: "row_1", host: "bob@example.com" }, AUDIT);
      const [row] = await outbox.list(accountId, null, 10);
      expect(row).toMatchObject({
        actionId: invitation.id,
        message: { kind: "mail", event: "invited", target: "Bob@example.com" },
        host: "bob@example.com",
        status: "pending",
      });
      expect(await outbox.mails.lanes(null, 10)).toEqual([
        { accountId, host: "bob@example.com", keyId: "", dueAt: NOON },
      ]);
      await team.prune(NOON);
      expect(await outbox.list(accountId, null, 10)).toHaveLength(1);
      expect(await team.prune(invitation.expiresAt)).toBe(false);
      expect(await outbox.list(accountId, null, 10)).toEqual([]);
    });
  });

  describe("an identity", () => {
    const IDENTITY = { issuer: "https://id.example", subject: "1" };

    test("begins a session of the person that it was first seen with", async (db, { team, people }) => {
      const [one, other] = [await anAccountOfAnn(db), await anAccountOfAnn(db)];
      const begin = (who: typeof one, identity: object = {}) => {
        const session = aSession({ personId: who.ann.id, accountId: who.accountId });
        return team.signIn(session, { ...IDENTITY, ...identity }, NO_MORE);
      };
      expect(await team.identified(IDENTITY)).toBeNull();
      expect(await begin(one)).toBe(true);
      expect(await team.identified(IDENTITY)).toMatchObject({ accountId: one.accountId, person: one.ann });
      expect(await begin(one)).toBe(true);
      expect(await begin(other)).toBe(false);
      // An address that was given on to somebody else at the provider.
      expect(await begin(one, { subject: "2" })).toBe(false);
      expect(await begin(one, { issuer: "https://other.example" })).toBe(true);
      expect(await people.sessionsOf(one.ann.id, NOON)).toHaveLength(4);
      expect(await people.sessionsOf(other.ann.id, NOON)).toHaveLength(1);
    });

    test("ends the password and all other sessions of its person if that is said", async (db, { team, people }) => {
      const [one, other] = [await anAccountOfAnn(db), await anAccountOfAnn(db)];
      const session = aSession({ personId: one.ann.id, accountId: one.accountId });
      const refused = aSession({ personId: other.ann.id, accountId: other.accountId });
      expect(await team.signIn(session, IDENTITY, { audit: [], dropsPassword: true })).toBe(true);
      expect(await team.signIn(refused, IDENTITY, { audit: [], dropsPassword: true })).toBe(false);
      expect((await people.find(one.ann.email))?.person.passwordHash).toBe("");
      expect((await people.find(other.ann.email))?.person.passwordHash).toBe(other.ann.passwordHash);
      expect((await people.sessionsOf(one.ann.id, NOON)).map(({ hash }) => hash)).toEqual([session.hash]);
      expect(await people.sessionsOf(other.ann.id, NOON)).toHaveLength(1);
    });

    test("begins none in an account that its person has left", async (db, { team }) => {
      const { accountId } = await anAccountOfAnn(db);
      const { person } = await joins(db, accountId, "reader", { identity: IDENTITY });
      await team.remove(accountId, person.id, AUDIT);
      expect(await team.signIn(aSession({ personId: person.id, accountId }), IDENTITY, NO_MORE)).toBe(false);
      expect(await team.identified(IDENTITY)).toBeNull();
    });
  });
}

async function anAccountOfAnn(db: TestStore) {
  const signUp = aSignUp();
  await db.store.people.signUp(signUp);
  return { ann: signUp.person, accountId: signUp.account.id };
}

function joining(invitation: StoredInvitation, person: Joining["person"], isNew: boolean): Joining {
  const session = aSession({ personId: person.id, accountId: invitation.accountId });
  return { invitation, person, isNew, session, at: NOON, audit: [AUDIT] };
}

/** Somebody who accepts an invitation, new unless they are given. */
const joins = (
  { store }: TestStore,
  accountId: string,
  role: MemberRole,
  { identity, ...how }: Pick<Joining, "identity"> & { readonly at?: Date; readonly known?: Joining["person"] } = {},
) => joined(store, { accountId, role, ...how }, identity === undefined ? {} : { identity });
