import { and, desc, eq, getTableColumns, gt, isNull, lte, ne, notExists, or, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { emailKey } from "../../src/core/account-store.ts";
import { INVITATIONS_OPEN_MAX, PEOPLE_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import { mayDo } from "../../src/core/roles.ts";
import type { Invitation, Joining, TeamStore } from "../../src/core/team-store.ts";
import type { Connection } from "../sql/context.ts";
import { hasValues } from "../sql/dialect.ts";
import { personLock, accountLock } from "../sql/locks.ts";
import { all, get } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, countRows, deleteSome, hasRow, type Tables, type Tx } from "./command.ts";
import { addNotifications } from "./outbox.ts";
import { endGrantsOf } from "./grants.ts";
import { revokeConnections } from "./oauth.ts";
import { addPerson, endOldest, endOthers, lastUsedFirst, memberColumns, memberOf, switchSession } from "./people.ts";

/** See `TeamStore.managers`. The builder has no recursion; `union` ends it, even if rows were altered into a cycle. */
function managersOf({ apiKeys, members }: Tables, accountId: string, now: Date): SQL<{ readonly id: string }> {
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

/** Why somebody can't stop to own an account or leave it: they are not in it, or nobody else owns it. */
async function refusalOf(tx: Tx, accountId: string, personId: string): Promise<"gone" | "last_owner" | null> {
  const { members } = tx.tables;
  const isMember = hasValues(members, { accountId, personId });
  const [member] = await tx.db.select({ role: members.role }).from(members).where(isMember);
  if (member === undefined) return "gone";
  const isOther = and(hasValues(members, { accountId, role: "owner" }), ne(members.personId, personId));
  return member.role !== "owner" || (await hasRow(tx, members, isOther)) ? null : "last_owner";
}

export const changeRole = command<TeamStore["changeRole"]>(
  async (tx, accountId, personId, role, audit) => {
    const refusal = await refusalOf(tx, accountId, personId);
    if (refusal === "gone" || (refusal !== null && role !== "owner")) return refusal;
    const { members } = tx.tables;
    await tx.db.update(members).set({ role }).where(hasValues(members, { accountId, personId }));
    if (role !== "owner") await revokeConnections(tx, { accountId, personId, at: audit.at });
    await addToAudit(tx, audit);
    if (!mayDo(role, "approve")) await endGrantsOf(tx, { accountId, makerId: personId, at: audit.at, by: audit.actor });
    return "done";
  },
  (accountId) => [accountLock(accountId)],
);

/** Removes a person from an account. Whoever is in no other is forgotten: their address is free again. */
export const remove = command<TeamStore["remove"]>(
  async (tx, accountId, personId, audit) => {
    const { identities, members, people, sessions, welcomeLinks } = tx.tables;
    const refusal = await refusalOf(tx, accountId, personId);
    if (refusal !== null) return refusal;
    await revokeConnections(tx, { accountId, personId, at: audit.at });
    await addToAudit(tx, audit);
    await endGrantsOf(tx, { accountId, makerId: personId, at: audit.at, by: audit.actor });
    for (const table of [members, sessions, welcomeLinks]) {
      await tx.db.delete(table).where(and(eq(table.accountId, accountId), eq(table.personId, personId)));
    }
    if (await hasRow(tx, members, eq(members.personId, personId))) return "done";
    await tx.db.delete(people).where(eq(people.id, personId));
    await tx.db.delete(sessions).where(eq(sessions.personId, personId));
    await tx.db.delete(identities).where(eq(identities.personId, personId));
    return "done";
  },
  (accountId, personId) => [accountLock(accountId), personLock(personId)],
);

export const invite = command<TeamStore["invite"]>(
  async (tx, invitation, mail, audit) => {
    const { invitations, members, people } = tx.tables;
    const { id, accountId, email, createdAt: at } = invitation;
    const key = emailKey(email);
    const known = await tx.db
      .select({ id: people.id })
      .from(members)
      .innerJoin(people, eq(people.id, members.personId))
      .where(and(eq(members.accountId, accountId), eq(people.emailKey, key)));
    if (known.length > 0) return "member";
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
    const { invitations } = tx.tables;
    const isInvitation = hasValues(invitations, { id, accountId });
    const withdrawn = await tx.db.delete(invitations).where(isInvitation).returning({ id: invitations.id });
    return addIfWritten(tx, withdrawn, audit);
  },
  (accountId) => [accountLock(accountId)],
);

/** Whether an invitation can be used and its account has room. */
async function mayJoin(tx: Tx, { invitation, at }: Joining): Promise<boolean> {
  const { invitations, members } = tx.tables;
  const { id, accountId } = invitation;
  const { createdBy, createdById } = invitations;
  // `src/core/makers.ts` has the same rule for one.
  const isByManager = sql`case when ${createdById} is null then ${createdBy} not like 'user:%'
    else ${createdById} in (${managersOf(tx.tables, accountId, at)}) end`;
  const isOpen = and(eq(invitations.id, id), gt(invitations.expiresAt, at), isByManager);
  if (!(await hasRow(tx, invitations, isOpen))) return false;
  return (await countRows(tx, members, eq(members.accountId, accountId))) < PEOPLE_PER_ACCOUNT_MAX;
}

export const join = command<TeamStore["join"]>(
  async (tx, joining) => {
    const { identities, invitations, members, people, sessions } = tx.tables;
    const { invitation, person, isNew, session, identity, at, audit } = joining;
    const { accountId, role } = invitation;
    if (!(await mayJoin(tx, joining))) return false;
    // The password is the one that was checked.
    const isSame = hasValues(people, { id: person.id, passwordHash: person.passwordHash });
    if (!(isNew ? await addPerson(tx, person) : await hasRow(tx, people, isSame))) return false;
    const added = await tx.db
      .insert(members)
      .values({ accountId, personId: person.id, joinedAt: at, role, lastSeenAt: at })
      .onConflictDoNothing()
      .returning({ personId: members.personId });
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
    const { identities, members, people, sessions } = tx.tables;
    const { accountId, personId, createdAt } = session;
    const isThis = hasValues(members, { accountId, personId });
    if (!(await hasRow(tx, members, isThis))) return false;
    // Not where the person has another subject of the provider, or the subject is of another person.
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

/**
 * Deletes invitations that have expired, and mails of those that were accepted, withdrawn or have expired; returns whether
 * there may be more. An attempt that is under way ends first.
 */
export const prune = command<TeamStore["prune"]>(async (tx, now) => {
  const { invitations, outbox } = tx.tables;
  const pruned = await deleteSome(tx, invitations.id, lte(invitations.expiresAt, now));
  const open = tx.db.select({ id: invitations.id }).from(invitations).where(eq(invitations.id, outbox.actionId));
  const isInvitation = sql`${outbox.actionId} >= 'inv_' and ${outbox.actionId} < 'inv\`'`;
  const isOver = and(isInvitation, ne(outbox.status, "active"), notExists(open));
  return pruned + (await deleteSome(tx, outbox.id, isOver)) > 0;
});

/** The people of accounts, their invitations and identities. */
export function createTeamStore({ reader, writer }: Connection): TeamStore {
  const { db, tables } = reader.dialect;
  const { accounts, identities, invitations, members, people } = tables;
  const membersWhere = (condition: SQL | undefined) => {
    const { personId, role, joinedAt, lastSeenAt } = members;
    return db
      .select({ personId, email: people.email, role, joinedAt, lastSeenAt })
      .from(members)
      .innerJoin(people, eq(people.id, personId))
      .where(condition);
  };
  /** Invitations that have not expired, the newest first. */
  const liveWhere = (condition: SQL, now: Date) => {
    const { emailKey: _, ...columns } = getTableColumns(invitations);
    return db
      .select(columns)
      .from(invitations)
      .where(and(condition, gt(invitations.expiresAt, now)))
      .orderBy(desc(invitations.createdAt), invitations.id);
  };
  return {
    ...writer.methods({ changeRole, remove, invite, withdraw, join, signIn, prune }),
    members(accountId, limit) {
      const ofAccount = membersWhere(eq(members.accountId, accountId));
      return all(reader, ofAccount.orderBy(members.joinedAt, members.personId).limit(limit));
    },
    member: (accountId, personId) => get(reader, membersWhere(hasValues(members, { accountId, personId }))),
    async managers(accountId, now) {
      return new Set((await all(reader, managersOf(tables, accountId, now))).map(({ id }) => id));
    },
    accountsOf(personId, limit) {
      const first = alias(members, "first_members");
      const emails = db.select({ email: people.email }).from(first).innerJoin(people, eq(people.id, first.personId));
      const ofAccount = emails.where(eq(first.accountId, members.accountId)).orderBy(first.joinedAt, first.personId);
      const email = sql<string | null>`${ofAccount.limit(1)}`.as("first_email");
      const ofPerson = db
        .select({ accountId: members.accountId, role: members.role, email, name: accounts.name })
        .from(members)
        .leftJoin(accounts, eq(accounts.id, members.accountId))
        .where(eq(members.personId, personId));
      return all(reader, ofPerson.orderBy(...lastUsedFirst(tables)).limit(limit));
    },
    async invitations(accountId, now, limit) {
      const stored = await all(reader, liveWhere(eq(invitations.accountId, accountId), now).limit(limit));
      return stored.map((row): Invitation => {
        const { hash: _, ...invitation } = row;
        return invitation;
      });
    },
    invitation(by, now) {
      const isIt = "hash" in by ? eq(invitations.hash, by.hash) : eq(invitations.id, by.id);
      return get(reader, liveWhere(isIt, now));
    },
    invitationsOf: (email, now, limit) =>
      all(reader, liveWhere(eq(invitations.emailKey, emailKey(email)), now).limit(limit)),
    async identified({ issuer, subject }) {
      const ofPerson = db
        .select(memberColumns(tables))
        .from(identities)
        .innerJoin(people, eq(people.id, identities.personId))
        .innerJoin(members, eq(members.personId, people.id))
        .where(hasValues(identities, { issuer, subject }));
      const found = await get(reader, ofPerson.orderBy(...lastUsedFirst(tables)).limit(1));
      return found === null ? null : memberOf(found);
    },
  };
}
