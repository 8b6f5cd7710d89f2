/** People: sign-up, sessions and passwords; behind it the people of an account, their roles and invitations. */
import {
  and,
  desc,
  eq,
  exists,
  getTableColumns,
  gt,
  inArray,
  isNull,
  lte,
  ne,
  notExists,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import {
  emailKey,
  type Member,
  type PeopleStore,
  type PersonRow,
  type SessionRow,
} from "../../src/core/account-store.ts";
import { INVITATIONS_OPEN_MAX, PEOPLE_PER_ACCOUNT_MAX, SESSIONS_PER_PERSON_MAX } from "../../src/core/limits.ts";
import { mayDo } from "../../src/core/roles.ts";
import { accountLock, personLock, rulesLock, signUpLock } from "../sql/locks.ts";
import { all, countRows, findRow, get, hasRow, hasValues, prepare, qb } from "../sql/read.ts";
import type { Reader } from "../sql/dialect.ts";
import { firstEmail, hasHoldIn, readFirst } from "./accounts.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, deleteSome, type Tx } from "./command.ts";
import type { Invitation, Joining, TeamStore } from "../../src/core/team-store.ts";
import { isOfManager } from "./makers.ts";
import { addNotifications, pruneNotifications } from "./outbox.ts";
import { endGrantsOf } from "./grants.ts";
import { endLinksOf } from "./links.ts";
import { revokeConnections } from "./oauth.ts";
import {
  accounts,
  apiKeys,
  identities,
  invitations,
  members,
  outbox,
  people,
  sessions,
  welcomeLinks,
} from "../tables.ts";
import type { StoreAccess } from "../sql/writer.ts";

/** Adds a person. Returns whether their address was free. */
async function addPerson({ db }: Tx, person: PersonRow): Promise<boolean> {
  const added = await db
    .insert(people)
    .values({ ...person, emailKey: emailKey(person.email) })
    .onConflictDoNothing({ target: people.emailKey })
    .returning();
  return added.length > 0;
}

/** Switches a session to another account of its person. Returns the person's id, or null if they are not in that account. */
async function switchSession(tx: Tx, hash: string, accountId: string): Promise<string | null> {
  const { personId } = (await findRow(tx, sessions, { hash })) ?? {};
  if (personId === undefined || !(await hasRow(tx, members, hasValues(members, { accountId, personId })))) return null;
  await tx.db.update(sessions).set({ accountId }).where(eq(sessions.hash, hash));
  return personId;
}

/** Ends all sessions of a person but this one. */
async function endOthers({ db }: Tx, { personId, hash }: SessionRow): Promise<void> {
  await db.delete(sessions).where(and(eq(sessions.personId, personId), ne(sessions.hash, hash)));
}

/** Ends the oldest sessions beyond the bound, but never this one, which might look oldest if the clock was set back. */
async function endOldest({ db }: Tx, { personId, hash }: SessionRow): Promise<void> {
  const others = qb.select({ hash: sessions.hash }).from(sessions);
  const newestFirst = others
    .where(and(eq(sessions.personId, personId), ne(sessions.hash, hash)))
    .orderBy(desc(sessions.createdAt), desc(sessions.hash));
  const oldest = newestFirst.limit(Number.MAX_SAFE_INTEGER).offset(SESSIONS_PER_PERSON_MAX - 1);
  await db.delete(sessions).where(inArray(sessions.hash, oldest));
}

export const renameAccount = command<PeopleStore["renameAccount"]>(async (tx, accountId, name, audit) => {
  const isAccount = eq(accounts.id, accountId);
  const renamed = tx.db.update(accounts).set({ name }).where(isAccount).returning();
  await addIfWritten(tx, renamed, audit);
});

export const signUp = command<PeopleStore["signUp"]>(
  async (tx, { account, key, person, session, audit = [], allowedBy, untilHold }) => {
    if (untilHold === true && (await hasRow(tx, apiKeys, hasHoldIn((await readFirst(tx))?.id)))) return false;
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
  async ({ db }, hash, secretHash, passwordHash) => {
    const owner = qb.select({ id: people.id }).from(people);
    const isOwner = and(eq(people.id, sessions.personId), eq(people.passwordHash, passwordHash));
    const isSession = and(eq(sessions.hash, hash), exists(owner.where(isOwner)));
    await db.update(sessions).set({ secretHash }).where(isSession);
  },
);

export const endSession = command<PeopleStore["endSession"]>(async (tx, hash, audit) => {
  const ended = tx.db.delete(sessions).where(eq(sessions.hash, hash)).returning();
  await addIfWritten(tx, ended, audit);
});

export const endSessions = command<PeopleStore["endSessions"]>(async (tx, personId, which, audit) => {
  const isChosen = "only" in which ? eq(sessions.hash, which.only) : ne(sessions.hash, which.except);
  const ended = await tx.db
    .delete(sessions)
    .where(and(eq(sessions.personId, personId), isChosen))
    .returning();
  if (ended.length > 0) await addToAudit(tx, audit);
  return ended.length;
});

export const sessionSeen = command<PeopleStore["sessionSeen"]>(async ({ db }, hash, at) => {
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
  await tx.db.update(members).set({ lastSeenAt: at }).where(hasValues(members, { accountId, personId }));
  return true;
});

const hasMember = (tx: Tx, accountId: string) => hasRow(tx, members, eq(members.accountId, accountId));

/** The links that reset a person's password, which is one for all their accounts. */
function isResetFor(personId: string): SQL | undefined {
  const own = qb.select({ id: members.accountId }).from(members).where(eq(members.personId, personId));
  return and(inArray(welcomeLinks.accountId, own), eq(welcomeLinks.personId, personId));
}

export const offer = command<PeopleStore["offer"]>(
  async (tx, link) => {
    const { accountId, personId } = link;
    if (personId === null && (await hasMember(tx, accountId))) return false;
    const isFirst = and(eq(welcomeLinks.accountId, accountId), isNull(welcomeLinks.personId));
    await tx.db.delete(welcomeLinks).where(personId === null ? isFirst : isResetFor(personId));
    await tx.db.insert(welcomeLinks).values(link);
    return true;
  },
  ({ accountId, personId }) => [accountLock(accountId), ...(personId === null ? [] : [personLock(personId)])],
);

export const welcome = command<PeopleStore["welcome"]>(
  async (tx, link, person, session, audit) => {
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
    const { personId, createdAt } = session;
    const isLive = and(eq(welcomeLinks.hash, link), gt(welcomeLinks.expiresAt, createdAt));
    const spent = await tx.db
      .delete(welcomeLinks)
      .where(and(isLive, eq(welcomeLinks.personId, personId)))
      .returning();
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
    const { personId } = session;
    const changed = await tx.db
      .update(people)
      .set({ passwordHash: nextHash })
      .where(hasValues(people, { id: personId, passwordHash }))
      .returning();
    if (changed.length === 0) return false;
    await tx.db.insert(sessions).values(session);
    await addToAudit(tx, audit);
    await endOthers(tx, session);
    await tx.db.delete(welcomeLinks).where(isResetFor(personId));
    return true;
  },
  ({ personId }) => [personLock(personId)],
);

export const pruneSessions = command<PeopleStore["prune"]>(async (tx, now) => {
  const hasSessions = await deleteSome(tx, [sessions.hash], lte(sessions.expiresAt, now));
  return (await deleteSome(tx, [welcomeLinks.hash], lte(welcomeLinks.expiresAt, now))) || hasSessions;
});

const { emailKey: _key, ...PERSON } = getTableColumns(people);
const MEMBER = { ...PERSON, accountId: members.accountId, role: members.role };

/** Orders accounts by last use, newest first, then by when the person joined. */
const LAST_USED_FIRST = [desc(sql`coalesce(${members.lastSeenAt}, 0)`), members.joinedAt, members.accountId];

/** The person who meets a condition, with their last-used account. */
async function findMember(reader: Reader, condition: SQL | undefined): Promise<Member | null> {
  const joined = qb.select(MEMBER).from(people).innerJoin(members, eq(members.personId, people.id));
  const lastUsedFirst = joined.where(condition).orderBy(...LAST_USED_FIRST);
  const found = await get(reader, lastUsedFirst.limit(1));
  return found === null ? null : toMember(found);
}

function toMember(row: PersonRow & Omit<Member, "person">): Member {
  const { accountId, role, id, email, passwordHash, createdAt } = row;
  return { person: { id, email, passwordHash, createdAt }, accountId, role };
}

/** Read for each page. A session of somebody who has left the account finds no member, so it is not found. */
const SESSION = prepare({ hash: "text", now: "time" }, (arg) => {
  const isMember = and(eq(members.accountId, sessions.accountId), eq(members.personId, sessions.personId));
  const other = alias(members, "other");
  const others = qb.select({ id: other.accountId }).from(other);
  const isOther = and(eq(other.personId, members.personId), ne(other.accountId, members.accountId));
  const hasOthers = sql<boolean>`${exists(others.where(isOther))}`.mapWith(Boolean).as("has_others");
  return qb
    .select({ ...MEMBER, secretHash: sessions.secretHash, lastSeenAt: sessions.lastSeenAt, hasOthers })
    .from(sessions)
    .innerJoin(people, eq(people.id, sessions.personId))
    .innerJoin(members, isMember)
    .where(and(eq(sessions.hash, arg.hash), gt(sessions.expiresAt, arg.now)));
});

/** Read for each `GET /v1/account`. */
const LABEL = prepare({ accountId: "text" }, (arg) =>
  qb
    .select({ name: accounts.name, email: firstEmail(accounts.id) })
    .from(accounts)
    .where(eq(accounts.id, arg.accountId)),
);

/** The store of people, their sessions and welcome links. */
export function createPeopleStore({ reader, writer }: StoreAccess): PeopleStore {
  return {
    ...writer.methods({ signUp, renameAccount, addSession, renewSessionSecret, endSession, endSessions, sessionSeen }),
    ...writer.methods({ switchAccount, offer, welcome, renewPassword, changePassword, prune: pruneSessions }),
    find: (email) => findMember(reader, eq(people.emailKey, emailKey(email))),
    async findLabel(accountId) {
      return (await LABEL.get(reader, { accountId })) ?? { name: null, email: null };
    },
    async mayApprove(accountId, email) {
      const isIn = and(eq(people.emailKey, emailKey(email)), eq(members.accountId, accountId));
      const member = await findMember(reader, isIn);
      return member !== null && mayDo(member.role, "approve");
    },
    async session(hash, now) {
      const found = await SESSION.get(reader, { hash, now });
      if (found === null) return null;
      const { secretHash, lastSeenAt, hasOthers } = found;
      return { ...toMember(found), secretHash, lastSeenAt, hasOthers };
    },
    sessionsOf(personId, now) {
      const live = qb
        .select()
        .from(sessions)
        .where(and(eq(sessions.personId, personId), gt(sessions.expiresAt, now)));
      const newestFirst = live.orderBy(desc(sessions.createdAt), desc(sessions.hash));
      return all(reader, newestFirst.limit(SESSIONS_PER_PERSON_MAX));
    },
    link(hash, now) {
      const { personId, accountId, expiresAt } = welcomeLinks;
      const live = qb
        .select({ personId, accountId, email: people.email, role: members.role })
        .from(welcomeLinks)
        .leftJoin(people, eq(people.id, personId))
        .leftJoin(members, and(eq(members.accountId, accountId), eq(members.personId, personId)))
        .where(and(eq(welcomeLinks.hash, hash), gt(expiresAt, now)));
      return get(reader, live);
    },
  };
}

/** See `TeamStore.managers`. `union` ends the recursion even if rows were altered into a cycle. */
function selectManagers(accountId: string, now: Date): SQL<{ readonly id: string }> {
  const { id, replaces } = apiKeys;
  const isOwner = and(sql`${apiKeys.accountId} = ${accountId}`, sql`${apiKeys.role} = 'owner'`);
  const isLive = and(isNull(apiKeys.revokedAt), or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, now)));
  return sql`with recursive managers (id) as (
      select ${id} from ${apiKeys} where ${and(isOwner, isLive)}
      union
      select ${replaces} from managers join ${apiKeys} on ${id} = managers.id where ${replaces} is not null)
    select managers.id as id from managers
    union all
    select ${members.personId} as id from ${members} where ${members.accountId} = ${accountId} and ${members.role} = 'owner'`;
}

