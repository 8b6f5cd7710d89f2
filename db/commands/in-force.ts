import { and, eq, isNull } from "drizzle-orm";
import type { Pause } from "../../src/core/pause.ts";
import type { Tx } from "./command.ts";

/** The pause of the same subject that is in force; undefined: there is none. */
export async function findInForce(
  { db, tables: { pauses } }: Tx,
  { accountId, kind, subject }: Pick<Pause, "accountId" | "kind" | "subject">,
): Promise<Pause | undefined> {
  const isOfSubject = and(eq(pauses.accountId, accountId), eq(pauses.kind, kind), eq(pauses.subject, subject));
  const [found] = await db
    .select()
    .from(pauses)
    .where(and(isOfSubject, isNull(pauses.endedAt)));
  return found;
}
