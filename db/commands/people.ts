import { and, desc, eq, exists, gt, inArray, isNull, lte, ne, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import {
  emailKey,
  type Member,
  type PeopleStore,
  type PersonRow,
  type SessionRow,
  type SignUp,
} from "../../src/core/account-store.ts";
import { SESSIONS_PER_PERSON_MAX } from "../../src/core/limits.ts";
import { mayDo } from "../../src/core/roles.ts";
import type { Connection } from "../sql/context.ts";
import { hasValues } from "../sql/dialect.ts";
import { accountLock, personLock, signUpLock } from "../sql/locks.ts";
import { all, get, prepare } from "../sql/read.ts";
import { readFirstId } from "./accounts.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, deleteSome, hasRow, type Tables, type Tx } from "./command.ts";

/** Adds a person; returns whether their address was free. */
export async function addPerson({ db, tables: { people } }: Tx, person: PersonRow): Promise<boolean> {
  const added = await db
    .insert(people)
    .values({ ...person, emailKey: emailKey(person.email) })
    .onConflictDoNothing({ target: people.emailKey })
    .returning({ id: people.id });
  return added.length > 0;
}

/** Takes a session to another account of its person; returns who that is, null if they are not in the account. */
export async function switchSession(tx: Tx, hash: string, accountId: string): Promise<string | null> {
  const { sessions, members } = tx.tables;
  const [found] = await tx.db
    .select({ personId: sessions.personId })
    .from(sessions)
    .innerJoin(members, and(eq(members.accountId, accountId), eq(members.personId, sessions.personId)))
    .where(eq(sessions.hash, hash));
  if (found === undefined) return null;
  await tx.db.update(sessions).set({ accountId }).where(eq(sessions.hash, hash));
  return found.personId;
}

/** Ends all sessions of a person but this one. */
export async function endOthers({ db, tables: { sessions } }: Tx, { personId, hash }: SessionRow): Promise<void> {
  await db.delete(sessions).where(and(eq(sessions.personId, personId), ne(sessions.hash, hash)));
}

/** Ends the oldest sessions beyond the bound, never this one: after a clock was set back it would look like the oldest. */
export async function endOldest({ db, tables: { sessions } }: Tx, { personId, hash }: SessionRow): Promise<void> {
  const others = db.select({ hash: sessions.hash }).from(sessions);
  const newestFirst = others
    .where(and(eq(sessions.personId, personId), ne(sessions.hash, hash)))
    .orderBy(desc(sessions.createdAt), desc(sessions.hash));
  const oldest = newestFirst.limit(Number.MAX_SAFE_INTEGER).offset(SESSIONS_PER_PERSON_MAX - 1);
  await db.delete(sessions).where(inArray(sessions.hash, oldest));
}

export const renameAccount = command<PeopleStore["renameAccount"]>(async (tx, accountId, name, audit) => {
  const { accounts } = tx.tables;
  const isAccount = eq(accounts.id, accountId);
  const renamed = await tx.db.update(accounts).set({ name }).where(isAccount).returning({ id: accounts.id });
  await addIfWritten(tx, renamed, audit);
});

/** Adds a person with an account of their own; returns whether the address was free and sign-ups are open. */
export const signUp = command(
  async (
    tx,
    { account, key, person, session, audit = [], allowedBy, untilHold }: SignUp,
    firstAccountId: string | null,
  ) => {
    const { accounts, apiKeys, members, sessions } = tx.tables;
    const isHold = and(eq(apiKeys.accountId, firstAccountId ?? ""), ne(apiKeys.hold, "none"));
    if (untilHold === true && (await hasRow(tx, apiKeys, isHold))) return false;
    if (!(await addPerson(tx, person))) return false;
    const allowedAt = allowedBy === undefined ? null : account.createdAt;
    await tx.db.insert(accounts).values({ ...account, allowedAt, allowedBy });
    await tx.db.insert(apiKeys).values(key);
    await tx.db.insert(members).values({ accountId: account.id, personId: person.id, joinedAt: person.createdAt });
    await tx.db.insert(sessions).values(session);
    for (const entry of audit) await addToAudit(tx, entry);
    return true;
  },
  ({ untilHold }) => (untilHold === true ? [signUpLock] : []),
);

export const addSession = command<PeopleStore["addSession"]>(
  async (tx, session, passwordHash, audit) => {
    const { people, sessions } = tx.tables;
    const hasPassword = hasValues(people, { id: session.personId, passwordHash });
    if (!(await hasRow(tx, people, hasPassword))) return false;
    await tx.db.insert(sessions).values(session);
    await addToAudit(tx, audit);
    await endOldest(tx, session);
    return true;
  },
  ({ personId }) => [personLock(personId)],
);

export const renewSessionSecret = command<PeopleStore["renewSessionSecret"]>(
  async ({ db, tables: { people, sessions } }, hash, secretHash, passwordHash) => {
    const owner = db.select({ id: people.id }).from(people);
    const isOwner = and(eq(people.id, sessions.personId), eq(people.passwordHash, passwordHash));
    const isSession = and(eq(sessions.hash, hash), exists(owner.where(isOwner)));
    await db.update(sessions).set({ secretHash }).where(isSession);
  },
);

export const endSession = command<PeopleStore["endSession"]>(async (tx, hash, audit) => {
  const { sessions } = tx.tables;
  const ended = await tx.db.delete(sessions).where(eq(sessions.hash, hash)).returning({ hash: sessions.hash });
  await addIfWritten(tx, ended, audit);
});

export const endSessions = command<PeopleStore["endSessions"]>(async (tx, personId, which, audit) => {
  const { sessions } = tx.tables;
  const isChosen = "only" in which ? eq(sessions.hash, which.only) : ne(sessions.hash, which.except);
  const ended = await tx.db
    .delete(sessions)
    .where(and(eq(sessions.personId, personId), isChosen))
    .returning({ hash: sessions.hash });
  await addIfWritten(tx, ended, audit);
  return ended.length;
});

export const sessionSeen = command<PeopleStore["sessionSeen"]>(async ({ db, tables }, hash, at) => {
  const { members, sessions } = tables;
  const [seen] = await db
    .update(sessions)
    .set({ lastSeenAt: at })
    .where(eq(sessions.hash, hash))
    .returning({ accountId: sessions.accountId, personId: sessions.personId });
  if (seen === undefined) return;
  await db.update(members).set({ lastSeenAt: at }).where(hasValues(members, seen));
});

export const switchAccount = command<PeopleStore["switchAccount"]>(async (tx, hash, accountId, at) => {
  const personId = await switchSession(tx, hash, accountId);
  if (personId === null) return false;
  const { members } = tx.tables;
  await tx.db.update(members).set({ lastSeenAt: at }).where(hasValues(members, { accountId, personId }));
  return true;
});

async function hasMember(tx: Tx, accountId: string): Promise<boolean> {
  return hasRow(tx, tx.tables.members, eq(tx.tables.members.accountId, accountId));
}

export const offer = command<PeopleStore["offer"]>(
  async (tx, link) => {
    const { welcomeLinks } = tx.tables;
    const { accountId, personId } = link;
    if (personId === null && (await hasMember(tx, accountId))) return false;
    const isForSame = personId === null ? isNull(welcomeLinks.personId) : eq(welcomeLinks.personId, personId);
    await tx.db.delete(welcomeLinks).where(and(eq(welcomeLinks.accountId, accountId), isForSame));
    await tx.db.insert(welcomeLinks).values(link);
    return true;
  },
  ({ accountId }) => [accountLock(accountId)],
);

export const welcome = command<PeopleStore["welcome"]>(
  async (tx, link, person, session, audit) => {
    const { members, sessions, welcomeLinks } = tx.tables;
    const { accountId, createdAt } = session;
    const isInvitation = and(eq(welcomeLinks.accountId, accountId), isNull(welcomeLinks.personId));
    const isLive = and(eq(welcomeLinks.hash, link), gt(welcomeLinks.expiresAt, createdAt), isInvitation);
    if (!(await hasRow(tx, welcomeLinks, isLive)) || (await hasMember(tx, accountId))) return "gone";
    if (!(await addPerson(tx, person))) return "email_taken";
    await tx.db.insert(members).values({ accountId, personId: person.id, joinedAt: createdAt });
    await tx.db.insert(sessions).values(session);
    await tx.db.delete(welcomeLinks).where(eq(welcomeLinks.hash, link));
    await addToAudit(tx, audit);
    return "taken";
  },
  (_link, _person, { accountId }) => [accountLock(accountId)],
);

export const renewPassword = command<PeopleStore["renewPassword"]>(
  async (tx, link, passwordHash, session, audit) => {
    const { people, sessions, welcomeLinks } = tx.tables;
    const { personId, createdAt } = session;
    const isLive = and(eq(welcomeLinks.hash, link), gt(welcomeLinks.expiresAt, createdAt));
    const spent = await tx.db
      .delete(welcomeLinks)
      .where(and(isLive, eq(welcomeLinks.personId, personId)))
      .returning({ hash: welcomeLinks.hash });
    if (spent.length === 0) return false;
    await tx.db.update(people).set({ passwordHash }).where(eq(people.id, personId));
    await tx.db.insert(sessions).values(session);
    await addToAudit(tx, audit);
    await endOthers(tx, session);
    return true;
  },
  (_link, _passwordHash, { personId }) => [personLock(personId)],
);

export const changePassword = command<PeopleStore["changePassword"]>(
  async (tx, session, passwordHash, nextHash, audit) => {
    const { members, people, sessions, welcomeLinks } = tx.tables;
    const { personId } = session;
    const changed = await tx.db
      .update(people)
      .set({ passwordHash: nextHash })
      .where(hasValues(people, { id: personId, passwordHash }))
      .returning({ id: people.id });
    if (changed.length === 0) return false;
    await tx.db.insert(sessions).values(session);
    await addToAudit(tx, audit);
    await endOthers(tx, session);
    const own = tx.db.select({ id: members.accountId }).from(members).where(eq(members.personId, personId));
    const isReset = and(inArray(welcomeLinks.accountId, own), eq(welcomeLinks.personId, personId));
    await tx.db.delete(welcomeLinks).where(isReset);
    return true;
  },
  ({ personId }) => [personLock(personId)],
);

export const prune = command<PeopleStore["prune"]>(async (tx, now) => {
  const { sessions, welcomeLinks } = tx.tables;
  const pruned = await deleteSome(tx, sessions.hash, lte(sessions.expiresAt, now));
  return pruned + (await deleteSome(tx, welcomeLinks.hash, lte(welcomeLinks.expiresAt, now))) > 0;
});

export function memberColumns({ people, members }: Tables) {
  const { id, email, passwordHash, createdAt } = people;
  return { id, email, passwordHash, createdAt, accountId: members.accountId, role: members.role };
}

export function memberOf(row: PersonRow & Omit<Member, "person">): Member {
  const { accountId, role, id, email, passwordHash, createdAt } = row;
  return { person: { id, email, passwordHash, createdAt }, accountId, role };
}

/** The account that somebody used last, else the one that they joined first, comes first. */
export function lastUsedFirst({ members: { lastSeenAt, joinedAt, accountId } }: Tables) {
  return [desc(sql`coalesce(${lastSeenAt}, 0)`), joinedAt, accountId];
}

/** Asked with each page. The join ends a session of someone who left the account. */
const SESSION = prepare({ hash: "text", now: "time" }, ({ db, tables }, arg) => {
  const { members, sessions, people } = tables;
  const isMember = and(eq(members.accountId, sessions.accountId), eq(members.personId, sessions.personId));
  const other = alias(members, "other");
  const others = db.select({ id: other.accountId }).from(other);
  const isOther = and(eq(other.personId, members.personId), ne(other.accountId, members.accountId));
  const hasOthers = sql<boolean>`${exists(others.where(isOther))}`.mapWith(Boolean).as("has_others");
  return db
    .select({ ...memberColumns(tables), secretHash: sessions.secretHash, lastSeenAt: sessions.lastSeenAt, hasOthers })
    .from(sessions)
    .innerJoin(people, eq(people.id, sessions.personId))
    .innerJoin(members, isMember)
    .where(and(eq(sessions.hash, arg.hash), gt(sessions.expiresAt, arg.now)));
});

/** People, their sessions and welcome links. */
export function createPeopleStore({ reader, writer }: Connection): PeopleStore {
  const { db, tables } = reader.dialect;
  const { accounts, members, people, sessions, welcomeLinks } = tables;
  /** People with their accounts. */
  const joined = (condition: SQL | undefined) =>
    db
      .select(memberColumns(tables))
      .from(people)
      .innerJoin(members, eq(members.personId, people.id))
      .where(condition)
      .limit(1);
  return {
    ...writer.methods({ renameAccount, addSession, renewSessionSecret, endSession, endSessions, sessionSeen }),
    ...writer.methods({ switchAccount, offer, welcome, renewPassword, changePassword, prune }),
    async find(email) {
      const ofPerson = joined(eq(people.emailKey, emailKey(email))).orderBy(...lastUsedFirst(tables));
      const member = await get(reader, ofPerson);
      return member === null ? null : memberOf(member);
    },
    async labelOf(accountId) {
      const firstJoined = joined(eq(members.accountId, accountId)).orderBy(members.joinedAt, members.personId);
      const [named, first] = await Promise.all([
        get(reader, db.select({ name: accounts.name }).from(accounts).where(eq(accounts.id, accountId))),
        get(reader, firstJoined),
      ]);
      return { name: named?.name ?? null, email: first?.email ?? null };
    },
    async mayApprove(accountId, email) {
      const isIn = and(eq(people.emailKey, emailKey(email)), eq(members.accountId, accountId));
      const member = await get(reader, joined(isIn));
      return member !== null && mayDo(member.role, "approve");
    },
    async signUp(wanted) {
      const firstAccountId = wanted.untilHold === true ? await readFirstId(reader) : null;
      return writer.run(signUp, wanted, firstAccountId);
    },
    async session(hash, now) {
      const found = await SESSION.get(reader, { hash, now });
      if (found === null) return null;
      const { secretHash, lastSeenAt, hasOthers } = found;
      return { ...memberOf(found), secretHash, lastSeenAt, hasOthers };
    },
    sessionsOf(personId, now) {
      const live = db
        .select()
        .from(sessions)
        .where(and(eq(sessions.personId, personId), gt(sessions.expiresAt, now)));
      const newestFirst = live.orderBy(desc(sessions.createdAt), desc(sessions.hash));
      return all(reader, newestFirst.limit(SESSIONS_PER_PERSON_MAX));
    },
    link(hash, now) {
      const { personId, accountId, expiresAt } = welcomeLinks;
      const live = db
        .select({ personId, accountId, email: people.email, role: members.role })
        .from(welcomeLinks)
        .leftJoin(people, eq(people.id, personId))
        .leftJoin(members, and(eq(members.accountId, accountId), eq(members.personId, personId)))
        .where(and(eq(welcomeLinks.hash, hash), gt(expiresAt, now)));
      return get(reader, live);
    },
  };
}
