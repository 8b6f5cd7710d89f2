import { and, desc, eq, gte, isNull, lt, or } from "drizzle-orm";
import type { AuditStore } from "../../src/core/audit.ts";
import { AUDIT_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import * as commands from "../commands/audit-log.ts";
import type { StoreContext } from "./context.ts";
import { read } from "./read.ts";

const LAST_SCANNED = read({ accountId: "text", before: "number" }, ({ db, tables: { audit } }, arg) =>
  db
    .select({ seq: audit.seq })
    .from(audit)
    .where(and(eq(audit.accountId, arg.accountId), lt(audit.seq, arg.before)))
    .orderBy(desc(audit.seq))
    .limit(1)
    .offset(AUDIT_SCAN_ROWS_MAX - 1),
);

const PAGE = read(
  {
    accountId: "text",
    before: "number",
    from: "number",
    kinds: "list?",
    actors: "list?",
    since: "time?",
    until: "time?",
    limit: "number",
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

/** The audit log. Rows are never changed, and only `prune` deletes them. */
export function createAuditStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): AuditStore {
  return {
    record: (entry) => writer.run(commands.record, entry),
    async page({ accountId, kinds, actors, since, until, limit, ...page }) {
      const before = page.before ?? Number.MAX_SAFE_INTEGER;
      // Bounds the scan of this page. An index by actor or kind would be written with every entry, for pages that one read
      // of this many rows of the account's own index fills nearly always.
      const last = await LAST_SCANNED.get(reader, { accountId, before });
      const found = await PAGE.all(reader, {
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
function listed(values: readonly string[]): readonly string[] | null {
  return values.length === 0 ? null : values;
}