/** Why somebody can't leave an account or stop owning it: they are not in it, or nobody else owns it. Null: they can. */
async function removalRefusal(tx: Tx, accountId: string, personId: string): Promise<"gone" | "last_owner" | null> {
  const member = await findRow(tx, members, { accountId, personId });
  if (member === null) return "gone";
  const isOther = and(hasValues(members, { accountId, role: "owner" }), ne(members.personId, personId));
  return member.role !== "owner" || (await hasRow(tx, members, isOther)) ? null : "last_owner";
}

export const changeRole = command<TeamStore["changeRole"]>(
  async (tx, accountId, personId, role, audit, by) => {
    if (by !== undefined && !(await isOfManager(tx, { accountId, ...by }))) return "not_manager";
    const refusal = await removalRefusal(tx, accountId, personId);
    if (refusal === "gone" || (refusal !== null && role !== "owner")) return refusal;
    await tx.db.update(members).set({ role }).where(hasValues(members, { accountId, personId }));
    if (role !== "owner") await revokeConnections(tx, { accountId, personId, at: audit.at });
    await addToAudit(tx, audit);
    if (mayDo(role, "approve")) return "done";
    await endGrantsOf(tx, { accountId, makerId: personId, at: audit.at, by: audit.actor });
    await endLinksOf(tx, { accountId, personId, at: audit.at });
    return "done";
  },
  (accountId) => [accountLock(accountId), rulesLock(accountId)],
);

