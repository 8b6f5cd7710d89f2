import { ASLEEP_HOSTS_MAX, ASLEEP_SCAN_ROWS_MAX } from "../../src/domain/limits.ts";
import type { ScheduledRetry, Happened } from "../../src/domain/overview.ts";
import type { HistoryPage } from "../../src/ports/store.ts";
import type { Row, Sql } from "./sql.ts";

/**
 * Rows are counted before they are filtered, so that a page costs the same whatever is in it. A detail that was altered to
 * no JSON is left out: it would fail the whole page.
 */
const HISTORY = `SELECT s.seq, s.at, s.account_id, s.type, s.status, a.host,
    CASE WHEN json_valid(s.detail) THEN json_extract(s.detail, '$.duration_ms') END AS duration_ms,
    CASE WHEN json_valid(s.detail) THEN json_extract(s.detail, '$.error') END AS error
  FROM (SELECT * FROM timeline WHERE seq <= ? ORDER BY seq DESC LIMIT ?) s
  LEFT JOIN actions a ON s.type = 'attempt' AND a.id = s.action_id`;

/** What the overview counts, newest first. */
export async function readHistory(sql: Sql, until: number, limit: number): Promise<HistoryPage> {
  const found = await sql.read({ sql: HISTORY, args: [until, limit] });
  const rows = found.toSorted((a, b) => Number(b["seq"]) - Number(a["seq"]));
  const last = rows.at(-1);
  const isMore = last !== undefined && rows.length === limit;
  return {
    counted: rows.map(countedOf).filter((counted) => counted !== null),
    until: isMore ? Number(last["seq"]) - 1 : null,
  };
}

const NEXT: Readonly<Record<string, Extract<Happened, { readonly kind: "attempted" }>["next"]>> = {
  completed: "completed",
  failed: "failed",
};

function countedOf(row: Row): Happened | null {
  const [accountId, at] = [String(row["account_id"]), new Date(Number(row["at"]))];
  if (row["type"] === "created") return { kind: "created", accountId, at };
  // An attempt whose action is gone was pruned between two looks.
  if (row["type"] !== "attempt" || typeof row["host"] !== "string") return null;
  return {
    kind: "attempted",
    accountId,
    at,
    host: row["host"],
    next: NEXT[String(row["status"])] ?? "retry",
    durationMs: typeof row["duration_ms"] === "number" ? row["duration_ms"] : null,
    error: typeof row["error"] === "string" ? row["error"] : null,
  };
}

/**
 * By the index of the queues alone, which holds everything that is asked for: an action with a body of a megabyte would
 * else be walked over for the column behind it. A first attempt is due at once; what is due later is a retry.
 */
const ASLEEP = `SELECT host, count(*) AS n, sum(due_at > ?1) AS asleep, min(CASE WHEN due_at > ?1 THEN due_at END) AS next_at
  FROM (SELECT host, due_at FROM actions WHERE status = 'pending' AND account_id = ?2 ORDER BY host LIMIT ?3)
  GROUP BY host ORDER BY next_at`;

/** The retries of an account that wait for their time, of as many pending actions as are looked at. */
export async function findAsleep(sql: Sql, accountId: string, now: Date): Promise<ScheduledRetry> {
  const rows = await sql.read({ sql: ASLEEP, args: [now.getTime(), accountId, ASLEEP_SCAN_ROWS_MAX] });
  const total = (column: string) => rows.reduce((all, row) => all + Number(row[column]), 0);
  const [count, pending] = [total("asleep"), total("n")];
  const isAsleep = (row: Row) => Number(row["asleep"]) > 0 && typeof row["next_at"] === "number";
  const scheduledRetries = rows.filter(isAsleep).slice(0, ASLEEP_HOSTS_MAX);
  return {
    count,
    due: pending - count,
    isCut: pending === ASLEEP_SCAN_ROWS_MAX,
    hosts: scheduledRetries.map((row) => ({
      host: String(row["host"]),
      count: Number(row["asleep"]),
      nextAt: new Date(Number(row["next_at"])),
    })),
  };
}
