/** Links of approval mails, and the end of those to somebody who may no longer approve. */
import { and, eq, sql } from "drizzle-orm";
import { DECISIONS } from "../../src/core/action.ts";
import type { LinkStore } from "../../src/core/store.ts";
import { findRow, qb } from "../sql/read.ts";
import { command, type Tx } from "./command.ts";
import { actions, approvalLinks, invitations, people } from "../tables.ts";
import type { StoreAccess } from "../sql/writer.ts";

/** Stores links. A link that is stored again for a repeated mail keeps its expiry; its hash may differ after a key change. */
export const keep = command<LinkStore["keep"]>(async (tx, links, expiresAt) => {
  const { actionId, run, decision } = approvalLinks;
  const ends: number[] = [];
  for (const link of links) {
    const [kept] = await tx.db
      .insert(approvalLinks)
      .values({ ...link, expiresAt })
      .onConflictDoUpdate({ target: [actionId, run, decision], set: { hash: link.hash } })
      .returning({ expiresAt: approvalLinks.expiresAt });
    if (kept !== undefined) ends.push(kept.expiresAt.getTime());
  }
  return new Date(Math.min(...ends));
});

/**
 * Ends the links to a person who may no longer approve, also those of mails that still have to be sent, which find them ended. They
 * stay ended if the right returns. An owner's key may name anyone, so who is no member is not refused by that alone.
 */
export async function endLinksOf(
  tx: Tx,
  { accountId, personId, at }: Readonly<{ accountId: string; personId: string; at: Date }>,
): Promise<void> {
  const person = await findRow(tx, people, { id: personId });
  if (person === null) return;
  const { id, run, status, notifyEmail } = actions;
  // A literal, since SQLite uses the partial index only if it sees the value.
  const isHeld = and(eq(actions.accountId, accountId), sql`${status} = 'awaiting_approval'`);
  const isTheirs = eq(sql`lower(${notifyEmail})`, person.emailKey);
  const expiresAt = sql<number>`${sql.raw(String(at.getTime()))}`.as("expires_at");
  // The database inserts them by itself, since an account may have very many.
  for (const one of DECISIONS) {
    const decision = sql<typeof one>`${sql.raw(`'${one}'`)}`.as("decision");
    const ended = { actionId: id, run, decision, hash: sql<string>`''`.as("hash"), expiresAt };
    await tx.db
      .insert(approvalLinks)
      .select(qb.select(ended).from(actions).where(and(isHeld, isTheirs)))
      .onConflictDoUpdate({
        target: [approvalLinks.actionId, approvalLinks.run, approvalLinks.decision],
        set: { expiresAt: at },
      });
  }
}

export const forgetAll = command<LinkStore["forgetAll"]>(async ({ db }) => {
  await db.delete(approvalLinks);
  // Whoever had the old key can make their links too.
  await db.delete(invitations);
});

export function createLinkStore({ reader, writer }: StoreAccess): LinkStore {
  return {
    ...writer.methods({ keep, forgetAll }),
    find: ({ actionId, run, decision }) => findRow(reader, approvalLinks, { actionId, run, decision }),
  };
}