/** Removes a person from an account. If they are in no other, the person is deleted, and the address is free again. */
export const removeMember = command<TeamStore["remove"]>(
  async (tx, accountId, personId, audit, by) => {
    if (by !== undefined && !(await isOfManager(tx, { accountId, ...by }))) return "not_manager";
    const refusal = await removalRefusal(tx, accountId, personId);
    if (refusal !== null) return refusal;
    await revokeConnections(tx, { accountId, personId, at: audit.at });
    await addToAudit(tx, audit);
    await endGrantsOf(tx, { accountId, makerId: personId, at: audit.at, by: audit.actor });
    await endLinksOf(tx, { accountId, personId, at: audit.at });
    for (const table of [members, sessions, welcomeLinks]) {
      await tx.db.delete(table).where(and(eq(table.accountId, accountId), eq(table.personId, personId)));
    }
    if (await hasRow(tx, members, eq(members.personId, personId))) return "done";
    await tx.db.delete(people).where(eq(people.id, personId));
    await tx.db.delete(sessions).where(eq(sessions.personId, personId));
    await tx.db.delete(identities).where(eq(identities.personId, personId));
    return "done";
  },
  (accountId, personId) => [accountLock(accountId), rulesLock(accountId), personLock(personId)],
);

export const invite = command<TeamStore["invite"]>(
  async (tx, invitation, mail, audit) => {
    const { id, accountId, email, createdAt: at } = invitation;
    const key = emailKey(email);
    const known = await findRow(tx, people, { emailKey: key });
    const isMember = hasValues(members, { accountId, personId: known?.id ?? "" });
    if (known !== null && (await hasRow(tx, members, isMember))) return "member";
    const isOther = and(eq(invitations.accountId, accountId), ne(invitations.emailKey, key));
    const open = await countRows(tx, invitations, and(isOther, gt(invitations.expiresAt, at)));
    if (open >= INVITATIONS_OPEN_MAX) return "full";
    await tx.db.delete(invitations).where(hasValues(invitations, { accountId, emailKey: key }));
    await tx.db.insert(invitations).values({ ...invitation, emailKey: key });
    const message = { kind: "mail", event: "invited", target: email } as const;
    if (mail !== null) await addNotifications(tx, { actionId: id, accountId }, [{ ...mail, message }], at);
    await addToAudit(tx, audit);
    return "done";
  },
  ({ accountId }) => [accountLock(accountId)],
);

