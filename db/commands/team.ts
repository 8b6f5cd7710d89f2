import {
  and,
  desc,
  eq,
  getTableColumns,
  gt,
  isNull,
  lte,
  ne,
  notExists,
  or,
  type Placeholder,
  type SQL,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import { emailKey } from "../../src/core/account-store.ts";
import { INVITATIONS_OPEN_MAX, PEOPLE_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import { mayDo } from "../../src/core/roles.ts";
import type { Invitation, Joining, TeamStore } from "../../src/core/team-store.ts";
import type { StoreContext } from "../sql/context.ts";
import { type Dialect, hasValues } from "../sql/dialect.ts";
import { personLock, accountLock } from "../sql/locks.ts";
import { read } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, countRows, deleteSome, hasRow, type Tables, type Tx } from "./command.ts";
import { addNotifications } from "./outbox.ts";
import { endGrantsOf } from "./grants.ts";
import { revokeConnections } from "./oauth.ts";
import { addPerson, endOldest, endOthers, lastUsedFirst, memberColumns, memberOf, switchSession } from "./people.ts";

/** See `TeamStore.managers`. The builder has no recursion; `union` ends it, even if rows were altered into a cycle. */
function managersOf(
  { apiKeys, members }: Pick<Tables, "apiKeys" | "members">,
  accountId: string | Placeholder,
  now: Date | Placeholder,
): SQL<{ readonly id: string }> {
  const { id, replaces } = apiKeys;
  const isOwner = and(sql`${apiKeys.accountId} = ${accountId}`, eq(apiKeys.role, "owner"));
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

const listed = ({ db, tables: { members, people } }: Dialect) => {
  const { personId, role, joinedAt, lastSeenAt } = members;
  return db
    .select({ personId, email: people.email, role, joinedAt, lastSeenAt })
    .from(members)
    .innerJoin(people, eq(people.id, personId));
};

const MEMBERS = read({ accountId: "text", limit: "number" }, (dialect, arg) => {
  const { accountId, joinedAt, personId } = dialect.tables.members;
  return listed(dialect).where(eq(accountId, arg.accountId)).orderBy(joinedAt, personId).limit(arg.limit);
});

const ONE = read({ accountId: "text", personId: "text" }, (dialect, arg) => {
  return listed(dialect).where(hasValues(dialect.tables.members, arg));
});

const ACCOUNTS = read({ personId: "text", limit: "number" }, ({ db, tables }, arg) => {
  const { members, people, accounts } = tables;
  const first = alias(members, "first_members");
  const emails = db.select({ email: people.email }).from(first).innerJoin(people, eq(people.id, first.personId));
  const email = emails.where(eq(first.accountId, members.accountId)).orderBy(first.joinedAt, first.personId).limit(1);
  return db
    .select({
      accountId: members.accountId,
      role: members.role,
      email: sql<string | null>`${email}`.as("first_email"),
      name: accounts.name,
    })
    .from(members)
    .leftJoin(accounts, eq(accounts.id, members.accountId))
    .where(eq(members.personId, arg.personId))
    .orderBy(...lastUsedFirst(tables))
    .limit(arg.limit);
});

/** Invitations that have not expired, the newest first. */
function live({ db, tables: { invitations } }: Dialect, condition: SQL, now: Placeholder) {
  const { emailKey: _, ...columns } = getTableColumns(invitations);
  return db
    .select(columns)
    .from(invitations)
    .where(and(condition, gt(invitations.expiresAt, now)))
    .orderBy(desc(invitations.createdAt), invitations.id);
}

const INVITATIONS = read({ accountId: "text", now: "time", limit: "number" }, (dialect, arg) =>
  live(dialect, eq(dialect.tables.invitations.accountId, arg.accountId), arg.now).limit(arg.limit),
);

const BY_HASH = read({ hash: "text", now: "time" }, (dialect, arg) =>
  live(dialect, eq(dialect.tables.invitations.hash, arg.hash), arg.now),
);

const BY_ID = read({ id: "text", now: "time" }, (dialect, arg) =>
  live(dialect, eq(dialect.tables.invitations.id, arg.id), arg.now),
);

const OF_ADDRESS = read({ emailKey: "text", now: "time", limit: "number" }, (dialect, arg) =>
  live(dialect, eq(dialect.tables.invitations.emailKey, arg.emailKey), arg.now).limit(arg.limit),
);

const MANAGERS = read({ accountId: "text", now: "time" }, ({ tables }, arg) =>
  managersOf(tables, arg.accountId, arg.now),
);

const IDENTIFIED = read({ issuer: "text", subject: "text" }, ({ db, tables }, arg) => {
  const { identities, people, members } = tables;
  return db
    .select(memberColumns(tables))
    .from(identities)
    .innerJoin(people, eq(people.id, identities.personId))
    .innerJoin(members, eq(members.personId, people.id))
    .where(hasValues(identities, arg))
    .orderBy(...lastUsedFirst(tables))
    .limit(1);
});

/** The people of accounts, their invitations and identities. */
export function createTeamStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): TeamStore {
  return {
    members: (accountId, limit) => MEMBERS.all(reader, { accountId, limit }),
    member: (accountId, personId) => ONE.get(reader, { accountId, personId }),
    async managers(accountId, now) {
      return new Set((await MANAGERS.all(reader, { accountId, now })).map(({ id }) => id));
    },
    accountsOf: (personId, limit) => ACCOUNTS.all(reader, { personId, limit }),
    changeRole: writer.method(changeRole),
    remove: writer.method(remove),
    invite: writer.method(invite),
    async invitations(accountId, now, limit) {
      const stored = await INVITATIONS.all(reader, { accountId, now, limit });
      return stored.map((row): Invitation => {
        const { hash: _, ...invitation } = row;
        return invitation;
      });
    },
    withdraw: writer.method(withdraw),
    async invitation(by, now) {
      return "hash" in by ? BY_HASH.get(reader, { hash: by.hash, now }) : BY_ID.get(reader, { id: by.id, now });
    },
    invitationsOf: (email, now, limit) => OF_ADDRESS.all(reader, { emailKey: emailKey(email), now, limit }),
    join: writer.method(join),
    async identified(identity) {
      const found = await IDENTIFIED.get(reader, identity);
      return found === null ? null : memberOf(found);
    },
    signIn: writer.method(signIn),
    prune: writer.method(prune),
  };
}
