import { and, eq, gt, inArray, lte, ne, notExists, sql } from "drizzle-orm";
import { emailKey, type SessionRow } from "../../src/core/account-store.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { INVITATIONS_OPEN_MAX, PEOPLE_PER_ACCOUNT_MAX } from "../../src/core/limits.ts";
import type { MemberRole } from "../../src/core/roles.ts";
import type {
  Identity,
  InvitationMail,
  Invited,
  Joining,
  MemberChange,
  SignInMore,
  StoredInvitation,
} from "../../src/core/team-store.ts";
import { personLock, teamLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, countRows, hasRow, type Tx } from "./command.ts";
import { managersOf } from "./managers.ts";
import { addPerson, endOldest, endOthers, isMember, switchSession } from "./person.ts";

interface MemberArgs {
  readonly accountId: string;
  readonly personId: string;
  readonly audit: AuditEntry;
}

/** Why somebody can't stop to own an account or leave it: they are not in it, or nobody else owns it. */
async function refusalOf(tx: Tx, accountId: string, personId: string): Promise<"gone" | "last_owner" | null> {
  const { members } = tx.tables;
  const [member] = await tx.db
    .select({ role: members.role })
    .from(members)
    .where(isMember(tx.tables, accountId, personId));
  if (member === undefined) return "gone";
  const isOther = and(eq(members.accountId, accountId), eq(members.role, "owner"), ne(members.personId, personId));
  return member.role !== "owner" || (await hasRow(tx, members, isOther)) ? null : "last_owner";
}

export const changeRole = command(
  async (tx, args: MemberArgs & { readonly role: MemberRole }): Promise<MemberChange> => {
    const { accountId, personId, role, audit } = args;
    const refusal = await refusalOf(tx, accountId, personId);
    if (refusal === "gone" || (refusal !== null && role !== "owner")) return refusal;
    await tx.db
      .update(tx.tables.members)
      .set({ role })
      .where(isMember(tx.tables, accountId, personId));
    await addToAudit(tx, audit);
    return "done";
  },
  ({ accountId }) => [teamLock(accountId)],
);

/** Removes a person from an account. Whoever is in no other is forgotten: their address is free again. */
export const remove = command(
  async (tx, { accountId, personId, audit }: MemberArgs): Promise<MemberChange> => {
    const { identities, members, people, sessions, welcomeLinks } = tx.tables;
    const refusal = await refusalOf(tx, accountId, personId);
    if (refusal !== null) return refusal;
    await tx.db.delete(members).where(isMember(tx.tables, accountId, personId));
    await addToAudit(tx, audit);
    await tx.db.delete(sessions).where(and(eq(sessions.accountId, accountId), eq(sessions.personId, personId)));
    const isTheirs = and(eq(welcomeLinks.accountId, accountId), eq(welcomeLinks.personId, personId));
    await tx.db.delete(welcomeLinks).where(isTheirs);
    if (await hasRow(tx, members, eq(members.personId, personId))) return "done";
    await tx.db.delete(people).where(eq(people.id, personId));
    await tx.db.delete(sessions).where(eq(sessions.personId, personId));
    await tx.db.delete(identities).where(eq(identities.personId, personId));
    return "done";
  },
  ({ accountId, personId }) => [teamLock(accountId), personLock(personId)],
);

interface InviteArgs {
  readonly invitation: StoredInvitation;
  readonly mail: InvitationMail | null;
  readonly audit: AuditEntry;
}

/** Adds an invitation in place of an open one of the same address. */
export const invite = command(
  async (tx, { invitation, mail, audit }: InviteArgs): Promise<Invited> => {
    const { invitations, members, outbox, people } = tx.tables;
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
    await tx.db.delete(invitations).where(and(eq(invitations.accountId, accountId), eq(invitations.emailKey, key)));
    await tx.db.insert(invitations).values({ ...invitation, emailKey: key });
    if (mail !== null) {
      const event = { run: 1, revision: 1, kind: "mail", event: "invited", target: email } as const;
      const due = { status: "pending", attempts: 0, dueAt: at, scheduledAt: at, createdAt: at } as const;
      await tx.db.insert(outbox).values({ ...mail, actionId: id, accountId, ...event, ...due });
    }
    await addToAudit(tx, audit);
    return "done";
  },
  ({ invitation }) => [teamLock(invitation.accountId)],
);