export const withdraw = command<TeamStore["withdraw"]>(
  async (tx, accountId, id, audit) => {
    const isInvitation = hasValues(invitations, { id, accountId });
    const withdrawn = tx.db.delete(invitations).where(isInvitation).returning();
    return addIfWritten(tx, withdrawn, audit);
  },
  (accountId) => [accountLock(accountId)],
);

/** Whether an invitation can be used and its account has room. */
async function mayJoin(tx: Tx, { invitation, at }: Joining): Promise<boolean> {
  const { id, accountId } = invitation;
  const { createdBy, createdById } = invitations;
  // `isByManager` (`src/core/account-store.ts`) has the same rule for one invitation.
  const isByManager = sql`case when ${createdById} is null then ${createdBy} not like 'user:%'
    else ${createdById} in (${selectManagers(accountId, at)}) end`;
  const isOpen = and(eq(invitations.id, id), gt(invitations.expiresAt, at), isByManager);
  if (!(await hasRow(tx, invitations, isOpen))) return false;
  return (await countRows(tx, members, eq(members.accountId, accountId))) < PEOPLE_PER_ACCOUNT_MAX;
}

export const join = command<TeamStore["join"]>(
  async (tx, joining) => {
    const { invitation, person, isNew, session, identity, at, audit } = joining;
    const { accountId, role } = invitation;
    if (!(await mayJoin(tx, joining))) return false;
    // Only with the password that was checked.
    const isSame = hasValues(people, { id: person.id, passwordHash: person.passwordHash });
    if (!(isNew ? await addPerson(tx, person) : await hasRow(tx, people, isSame))) return false;
    const added = await tx.db
      .insert(members)
      .values({ accountId, personId: person.id, joinedAt: at, role, lastSeenAt: at })
      .onConflictDoNothing()
      .returning();
    if (added.length === 0) return false;
    await tx.db.delete(invitations).where(eq(invitations.id, invitation.id));
    if (identity !== undefined) {
      await tx.db.insert(identities).values({ ...identity, personId: person.id, createdAt: at });
    }
    for (const entry of audit) await addToAudit(tx, entry);
    if (typeof session === "string") await switchSession(tx, session, accountId);
    else await tx.db.insert(sessions).values(session);
    return true;
  },
  ({ invitation, person }) => [accountLock(invitation.accountId), personLock(person.id)],
);

