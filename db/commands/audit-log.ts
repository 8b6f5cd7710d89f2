import { and, lt, lte, max, min } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import { addToAudit } from "./audit.ts";
import { command } from "./command.ts";

/** Adds an entry that belongs to no other write. */
export const record = command((tx, entry: AuditEntry) => addToAudit(tx, entry));

const PRUNE_ROWS = 500;

/**
 * Deletes entries of then or earlier, but never the newest, whose number would be given out again; returns whether there may
 * be more. It reads only the oldest rows, so that every step costs the same.
 */
export const prune = command(async ({ db, tables: { audit } }, { until }: Readonly<{ until: Date }>) => {
  // Each by itself: SQLite finds one of them in the index, but for both at once it reads all rows.
  const [oldest] = await db.select({ seq: min(audit.seq) }).from(audit);
  const [newest] = await db.select({ seq: max(audit.seq) }).from(audit);
  const [first, last] = [oldest?.seq ?? 0, newest?.seq ?? 0];
  const isOld = and(lt(audit.seq, first + PRUNE_ROWS), lt(audit.seq, last), lte(audit.at, until));
  return (await db.delete(audit).where(isOld).returning({ seq: audit.seq })).length === PRUNE_ROWS;
});
