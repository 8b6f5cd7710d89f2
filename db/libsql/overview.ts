import { OVERVIEW_SLOT_MS, PENDING_SCAN_ROWS_MAX, RETRY_HOSTS_SHOWN_MAX } from "../../src/config/limits.ts";
import type { ActivityCount, ActivityPage, ActivityRange, HostActivity, ScheduledRetries } from "../store.ts";
import { Columns } from "./rows.ts";
import type { Row, Sql } from "./sql.ts";

/**
 * The rows of an account on a stretch of the timeline, found by its primary key as the event stream finds them: an index
 * by account would slow all writes. A detail that was altered to invalid JSON counts as empty: it would fail the whole page.
 */
const ROWS = `SELECT action_id, at, type, status, CASE WHEN json_valid(detail) THEN detail ELSE '{}' END AS detail
  FROM timeline WHERE seq > ? AND seq <= ? AND account_id = ? AND at >= ?`;

/** Durations to two digits, so that a page has a bounded number of them. */
const COUNTS = `SELECT slot, kind, round(avg(ms)) AS ms, count(*) AS count
  FROM (SELECT at / ${OVERVIEW_SLOT_MS} AS slot,
      CASE WHEN type = 'created' THEN type WHEN status IN ('completed', 'failed') THEN status ELSE 'retry' END AS kind,
      json_extract(detail, '$.duration_ms') AS ms
    FROM (${ROWS}) WHERE type IN ('created', 'attempt'))
  GROUP BY slot, kind,
    CASE WHEN ms < 100 THEN ms WHEN ms < 1000 THEN ms / 10 * 10 WHEN ms < 10000 THEN ms / 100 * 100 ELSE ms / 1000 * 1000 END`;

/** With one `max`, SQLite takes the other columns from the row that has it: `error` is that of the last failure. */
const HOSTS = `SELECT a.host, count(*) AS attempts, count(error) AS failed, error,
    max(CASE WHEN error IS NOT NULL THEN at END) AS last_failed_at
  FROM (SELECT action_id, at, json_extract(detail, '$.error') AS error FROM (${ROWS}) WHERE type = 'attempt') t
  CROSS JOIN actions a ON a.id = t.action_id GROUP BY a.host`;

/** What an account did, counted on at most `limit` rows of the timeline of all accounts, newest first. */
export async function readActivity(sql: Sql, accountId: string, range: ActivityRange): Promise<ActivityPage> {
  const { since, until, limit } = range;
  const [oldest] = await sql.read({
    sql: "SELECT seq, at FROM timeline WHERE seq <= ? ORDER BY seq DESC LIMIT 1 OFFSET ?",
    args: [until, limit - 1],
  });
  const next = oldest === undefined ? null : Number(oldest["seq"]) - 1;
  const args = [next ?? 0, until, accountId, since.getTime()];
  const [counts, hosts] = await Promise.all([sql.read({ sql: COUNTS, args }), sql.read({ sql: HOSTS, args })]);
  return {
    counts: counts.map(countOf),
    hosts: hosts.map(hostOf),
    oldestAt: oldest === undefined ? new Date(0) : new Columns(oldest).time("at"),
    next,
  };
}

const KINDS = ["created", "completed", "failed"] as const;

function countOf(row: Row): ActivityCount {
  return {
    at: new Date(Number(row["slot"]) * OVERVIEW_SLOT_MS),
    kind: KINDS.find((kind) => kind === row["kind"]) ?? "retry",
    durationMs: typeof row["ms"] === "number" ? row["ms"] : null,
    count: Number(row["count"]),
  };
}

function hostOf(row: Row): HostActivity {
  return {
    host: String(row["host"]),
    attempts: Number(row["attempts"]),
    failed: Number(row["failed"]),
    lastError: String(row["error"] ?? ""),
    lastFailedAt: new Columns(row).time("last_failed_at"),
  };
}

/**
 * Covered by the index of the queues: otherwise bodies of a megabyte would be read to reach later columns. First
 * attempts are due at once; what is due later is a retry.
 */
const SCHEDULED = `SELECT host, count(*) AS pending, sum(due_at > ?1) AS later, min(CASE WHEN due_at > ?1 THEN due_at END) AS next_at
  FROM (SELECT host, due_at FROM actions WHERE status = 'pending' AND account_id = ?2 ORDER BY host LIMIT ?3)
  GROUP BY host ORDER BY next_at`;

/** The scheduled retries of an account, among a bounded number of pending actions. */
export async function readScheduledRetries(sql: Sql, accountId: string, now: Date): Promise<ScheduledRetries> {
  const rows = await sql.read({ sql: SCHEDULED, args: [now.getTime(), accountId, PENDING_SCAN_ROWS_MAX] });
  const total = (column: string) => rows.reduce((all, row) => all + Number(row[column]), 0);
  const [count, pending] = [total("later"), total("pending")];
  return {
    count,
    due: pending - count,
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
