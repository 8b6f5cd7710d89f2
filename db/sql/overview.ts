import { and, type Column, count, eq, type SQL, sql } from "drizzle-orm";
import { PENDING_SCAN_ROWS_MAX, RETRY_HOSTS_SHOWN_MAX } from "../../src/core/limits.ts";
import { ACTIVITY_KINDS, type ActivityRow, type NameTotals } from "../../src/core/activity.ts";
import { mergeHistogramTexts, parseHistogram } from "../../src/core/histogram.ts";
import type {
  ActivityName,
  ActivitySpan,
  ActivityStore,
  CountedActivity,
  HostSlot,
} from "../../src/core/activity-store.ts";
import type { ScheduledRetries } from "../../src/core/store.ts";
import { countWhere, itemsOf, placeIn, valueOfMax } from "./dialect.ts";
import { type Args, list, prepare, query } from "./query.ts";
import { POSITION_FACT } from "../commands/activity.ts";
import { Columns } from "./rows.ts";
import { actions, activity, facts } from "../libsql/schema.ts";
import type { Row, Sql } from "./sql.ts";

type SpanName = "accountId" | "slotMinutes" | "since" | "until";

function isOfSpan(arg: Args<SpanName>): SQL {
  const { accountId, slotMinutes, at } = activity;
  return sql`${accountId} = ${arg.accountId} and ${slotMinutes} = ${arg.slotMinutes}
    and ${at} >= ${arg.since} and ${at} < ${arg.until}`;
}

const SUMMED = ["created", "completed", "failed", "attempts", "failedAttempts"] as const;

/**
 * The slots of all, and what each host and key did in all of them: a few hundred rows for thousands. Their latencies are
 * not among it: the busier an account is, the longer these texts are, and an overview shows those of twenty names.
 */
const OF_SPAN = prepare((arg: Args<SpanName>) => {
  const { at, kind, name, approved, rejected, latency, waits, lastError, lastFailedAt, accountId, slotMinutes } =
    activity;
  const summed = SUMMED.map((each) => activity[each]);
  const named = (column: Column, value: unknown = column) => sql`${value} as ${sql.identifier(column.name)}`;
  const slot = [accountId, slotMinutes, at, kind, name, ...summed, approved, rejected, latency, waits].map((column) =>
    named(column),
  );
  const ofName = [
    ...[accountId, slotMinutes].map((column) => named(column)),
    // An aggregate here would take the last error from another row.
    named(at, sql`0`),
    ...[kind, name].map((column) => named(column)),
    ...summed.map((column) => named(column, sql`cast(sum(${column}) as bigint)`)),
    ...[approved, rejected].map((column) => named(column, sql`0`)),
    ...[latency, waits].map((column) => named(column, sql`''`)),
    named(lastError, valueOfMax(sql`${lastError}`, lastFailedAt)),
    named(lastFailedAt, sql`max(${lastFailedAt})`),
  ];
  const nothing = [lastError, lastFailedAt].map((column) => named(column, sql`null`));
  return sql`select ${facts.value} as counted, found.* from ${facts} left join (
      select ${list([...slot, ...nothing])} from ${activity} where ${isOfSpan(arg)} and ${kind} = 'all'
      union all
      select ${list(ofName)} from ${activity} where ${isOfSpan(arg)} and ${kind} <> 'all'
      group by ${list([accountId, slotMinutes, kind, name])}) found on true
    where ${facts.name} = ${sql.raw(`'${POSITION_FACT}'`)}`;
});

/** What is counted of a span, and up to which position, of the same moment. */
export async function readSpan(reader: Sql, span: ActivitySpan): Promise<CountedActivity> {
  const rows = await OF_SPAN.readRaw(reader, { ...span });
  // With no row, the position alone.
  const found = rows.filter((row) => row["account_id"] !== null).map(activityRowOf);
  return {
    position: positionIn(rows),
    slots: found.filter(({ kind }) => kind === "all"),
    names: found.flatMap((row) => namesIn(row)),
  };
}

function namesIn({ kind, name, ...figures }: ActivityRow): readonly NameTotals[] {
  if (kind === "all") return [];
  const { created, completed, failed, attempts, failedAttempts, lastError, lastFailedAt } = figures;
  return [{ kind, name, created, completed, failed, attempts, failedAttempts, lastError, lastFailedAt }];
}

/** The rows are chosen from the entries of the index. */
const LATENCIES = prepare((arg: Args<SpanName | "names">) => {
  const { kind, name, latency } = activity;
  const isNamed = sql`(${kind}, ${name}) in (select ${placeIn(0)}, ${placeIn(1)} from ${itemsOf(arg.names)})`;
  return sql`select ${facts.value} as counted, found.* from ${facts} left join (
      select ${kind} as kind, ${name} as name, ${latency} as latency from ${activity}
      where ${isOfSpan(arg)} and ${isNamed}) found on true
    where ${facts.name} = ${sql.raw(`'${POSITION_FACT}'`)}`;
});

