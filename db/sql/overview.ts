import { and, count, desc, eq, gt, gte, inArray, lte, sql } from "drizzle-orm";
import { OVERVIEW_SLOT_MS, PENDING_SCAN_ROWS_MAX, RETRY_HOSTS_SHOWN_MAX } from "../../src/config/limits.ts";
import type { ActivityCount, ActivityPage, ActivityRange, HostActivity, ScheduledRetries } from "../store.ts";
import { countWhere, numberField, textField, validJson, valueOfMax } from "./dialect.ts";
import { type Args, prepare, query } from "./query.ts";
import { Columns } from "./rows.ts";
import { actions, timeline } from "../libsql/schema.ts";
import type { Row, Sql } from "./sql.ts";

const pageEnd = prepare((arg: Args<"until" | "skipped">) =>
  query
    .select({ seq: timeline.seq, at: timeline.at })
    .from(timeline)
    .where(lte(timeline.seq, arg.until))
    .orderBy(desc(timeline.seq))
    .limit(1)
    .offset(arg.skipped),
);

type Range = Args<"after" | "until" | "accountId" | "since">;

/**
 * The rows of an account on a stretch of the timeline, found by its primary key as the event stream finds them: an index
 * by account would slow all writes. A detail that was altered to invalid JSON counts as empty: it would fail the whole page.
 */
const rowsIn = ({ after, until, accountId, since }: Range) =>
  query
    .select({
      actionId: timeline.actionId,
      at: timeline.at,
      type: timeline.type,
      status: timeline.status,
      detail: validJson(timeline.detail).as("detail"),
    })
    .from(timeline)
    .where(
      and(
        gt(timeline.seq, after),
        lte(timeline.seq, until),
        eq(timeline.accountId, accountId),
        gte(timeline.at, since),
      ),
    )
    .as("t");

const activityBySlot = prepare((range: Range) => {
  const t = rowsIn(range);
  const c = query
    .select({
      slot: sql`${t.at} / ${OVERVIEW_SLOT_MS}`.as("slot"),
      kind: sql`case when ${t.type} = 'created' then ${t.type}
        when ${t.status} in ('completed', 'failed') then ${t.status} else 'retry' end`.as("kind"),
      ms: numberField(t.detail, "duration_ms").as("ms"),
    })
    .from(t)
    .where(inArray(t.type, ["created", "attempt"]))
    .as("c");
  // Durations to two digits, so that a page has a bounded number of them.
  const rounded = sql`case when ${c.ms} < 100 then ${c.ms} when ${c.ms} < 1000 then ${c.ms} / 10 * 10
    when ${c.ms} < 10000 then ${c.ms} / 100 * 100 else ${c.ms} / 1000 * 1000 end`;
  return query
    .select({ slot: c.slot, kind: c.kind, ms: sql`round(avg(${c.ms}))`.as("mean_ms"), count: count().as("count") })
    .from(c)
    .groupBy(sql`${c.slot}`, sql`${c.kind}`, rounded);
});

/** `error` is that of the last failure: with one `max`, SQLite takes other columns from the row that has it. */
const activityByHost = prepare((range: Range) => {
  const t = rowsIn(range);
  const error = textField(t.detail, "error");
  return query
    .select({
      host: actions.host,
      attempts: count().as("attempts"),
      failed: sql`count(${error})`.as("failed"),
      error: valueOfMax(error, t.at).as("error"),
      lastFailedAt: sql`max(case when ${error} is not null then ${t.at} end)`.as("last_failed_at"),
    })
    .from(t)
    .crossJoin(actions)
    .where(and(eq(t.type, "attempt"), eq(actions.id, t.actionId)))
    .groupBy(actions.host);
});

/** What an account did, counted on at most `limit` rows of the timeline of all accounts, newest first. */
export async function readActivity(connection: Sql, accountId: string, range: ActivityRange): Promise<ActivityPage> {
  const { since, until, limit } = range;
  const [oldest] = await pageEnd.readRaw(connection, { until, skipped: limit - 1 });
  const next = oldest === undefined ? null : Number(oldest["seq"]) - 1;
  const args = { after: next ?? 0, until, accountId, since };
  const [counts, hosts] = await Promise.all([
    activityBySlot.readRaw(connection, args),
    activityByHost.readRaw(connection, args),
  ]);
  return {
    counts: counts.map(countOf),
    hosts: hosts.map(hostOf),
    oldestAt: oldest === undefined ? new Date(0) : new Columns(oldest).time(timeline.at),
    next,
  };
}

const KINDS = ["created", "completed", "failed"] as const;

function countOf(row: Row): ActivityCount {
  return {
    at: new Date(Number(row["slot"]) * OVERVIEW_SLOT_MS),
    kind: KINDS.find((kind) => kind === row["kind"]) ?? "retry",
    durationMs: typeof row["mean_ms"] === "number" ? row["mean_ms"] : null,
    count: Number(row["count"]),
  };
}

function hostOf(row: Row): HostActivity {
  return {
    host: String(row["host"]),
    attempts: Number(row["attempts"]),
    failed: Number(row["failed"]),
    lastError: String(row["error"] ?? ""),
    lastFailedAt: new Columns(row).time({ name: "last_failed_at" }),
  };
}

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
