import { asc, gt, sql } from "drizzle-orm";
import type { ChangedPage, ClusterStore } from "../../src/core/store.ts";
import { read, type Reader } from "../sql/read.ts";

const ROWS_AFTER = read({ after: "number", limit: "number" }, ({ db, tables: { timeline }, isSettled }, arg) => {
  const { seq, actionId, accountId, revision } = timeline;
  // As a value: rows behind the first open transaction are read too.
  const settled = sql<number>`case when ${isSettled(seq) ?? sql`true`} then 1 else 0 end`.as("is_settled");
  return db
    .select({ seq, actionId, accountId, revision, isSettled: settled })
    .from(timeline)
    .where(gt(seq, arg.after))
    .orderBy(asc(seq))
    .limit(arg.limit);
});

const REVISIONS = read({ ids: "list" }, ({ db, tables: { actions }, isOneOf }, arg) =>
  db.select({ id: actions.id, revision: actions.revision }).from(actions).where(isOneOf(actions.id, arg.ids)),
);

/** What a node reads of the changes of all nodes. */
export function createChangeReader(reader: Reader): Pick<ClusterStore, "changedSince" | "revisionsOf"> {
  return {
    async changedSince(position, limit): Promise<ChangedPage> {
      const rows = await ROWS_AFTER.all(reader, { after: position, limit });
      const settled = rows.findLast(({ isSettled }) => isSettled === 1);
      const isLast = rows.length < limit && settled === rows.at(-1);
      return { changes: rows, position: settled?.seq ?? position, isLast };
    },
    async revisionsOf(ids) {
      const rows = await REVISIONS.all(reader, { ids });
      return new Map(rows.map((row) => [row.id, row.revision]));
    },
  };
}
