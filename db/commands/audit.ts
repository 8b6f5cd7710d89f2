/** The audit log: how commands add to it, and its pages. */
import { and, count, desc, eq, gt, gte, lt, lte, sql } from "drizzle-orm";
import type { AuditEntry, AuditStore } from "../../src/core/audit.ts";
import { AUDIT_SCAN_ROWS_MAX, DAY_MS } from "../../src/core/limits.ts";
import { all, get, qb } from "../sql/read.ts";
import { command, PRUNE_ROWS, type Tx } from "./command.ts";
import { renewVersion } from "./facts.ts";
import { audit } from "../tables.ts";
import type { StoreAccess } from "../sql/writer.ts";

/** Adds an entry, if there is one, to the audit log, and renews the version of what was written, if that has one. */
export async function addToAudit(tx: Tx, entry: AuditEntry | undefined, version?: string): Promise<void> {
  if (entry !== undefined) await tx.db.insert(audit).values(entry);
  if (version !== undefined) await renewVersion(tx, version);
}

/** Runs a write; if it returns any row, calls `addToAudit`. Returns whether it did. */
export async function addIfWritten(
  tx: Tx,
  write: PromiseLike<readonly unknown[]>,
  entry: AuditEntry | undefined,
  version?: string,
): Promise<boolean> {
  const isWritten = (await write).length > 0;
  if (isWritten) await addToAudit(tx, entry, version);
  return isWritten;
}

/** Adds an entry that belongs to no other write. */
export const record = command<AuditStore["record"]>((tx, entry) => addToAudit(tx, entry));

/** Deletes some old entries, but never the newest, whose number would be given out again. Returns whether there may be more. */
export const pruneAudit = command<AuditStore["prune"]>(async (tx, until) => {
  const { seq } = audit;
  // Counts rows, since PostgreSQL skips numbers. The condition, which is always true, makes this a primary key search.
  const oldest = qb.select({ seq }).from(audit).where(gt(seq, 0)).orderBy(seq);
  const last = (await all(tx, oldest.limit(PRUNE_ROWS + 1))).at(-1);
  const isOld = and(lt(seq, last?.seq ?? 0), lte(audit.at, until));
  return (await tx.db.delete(audit).where(isOld).returning({ seq })).length === PRUNE_ROWS;
});

/** The store of the audit log. Rows are never changed, and only `prune` deletes them. */
export function createAuditStore({ reader, writer }: StoreAccess): AuditStore {
  const { isOneOf } = reader.dialect;
  /** The last row that a page may read. That nearly always fills the page, without an index by actor or kind. */
  const lastScanned = (accountId: string, before: number) => {
    const isBefore = and(eq(audit.accountId, accountId), lt(audit.seq, before));
    const scanned = qb.select({ seq: audit.seq, at: audit.at }).from(audit).where(isBefore).orderBy(desc(audit.seq));
    return get(reader, scanned.limit(1).offset(AUDIT_SCAN_ROWS_MAX - 1));
  };
  return {
    ...writer.methods({ record, prune: pruneAudit }),
    async page({ accountId, kinds, actors, since, until, limit, before: end }) {
      const before = end ?? Number.MAX_SAFE_INTEGER;
      const last = await lastScanned(accountId, before);
      const isOfPage = and(
        eq(audit.accountId, accountId),
        lt(audit.seq, before),
        gte(audit.seq, last?.seq ?? 0),
        kinds.length === 0 ? undefined : isOneOf(audit.kind, kinds),
        actors.length === 0 ? undefined : isOneOf(audit.actor, actors),
        since === null ? undefined : gte(audit.at, since),
        until === null ? undefined : lt(audit.at, until),
      );
      const page = qb.select().from(audit).where(isOfPage).orderBy(desc(audit.seq));
      const found = await all(reader, page.limit(limit + 1));
      const rows = found.slice(0, limit);
      return { rows, before: found.length > limit ? (rows.at(-1)?.seq ?? null) : (last?.seq ?? null) };
    },
    async count({ accountId, kinds, until, days }) {
      const last = await lastScanned(accountId, Number.MAX_SAFE_INTEGER);
      const since = new Date(until.getTime() - days * DAY_MS);
      // The cast is needed, since libSQL's client binds numbers as floats.
      const daysAgo = sql<number>`(cast(${until} as bigint) - ${audit.at}) / ${sql.raw(String(DAY_MS))}`;
      const isCounted = and(
        eq(audit.accountId, accountId),
        gte(audit.seq, last?.seq ?? 0),
        gt(audit.at, since),
        lte(audit.at, until),
        isOneOf(audit.kind, kinds),
      );
      const ofDay = { subject: audit.subject, daysAgo: daysAgo.as("days_ago"), count: count().as("entries") };
      const counted = qb.select(ofDay).from(audit).where(isCounted);
      const counts = await all(reader, counted.groupBy(audit.subject, sql`days_ago`));
      return { counts, isWhole: last === null || last.at <= since };
    },
  };
}
