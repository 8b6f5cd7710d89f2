import { and, desc, eq, inArray, ne } from "drizzle-orm";
import { emailKey, type PersonRow, type SessionRow } from "../../src/core/account-store.ts";
import { SESSIONS_PER_PERSON_MAX } from "../../src/core/limits.ts";
import type { Tx } from "./command.ts";

/** Adds a person; returns whether their address was free. */
export async function addPerson({ db, tables: { people } }: Tx, person: PersonRow): Promise<boolean> {
  const added = await db
    .insert(people)
    .values({ ...person, emailKey: emailKey(person.email) })
    .onConflictDoNothing({ target: people.emailKey })
    .returning({ id: people.id });
  return added.length > 0;
}

/** The membership of a person in an account. */
export function isMember({ members }: Tx["tables"], accountId: string, personId: string) {
  return and(eq(members.accountId, accountId), eq(members.personId, personId));
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
