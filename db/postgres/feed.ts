import { asc, gt, sql } from "drizzle-orm";
import { actions, timeline } from "../libsql/schema.ts";
import { isOneOf } from "../sql/dialect.ts";
import { type Args, byDialect, prepare, query } from "../sql/query.ts";
import type { Sql } from "../sql/sql.ts";
import type { ChangedPage, ClusterStore } from "../../src/core/store.ts";

const { seq, actionId, accountId, revision } = timeline;

/**
 * As `isSettled`, as a value: rows behind the first open transaction are read too. The function runs once, before the
 * first row, and sees what the rows are read from.
 */
const isSettledRow = byDialect<number>({
  sqlite: sql`1`,
  postgres: sql`cast(${seq} < (select settled_position()) as integer)`,
});

const rowsAfter = prepare((arg: Args<"after" | "limit">) =>
  query
    .select({ seq, actionId, accountId, revision, isSettled: isSettledRow.as("is_settled") })
    .from(timeline)
    .where(gt(seq, arg.after))
    .orderBy(asc(seq))
    .limit(arg.limit),
);

const revisions = prepare((arg: Args<"ids">) =>
  query.select({ id: actions.id, revision: actions.revision }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** What a node reads of the changes of all nodes. */
export function createChangeReader(connection: Pick<Sql, "read">): Pick<ClusterStore, "changedSince" | "revisionsOf"> {
  return {
    async changedSince(position, limit): Promise<ChangedPage> {
      const rows = await rowsAfter.read(connection, { after: position, limit });
      const settled = rows.findLast(({ isSettled }) => isSettled === 1);
      const isLast = rows.length < limit && settled === rows.at(-1);
      return { changes: rows, position: settled?.seq ?? position, isLast };
    },
    async revisionsOf(ids) {
      const rows = await revisions.read(connection, { ids: JSON.stringify(ids) });
      return new Map(rows.map((row) => [row.id, row.revision]));
    },
  };
}
