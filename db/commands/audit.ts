import { and, count, desc, eq, gt, gte, isNull, lt, lte, max, min, or, sql } from "drizzle-orm";
import type { AuditEntry, AuditStore } from "../../src/core/audit.ts";
import { AUDIT_SCAN_ROWS_MAX, DAY_MS } from "../../src/core/limits.ts";
import type { StoreContext } from "../sql/context.ts";
import { read } from "../sql/read.ts";
import { command, PRUNE_ROWS, type Tx } from "./command.ts";

/** Adds an entry to the audit log; none if it is undefined. */
export async function addToAudit({ db, tables: { audit } }: Tx, entry: AuditEntry | undefined): Promise<void> {
  if (entry !== undefined) await db.insert(audit).values(entry);
}

/** Adds the entry if any row was written; returns whether. */
export async function addIfWritten(tx: Tx, rows: readonly unknown[], entry: AuditEntry | undefined): Promise<boolean> {
  if (rows.length > 0) await addToAudit(tx, entry);
  return rows.length > 0;
}

/** Adds an entry that belongs to no other write. */
export const record = command<AuditStore["record"]>(addToAudit);

/**
 * Deletes entries of then or earlier, but never the newest, whose number would be given out again; returns whether there may
 * be more. It reads only the oldest rows, so that every step costs the same.
 */
export const prune = command<AuditStore["prune"]>(async ({ db, tables: { audit } }, until) => {
  // Each by itself: SQLite finds one of them in the index, but for both at once it reads all rows.
  const [oldest] = await db.select({ seq: min(audit.seq) }).from(audit);
  const [newest] = await db.select({ seq: max(audit.seq) }).from(audit);
  const [first, last] = [oldest?.seq ?? 0, newest?.seq ?? 0];
  const isOld = and(lt(audit.seq, first + PRUNE_ROWS), lt(audit.seq, last), lte(audit.at, until));
  return (await db.delete(audit).where(isOld).returning({ seq: audit.seq })).length === PRUNE_ROWS;
});

const LAST_SCANNED = read({ accountId: "text", before: "number" }, ({ db, tables: { audit } }, arg) => {
  const before = and(eq(audit.accountId, arg.accountId), lt(audit.seq, arg.before));
  const scanned = db.select({ seq: audit.seq, at: audit.at }).from(audit).where(before).orderBy(desc(audit.seq));
  return scanned.limit(1).offset(AUDIT_SCAN_ROWS_MAX - 1);
});

const PAGE = read(
  {
    ...({ accountId: "text", before: "number", from: "number", limit: "number" } as const),
    ...({ kinds: "list?", actors: "list?", since: "time?", until: "time?" } as const),
  },
  ({ db, tables: { audit }, isOneOf }, arg) =>
    db
      .select()
      .from(audit)
      .where(
        and(
          eq(audit.accountId, arg.accountId),
          lt(audit.seq, arg.before),
          gte(audit.seq, arg.from),
          or(isNull(arg.kinds), isOneOf(audit.kind, arg.kinds)),
          or(isNull(arg.actors), isOneOf(audit.actor, arg.actors)),
          or(isNull(arg.since), gte(audit.at, arg.since)),
          or(isNull(arg.until), lt(audit.at, arg.until)),
        ),
      )
      .orderBy(desc(audit.seq))
      .limit(arg.limit),
);

const COUNTS = read(
  {
    ...({ accountId: "text", from: "number", kinds: "list" } as const),
    ...({ since: "time", until: "time" } as const),
  },
  ({ db, tables: { audit }, isOneOf }, { accountId, from, kinds, since, until }) => {
    // libSQL's client binds a whole number as one that has fractions.
    const daysAgo = sql<number>`(cast(${until} as bigint) - ${audit.at}) / ${sql.raw(String(DAY_MS))}`;
    return db
      .select({ subject: audit.subject, daysAgo: daysAgo.as("days_ago"), count: count().as("entries") })
      .from(audit)
      .where(
        and(
          eq(audit.accountId, accountId),
          gte(audit.seq, from),
          gt(audit.at, since),
          lte(audit.at, until),
          isOneOf(audit.kind, kinds),
        ),
      )
      .groupBy(audit.subject, sql`days_ago`);
  },
);

/** The audit log. Rows are never changed, and only `prune` deletes them. */
export function createAuditStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): AuditStore {
  return {
    record: writer.method(record),
    async page({ accountId, kinds, actors, since, until, limit, ...page }) {
      const before = page.before ?? Number.MAX_SAFE_INTEGER;
      // Bounds the scan of this page. An index by actor or kind would be written with every entry, for pages that one read
      // of this many rows of the account's own index fills nearly always.
      const last = await LAST_SCANNED.get(reader, { accountId, before });
      const filter = { since, until, kinds: anyIfEmpty(kinds), actors: anyIfEmpty(actors) };
      const range = { accountId, before, from: last?.seq ?? 0, limit: limit + 1 };
      const found = await PAGE.all(reader, { ...range, ...filter });
      const rows = found.slice(0, limit);
      return { rows, before: found.length > limit ? (rows.at(-1)?.seq ?? null) : (last?.seq ?? null) };
    },
    async count({ accountId, kinds, until, days }) {
      const last = await LAST_SCANNED.get(reader, { accountId, before: Number.MAX_SAFE_INTEGER });
      const since = new Date(until.getTime() - days * DAY_MS);
      const counts = await COUNTS.all(reader, { accountId, kinds, from: last?.seq ?? 0, since, until });
      return { counts, isWhole: last === null || last.at <= since };
    },
    prune: writer.method(prune),
  };
}

function anyIfEmpty(values: readonly string[]): readonly string[] | null {
  return values.length === 0 ? null : values;
}