/** Withdraws an invitation; returns whether there was one. */
export const withdraw = command(
  async (tx, { accountId, id, audit }: Readonly<{ accountId: string; id: string; audit: AuditEntry }>) => {
    const { invitations } = tx.tables;
    const isInvitation = and(eq(invitations.id, id), eq(invitations.accountId, accountId));
    const withdrawn = await tx.db.delete(invitations).where(isInvitation).returning({ id: invitations.id });
    if (withdrawn.length === 0) return false;
    await addToAudit(tx, audit);
    return true;
  },
  ({ accountId }) => [teamLock(accountId)],
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

/** Uses an invitation; see `TeamStore.join`. */
export const join = command(
  async (tx, joining: Joining) => {
    const { identities, invitations, members, people, sessions } = tx.tables;
    const { invitation, person, isNew, session, identity, at, audit } = joining;
    const { accountId, role } = invitation;
    if (!(await mayJoin(tx, joining))) return false;
    // The password is the one that was checked.
    const isSame = and(eq(people.id, person.id), eq(people.passwordHash, person.passwordHash));
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
  ({ invitation, person }) => [teamLock(invitation.accountId), personLock(person.id)],
);

interface SignInArgs extends SignInMore {
  readonly session: SessionRow;
  readonly identity: Identity;
}

/** Begins a session by an identity, which is remembered for the person; see `TeamStore.signIn`. */
export const signIn = command(
  async (tx, { session, identity, audit, dropsPassword }: SignInArgs) => {
    const { identities, members, people, sessions } = tx.tables;
    const { accountId, personId, createdAt } = session;
    const isThis = isMember(tx.tables, accountId, personId);
    if (!(await hasRow(tx, members, isThis))) return false;
    // Not where the person has another subject of the provider, or the subject is of another person.
    const { issuer, subject } = identity;
    await tx.db.insert(identities).values({ issuer, subject, personId, createdAt }).onConflictDoNothing();
    const isIdentity = and(eq(identities.issuer, issuer), eq(identities.subject, subject));
    if (!(await hasRow(tx, identities, and(isIdentity, eq(identities.personId, personId))))) return false;
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
  ({ session }) => [personLock(session.personId)],
);

/** Rows deleted per pass and table, so that it never blocks the writer for long. */
const PRUNE_ROWS = 500;

/**
 * Deletes invitations that have expired, and mails of those that were accepted, withdrawn or have expired; returns whether
 * there may be more. An attempt that is under way ends first.
 */
export const prune = command(async ({ db, tables: { invitations, outbox } }, { now }: Readonly<{ now: Date }>) => {
  const ended = db.select({ id: invitations.id }).from(invitations).where(lte(invitations.expiresAt, now));
  const pruned = await db
    .delete(invitations)
    .where(inArray(invitations.id, ended.limit(PRUNE_ROWS)))
    .returning({ id: invitations.id });
  const open = db.select({ id: invitations.id }).from(invitations).where(eq(invitations.id, outbox.actionId));
  const isInvitation = sql`${outbox.actionId} >= 'inv_' and ${outbox.actionId} < 'inv\`'`;
  const isOver = and(isInvitation, ne(outbox.status, "active"), notExists(open));
  const over = db.select({ id: outbox.id }).from(outbox).where(isOver);
  const mails = await db
    .delete(outbox)
    .where(inArray(outbox.id, over.limit(PRUNE_ROWS)))
    .returning({ id: outbox.id });
  return pruned.length > 0 || mails.length > 0;
});
