import type { ActionStatus } from "../../src/domain/action.ts";
import type { OwedKind } from "../../src/domain/owed.ts";
import type { Sql } from "./sql.ts";

/** Counted up to here: a metric of a longer queue says "at least". */
const COUNTED_MAX = 100_000;
/** The statuses that are not final. Each has a partial index of its own, so that nothing else is looked at. */
const STATUSES = ["pending", "active", "awaiting_approval"] as const satisfies readonly ActionStatus[];
const KINDS = ["callback", "mail"] as const satisfies readonly OwedKind[];

/** How many actions are not final, by status. */
export async function countActions(sql: Sql): Promise<Partial<Record<ActionStatus, number>>> {
  const counts = await countEach(
    sql,
    STATUSES.map((status) => [status, `actions WHERE status = '${status}'`]),
  );
  return Object.fromEntries(STATUSES.map((status) => [status, counts.get(status) ?? 0]));
}

/** How many notifications are neither delivered nor given up, by kind. */
export async function countOwed(sql: Sql): Promise<Readonly<Record<OwedKind, number>>> {
  const counts = await countEach(
    sql,
    KINDS.flatMap((kind) =>
      (["pending", "active"] as const).map(
        (status) => [kind, `outbox WHERE status = '${status}' AND kind = '${kind}'`] as const,
      ),
    ),
  );
  return { callback: counts.get("callback") ?? 0, mail: counts.get("mail") ?? 0 };
}

/** Counts the rows of each source, and adds up those of one name. */
async function countEach(sql: Sql, sources: readonly (readonly [name: string, source: string])[]) {
  const counts = new Map<string, number>();
  const rows = await sql.read({
    sql: sources
      .map(([name, source]) => `SELECT '${name}' AS name, count(*) AS n FROM (SELECT 1 FROM ${source} LIMIT ?)`)
      .join(" UNION ALL "),
    args: sources.map(() => COUNTED_MAX),
  });
  for (const row of rows) {
    const name = String(row["name"]);
    counts.set(name, (counts.get(name) ?? 0) + Number(row["n"]));
  }
  return counts;
}
