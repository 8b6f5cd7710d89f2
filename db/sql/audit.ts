import { and, desc, eq, lt, sql } from "drizzle-orm";
import type { AuditStore } from "../../src/core/audit.ts";
import { AUDIT_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import * as commands from "../commands/audit-log.ts";
import type { StoreContext } from "./context.ts";
import { isAbsent, isNoList, isOneOf } from "./dialect.ts";
import { allOf, type Args, prepare, query } from "./query.ts";
import { audit } from "../libsql/schema.ts";

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

/** The audit log. Rows are never changed, and only `prune` deletes them. */
export function createAuditStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): AuditStore {
  return {
    record: (entry) => writer.run(commands.record, entry),
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
    prune: (until) => writer.run(commands.prune, { until }),
  };
}

/** Null: any. */
function listed(values: readonly string[]): string | null {
  return values.length === 0 ? null : JSON.stringify(values);
}