/** The latencies of some hosts and keys, and up to which position they are counted. */
export async function readLatencies(
  reader: Sql,
  span: ActivitySpan,
  names: readonly ActivityName[],
): ReturnType<ActivityStore["latencies"]> {
  const values = { ...span, names: JSON.stringify(names.map(({ kind, name }) => [kind, name])) };
  const rows = await LATENCIES.readRaw(reader, values);
  const texts = Map.groupBy(rows, (row) => `${String(row["kind"])} ${String(row["name"])}`);
  const latencies = names.flatMap(({ kind, name }) => {
    const found = texts.get(`${kind} ${name}`);
    return found === undefined ? [] : [{ kind, name, latency: mergeHistogramTexts(latencyTexts(found)) }];
  });
  return { position: positionIn(rows), latencies };
}

function latencyTexts(rows: readonly Row[]): readonly string[] {
  return rows.map((row) => new Columns(row).text(activity.latency));
}

function positionIn(rows: readonly Row[]): number {
  return Number(rows[0]?.["counted"] ?? 0);
}

/** The slots of a few hosts, chosen from the entries of the index. */
const HOST_SLOTS = prepare((arg: Args<SpanName | "names">) => {
  const { at, kind, name } = activity;
  const isNamed = sql`(${kind}, ${name}) in (select ${placeIn(0)}, ${placeIn(1)} from ${itemsOf(arg.names)})`;
  const columns = [at, name, ...SUMMED.map((each) => activity[each])];
  return sql`select ${facts.value} as counted, found.* from ${facts} left join (
      select ${list(columns.map((column) => sql`${column} as ${sql.identifier(column.name)}`))} from ${activity}
      where ${isOfSpan(arg)} and ${isNamed}) found on true
    where ${facts.name} = ${sql.raw(`'${POSITION_FACT}'`)}`;
});

/** What some hosts did in each slot, and up to which position it is counted. */
export async function readHostSlots(
  reader: Sql,
  span: ActivitySpan,
  hosts: readonly string[],
): ReturnType<ActivityStore["hostSlots"]> {
  const values = { ...span, names: JSON.stringify(hosts.map((host) => ["host", host])) };
  const rows = await HOST_SLOTS.readRaw(reader, values);
  const slots = rows.flatMap((row): readonly HostSlot[] => {
    if (row["name"] === null) return [];
    const columns = new Columns(row);
    const sum = (name: (typeof SUMMED)[number]) => columns.count(activity[name], 0);
    const [created, completed, failed] = [sum("created"), sum("completed"), sum("failed")];
    const attempts = { attempts: sum("attempts"), failedAttempts: sum("failedAttempts") };
    return [
      { host: columns.text(activity.name), at: columns.time(activity.at), created, completed, failed, ...attempts },
    ];
  });
  return { position: positionIn(rows), slots };
}

/** A stored row. Values that were altered are replaced. */
export function activityRowOf(row: Row): ActivityRow {
  const columns = new Columns(row);
  return {
    accountId: columns.text(activity.accountId),
    slotMinutes: columns.count(activity.slotMinutes, 1),
    at: columns.time(activity.at),
    kind: columns.oneOf(activity.kind, ACTIVITY_KINDS, "all"),
    name: columns.text(activity.name),
    created: columns.count(activity.created, 0),
    completed: columns.count(activity.completed, 0),
    failed: columns.count(activity.failed, 0),
    attempts: columns.count(activity.attempts, 0),
    failedAttempts: columns.count(activity.failedAttempts, 0),
    approved: columns.count(activity.approved, 0),
    rejected: columns.count(activity.rejected, 0),
    latency: parseHistogram(columns.text(activity.latency)),
    waits: parseHistogram(columns.text(activity.waits)),
    lastError: columns.textOrNull(activity.lastError),
    lastFailedAt: columns.timeOrNull(activity.lastFailedAt),
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
      dueSince: sql`min(case when ${s.dueAt} <= ${arg.now} then ${s.dueAt} end)`.as("due_since"),
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
  // Times that were altered can't be told.
  const timeIn = (row: Row, name: string) => new Columns(row).timeOrNull({ name });
  const dueSince = rows.flatMap((row) => timeIn(row, "due_since")?.getTime() ?? []);
  return {
    count: later,
    due: pending - later,
    dueSince: dueSince.length === 0 ? null : new Date(Math.min(...dueSince)),
    isCut: pending === PENDING_SCAN_ROWS_MAX,
    hosts: rows
      .filter((row) => Number(row["later"]) > 0)
      .slice(0, RETRY_HOSTS_SHOWN_MAX)
      .flatMap((row) => {
        const nextAt = timeIn(row, "next_at");
        return nextAt === null ? [] : [{ host: String(row["host"]), count: Number(row["later"]), nextAt }];
      }),
  };
}
