import { and, count, eq, sql } from "drizzle-orm";
import { PENDING_SCAN_ROWS_MAX, RETRY_HOSTS_SHOWN_MAX } from "../../src/config/limits.ts";
import type { ScheduledRetries } from "../store.ts";
import { countWhere } from "./dialect.ts";
import { type Args, prepare, query } from "./query.ts";
import { actions } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

/**
 * Covered by the index of the queues: otherwise bodies of a megabyte would be read to reach later columns. What is due
 * later is a retry or has a `run_at`.
 */
const pendingByHost = prepare((arg: Args<"accountId" | "now">) => {
  const s = query
    .select({ host: actions.host, dueAt: actions.dueAt })
    .from(actions)
    .where(and(eq(actions.status, "pending"), eq(actions.accountId, arg.accountId)))
    .orderBy(actions.host)
    .limit(PENDING_SCAN_ROWS_MAX)
    .as("s");
  const nextAt = sql`min(case when ${s.dueAt} > ${arg.now} then ${s.dueAt} end)`;
  return query
    .select({
      host: s.host,
      pending: count().as("pending"),
      later: countWhere(sql`${s.dueAt} > ${arg.now}`).as("later"),
      nextAt: nextAt.as("next_at"),
    })
    .from(s)
    .groupBy(s.host)
    .orderBy(nextAt);
});

/** The scheduled retries of an account, among a bounded number of pending actions. */
export async function readScheduledRetries(connection: Sql, accountId: string, now: Date): Promise<ScheduledRetries> {
  const rows = await pendingByHost.readRaw(connection, { accountId, now });
  const total = (column: string) => rows.reduce((all, row) => all + Number(row[column]), 0);
  const [later, pending] = [total("later"), total("pending")];
  return {
    count: later,
    due: pending - later,
    isCut: pending === PENDING_SCAN_ROWS_MAX,
    hosts: rows
      .filter((row) => Number(row["later"]) > 0)
      .slice(0, RETRY_HOSTS_SHOWN_MAX)
      .map((row) => ({
        host: String(row["host"]),
        count: Number(row["later"]),
        nextAt: new Date(Number(row["next_at"])),
      })),
  };
}