export const signIn = command<TeamStore["signIn"]>(
  async (tx, session, { issuer, subject }, { audit, dropsPassword }) => {
    const { accountId, personId, createdAt } = session;
    const isThis = hasValues(members, { accountId, personId });
    if (!(await hasRow(tx, members, isThis))) return false;
    // Adds nothing if the person has another subject at the provider, or the subject is another person's.
    await tx.db.insert(identities).values({ issuer, subject, personId, createdAt }).onConflictDoNothing();
    if (!(await hasRow(tx, identities, hasValues(identities, { issuer, subject, personId })))) return false;
    await tx.db.insert(sessions).values(session);
    for (const entry of audit) await addToAudit(tx, entry);
    await tx.db.update(members).set({ lastSeenAt: createdAt }).where(isThis);
    if (dropsPassword) {
      await tx.db.update(people).set({ passwordHash: "" }).where(eq(people.id, personId));
      await endOthers(tx, session);
    }
    await endOldest(tx, session);
    return true;
  },
  ({ personId }) => [personLock(personId)],
);

export const pruneInvitations = command<TeamStore["prune"]>(async (tx, now) => {
  const hasMore = await deleteSome(tx, [invitations.id], lte(invitations.expiresAt, now));
  const open = qb.select({ id: invitations.id }).from(invitations).where(eq(invitations.id, outbox.actionId));
  return (await pruneNotifications(tx, "inv_", notExists(open))) || hasMore;
});

/** The store of the people in accounts, their invitations and identities. */
export function createTeamStore({ reader, writer }: StoreAccess): TeamStore {
  const membersWhere = (condition: SQL | undefined) => {
    const { personId, role, joinedAt, lastSeenAt } = members;
    return qb
      .select({ personId, email: people.email, role, joinedAt, lastSeenAt })
      .from(members)
      .innerJoin(people, eq(people.id, personId))
      .where(condition);
  };
  /** Invitations that have not expired, the newest first. */
  const liveWhere = (condition: SQL, now: Date) => {
    const { emailKey: _, ...columns } = getTableColumns(invitations);
    return qb
      .select(columns)
      .from(invitations)
      .where(and(condition, gt(invitations.expiresAt, now)))
      .orderBy(desc(invitations.createdAt), desc(invitations.id));
  };
  return {
    ...writer.methods({ changeRole, remove: removeMember, invite, withdraw, join, signIn, prune: pruneInvitations }),
    members(accountId, limit) {
      const ofAccount = membersWhere(eq(members.accountId, accountId));
      return all(reader, ofAccount.orderBy(members.joinedAt, members.personId).limit(limit));
    },
    member: (accountId, personId) => get(reader, membersWhere(hasValues(members, { accountId, personId }))),
    async managers(accountId, now) {
      return new Set((await all(reader, selectManagers(accountId, now))).map(({ id }) => id));
    },
    accountsOf(personId, limit) {
      const email = firstEmail(members.accountId);
      const ofPerson = qb
        .select({ accountId: members.accountId, role: members.role, email, name: accounts.name })
        .from(members)
        .leftJoin(accounts, eq(accounts.id, members.accountId))
        .where(eq(members.personId, personId));
      return all(reader, ofPerson.orderBy(...LAST_USED_FIRST).limit(limit));
    },
    async invitations(accountId, now, limit) {
      const stored = await all(reader, liveWhere(eq(invitations.accountId, accountId), now).limit(limit));
      return stored.map(({ hash: _hash, ...invitation }): Invitation => invitation);
    },
    invitation(by, now) {
      const isIt = "hash" in by ? eq(invitations.hash, by.hash) : eq(invitations.id, by.id);
      return get(reader, liveWhere(isIt, now));
    },
    invitationsOf: (email, now, limit) =>
      all(reader, liveWhere(eq(invitations.emailKey, emailKey(email)), now).limit(limit)),
    identified({ issuer, subject }) {
      const isIdentity = hasValues(identities, { issuer, subject });
      const ofIdentity = qb.select({ id: identities.personId }).from(identities).where(isIdentity);
      return findMember(reader, inArray(people.id, ofIdentity));
    },
  };
}
