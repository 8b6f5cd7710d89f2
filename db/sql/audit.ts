import { and, desc, eq, lt, type SQL, sql } from "drizzle-orm";
import type { AuditEntry, AuditStore } from "../../src/core/audit.ts";
import { AUDIT_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import type { StoreContext } from "./context.ts";
import { always, isAbsent, isNoList, isOneOf } from "./dialect.ts";
import { allOf, type Args, changed, insertWhere, prepare, query, valuesOf } from "./query.ts";
import { audit } from "../libsql/schema.ts";
import type { Statement } from "./sql.ts";

const LAST_SCANNED = prepare((arg: Args<"accountId" | "before">) =>
  query
    .select({ seq: audit.seq })
    .from(audit)
    .where(and(eq(audit.accountId, arg.accountId), lt(audit.seq, arg.before)))
    .orderBy(desc(audit.seq))
    .limit(1)
    .offset(AUDIT_SCAN_ROWS_MAX - 1),
);

const PAGE = prepare((arg: Args<"accountId" | "before" | "from" | "kinds" | "actors" | "since" | "until" | "limit">) =>
  query
    .select()
    .from(audit)
    .where(
      allOf(
        sql`${audit.accountId} = ${arg.accountId} and ${audit.seq} < ${arg.before} and ${audit.seq} >= ${arg.from}`,
        sql`(${isNoList(arg.kinds)} or ${isOneOf(audit.kind, arg.kinds)})`,
        sql`(${isNoList(arg.actors)} or ${isOneOf(audit.actor, arg.actors)})`,
        sql`(${isAbsent(arg.since, audit.at)} or ${audit.at} >= ${arg.since}) and (${isAbsent(arg.until, audit.at)} or ${audit.at} < ${arg.until})`,
      ),
    )
    .orderBy(desc(audit.seq))
    .limit(arg.limit),
);

const PRUNE_ROWS = 500;

/** Reads only the oldest rows, so that every step costs the same. */
const PRUNE = prepare((arg: Args<"until">) => {
  const [oldest, newest] = [sql`(select min(seq) from ${audit})`, sql`(select max(seq) from ${audit})`];
  return query
    .delete(audit)
    .where(sql`${audit.seq} < ${oldest} + ${PRUNE_ROWS} and ${audit.seq} < ${newest} and ${audit.at} <= ${arg.until}`);
});

/** The audit log. Rows are never changed, and only `prune` deletes them. */
export function createAuditStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): AuditStore {
  return {
    async record(entry) {
      await writer.write([RECORD.bind(entryValues(entry))]);
    },
    async page({ accountId, kinds, actors, since, until, limit, ...page }) {
      const before = page.before ?? Number.MAX_SAFE_INTEGER;
      // Bounds the scan of this page. An index by actor or kind would be written with every entry, for pages that one read
      // of this many rows of the account's own index fills nearly always.
      const [last] = await LAST_SCANNED.read(reader, { accountId, before });
      const found = await PAGE.read(reader, {
        accountId,
        before,
        since,
        until,
        from: last?.seq ?? 0,
        kinds: listed(kinds),
        actors: listed(actors),
        limit: limit + 1,
      });
      const rows = found.slice(0, limit);
      return { rows, before: found.length > limit ? (rows.at(-1)?.seq ?? null) : (last?.seq ?? null) };
    },
    async prune(until) {
      const [deleted] = await writer.write([PRUNE.bind({ until })]);
      return deleted?.changes === PRUNE_ROWS;
    },
  };
}

/** Null: any. */
function listed(values: readonly string[]): string | null {
  return values.length === 0 ? null : JSON.stringify(values);
}

const ENTRY = ["at", "accountId", "actor", "kind", "subject", "client", "detail"] as const;

/** A statement that adds an entry where the condition holds. */
export function insertEntry<Name extends string = never>(condition: (arg: Args<Name>) => SQL) {
  return prepare((arg: Args<(typeof ENTRY)[number] | Name>) =>
    insertWhere(audit, condition(arg), valuesOf(arg, ENTRY)),
  );
}

const RECORD = insertEntry(() => always);

const RECORD_CHANGE = insertEntry(() => changed);

/** An entry as it is stored. */
export function entryValues({ detail, ...entry }: AuditEntry) {
  return { ...entry, detail: JSON.stringify(detail) };
}

/** The entry of a change, written where the statement before wrote a row; none if it is undefined. */
export function auditChange(entry: AuditEntry | undefined): readonly Statement[] {
  return entry === undefined ? [] : [RECORD_CHANGE.bind(entryValues(entry))];
}
