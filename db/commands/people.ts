import { and, eq, exists, gt, inArray, isNull, lte, ne } from "drizzle-orm";
import type { PersonRow, SessionChoice, SessionRow, SignUp, WelcomeLink } from "../../src/core/account-store.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import { firstPersonLock, personLock, signUpLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, hasRow, type Tx } from "./command.ts";
import { addPerson, endOldest, endOthers, isMember, switchSession } from "./person.ts";

/** Names an account; null: it has no name any more. */
export const rename = command(
  async (tx, { accountId, name, audit }: Readonly<{ accountId: string; name: string | null; audit: AuditEntry }>) => {
    const { accounts } = tx.tables;
    const isAccount = eq(accounts.id, accountId);
    const renamed = await tx.db.update(accounts).set({ name }).where(isAccount).returning({ id: accounts.id });
    if (renamed.length > 0) await addToAudit(tx, audit);
  },
);

/** Adds a person with an account of their own; returns whether the address was free and sign-ups are open. */
export const signUp = command(
  async (tx, { firstAccountId, ...all }: SignUp & { readonly firstAccountId: string | null }) => {
    const { accounts, apiKeys, members, sessions } = tx.tables;
    const { account, key, person, session, audit = [], allowedBy, untilHold = false } = all;
    const isHold = and(eq(apiKeys.accountId, firstAccountId ?? ""), ne(apiKeys.hold, "none"));
    if (untilHold && (await hasRow(tx, apiKeys, isHold))) return false;
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

interface BeginArgs {
  readonly session: SessionRow;
  /** The one that was checked. */
  readonly passwordHash: string;
  readonly audit: AuditEntry | undefined;
}

/** Begins a session; returns whether the person still has the password. */
export const beginSession = command(
  async (tx, { session, passwordHash, audit }: BeginArgs) => {
    const { people, sessions } = tx.tables;
    const hasPassword = and(eq(people.id, session.personId), eq(people.passwordHash, passwordHash));
    if (!(await hasRow(tx, people, hasPassword))) return false;
    await tx.db.insert(sessions).values(session);
    await addToAudit(tx, audit);
    await endOldest(tx, session);
    return true;
  },
  ({ session }) => [personLock(session.personId)],
);

/** Replaces the secret of a session, unless the password has changed. */
export const renewSecret = command(
  async ({ db, tables }, args: Readonly<{ hash: string; secretHash: string; passwordHash: string }>) => {
    const { people, sessions } = tables;
    const owner = db.select({ id: people.id }).from(people);
    const isOwner = and(eq(people.id, sessions.personId), eq(people.passwordHash, args.passwordHash));
    const isSession = and(eq(sessions.hash, args.hash), exists(owner.where(isOwner)));
    await db.update(sessions).set({ secretHash: args.secretHash }).where(isSession);
  },
);

export const endSession = command(
  async (tx, { hash, audit }: Readonly<{ hash: string; audit: AuditEntry | undefined }>) => {
    const { sessions } = tx.tables;
    const ended = await tx.db.delete(sessions).where(eq(sessions.hash, hash)).returning({ hash: sessions.hash });
    if (ended.length > 0) await addToAudit(tx, audit);
  },
);

/** Ends sessions of a person; returns how many. */
export const endSessions = command(
  async (tx, args: Readonly<{ personId: string; which: SessionChoice; audit: AuditEntry }>) => {
    const { sessions } = tx.tables;
    const { personId, which, audit } = args;
    const isChosen = "only" in which ? eq(sessions.hash, which.only) : ne(sessions.hash, which.except);
    const ended = await tx.db
      .delete(sessions)
      .where(and(eq(sessions.personId, personId), isChosen))
      .returning({ hash: sessions.hash });
    if (ended.length > 0) await addToAudit(tx, audit);
    return ended.length;
  },
);

/** Notes that a session is in use, and with it the account. */
export const seeSession = command(async ({ db, tables }, { hash, at }: Readonly<{ hash: string; at: Date }>) => {
  const { members, sessions } = tables;
  const [seen] = await db
    .update(sessions)
    .set({ lastSeenAt: at })
    .where(eq(sessions.hash, hash))
    .returning({ accountId: sessions.accountId, personId: sessions.personId });
  if (seen === undefined) return;
  await db
    .update(members)
    .set({ lastSeenAt: at })
    .where(isMember(tables, seen.accountId, seen.personId));
});

/** Takes a session to another account of its person; returns whether they are in that account. */
export const switchAccount = command(
  async (tx, { hash, accountId, at }: Readonly<{ hash: string; accountId: string; at: Date }>) => {
    const personId = await switchSession(tx, hash, accountId);
    if (personId === null) return false;
    const { members } = tx.tables;
    await tx.db
      .update(members)
      .set({ lastSeenAt: at })
      .where(isMember(tx.tables, accountId, personId));
    return true;
  },
);

async function hasMember(tx: Tx, accountId: string): Promise<boolean> {
  return hasRow(tx, tx.tables.members, eq(tx.tables.members.accountId, accountId));
}

/** Stores a link in place of earlier ones; returns whether it can be used: no first person is invited where there is one. */
export const offer = command(
  async (tx, link: WelcomeLink) => {
    const { welcomeLinks } = tx.tables;
    const { accountId, personId } = link;
    if (personId === null && (await hasMember(tx, accountId))) return false;
    const isForSame = personId === null ? isNull(welcomeLinks.personId) : eq(welcomeLinks.personId, personId);
    await tx.db.delete(welcomeLinks).where(and(eq(welcomeLinks.accountId, accountId), isForSame));
    await tx.db.insert(welcomeLinks).values(link);
    return true;
  },
  ({ accountId }) => [firstPersonLock(accountId)],
);

interface LinkArgs {
  /** Hash of its token. */
  readonly link: string;
  readonly session: SessionRow;
  readonly audit: AuditEntry | undefined;
}

/** Uses a link to create the first person of the account. */
export const welcome = command(
  async (tx, { link, person, session, audit }: LinkArgs & { readonly person: PersonRow }) => {
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
  ({ session }) => [firstPersonLock(session.accountId)],
);

/** Uses a link to reset a password, and ends the sessions of the old one; returns whether the link could be used. */
export const renewPassword = command(
  async (tx, { link, passwordHash, session, audit }: LinkArgs & { readonly passwordHash: string }) => {
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
  ({ session }) => [personLock(session.personId)],
);

/** Replaces a password, and ends the sessions and links of the old one; returns whether it was still the one that was checked. */
export const changePassword = command(
  async (tx, { session, passwordHash, nextHash, audit }: BeginArgs & { readonly nextHash: string }) => {
    const { members, people, sessions, welcomeLinks } = tx.tables;
    const { personId } = session;
    const changed = await tx.db
      .update(people)
      .set({ passwordHash: nextHash })
      .where(and(eq(people.id, personId), eq(people.passwordHash, passwordHash)))
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
  ({ session }) => [personLock(session.personId)],
);

/** Rows deleted per pass and table, so that it never blocks the writer for long. */
const PRUNE_ROWS = 500;

/** Deletes sessions and links that have expired; returns whether there may be more. */
export const prune = command(async ({ db, tables: { sessions, welcomeLinks } }, { now }: Readonly<{ now: Date }>) => {
  const ended = db.select({ hash: sessions.hash }).from(sessions).where(lte(sessions.expiresAt, now));
  const pruned = await db
    .delete(sessions)
    .where(inArray(sessions.hash, ended.limit(PRUNE_ROWS)))
    .returning({ hash: sessions.hash });
  const links = db.select({ hash: welcomeLinks.hash }).from(welcomeLinks).where(lte(welcomeLinks.expiresAt, now));
  const prunedLinks = await db
    .delete(welcomeLinks)
    .where(inArray(welcomeLinks.hash, links.limit(PRUNE_ROWS)))
    .returning({ hash: welcomeLinks.hash });
  return pruned.length > 0 || prunedLinks.length > 0;
});
