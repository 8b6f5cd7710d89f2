import { and, count, eq, getTableColumns, gte, lt, max, sql, type SQLWrapper } from "drizzle-orm";
import { PENDING_SCAN_ROWS_MAX, RETRY_HOSTS_SHOWN_MAX } from "../../src/core/limits.ts";
import { type ActivityRow, type NameTotals } from "../../src/core/activity.ts";
import { mergeHistogramTexts, parseHistogram } from "../../src/core/histogram.ts";
import type {
  ActivityName,
  ActivitySpan,
  ActivityStore,
  CountedActivity,
  HostSlot,
} from "../../src/core/activity-store.ts";
import type { ScheduledRetries } from "../../src/core/store.ts";
import type { Tables } from "../commands/command.ts";
import type { Dialect } from "./dialect.ts";
import { type Args, read, type Reader } from "./read.ts";
import { Columns } from "./rows.ts";
import type { Row } from "./sql.ts";
import { POSITION_FACT } from "../commands/activity.ts";

const SPAN = { accountId: "text", slotMinutes: "number", since: "time", until: "time" } as const;

function isOfSpan({ activity: { accountId, slotMinutes, at } }: Tables, arg: Args<keyof typeof SPAN>) {
  const isAccount = and(eq(accountId, arg.accountId), eq(slotMinutes, arg.slotMinutes));
  return and(isAccount, gte(at, arg.since), lt(at, arg.until));
}

const SUMMED = ["created", "completed", "failed", "attempts", "failedAttempts"] as const;

type Stored = Tables["activity"]["$inferSelect"];

/** A row of `OF_SPAN`; without rows of a span, the position alone. */
type SpanRow =
  | { readonly counted: string; readonly accountId: null }
  | (Omit<Stored, "at" | "lastFailedAt"> & {
      readonly counted: string;
      readonly at: number;
      readonly lastFailedAt: number | null;
    });

/**
 * The slots of all, and what each host and key did in all of them: a few hundred rows for thousands. Their latencies are
 * not among it: the busier an account is, the longer these texts are, and an overview shows those of twenty names.
 */
const OF_SPAN = read(SPAN, ({ tables, valueOfMax }, arg) => {
  const { activity, facts } = tables;
  const { accountId, slotMinutes, kind, name, lastError, lastFailedAt } = activity;
  const named = (values: Readonly<Record<string, SQLWrapper>>) =>
    sql.join(
      Object.entries(values).map(([member, value]) => sql`${value} as ${sql.identifier(member)}`),
      sql`, `,
    );
  const slot = { ...getTableColumns(activity), lastError: sql`null`, lastFailedAt: sql`null` };
  const ofName = {
    ...slot,
    // An aggregate here would take the last error from another row.
    at: sql`0`,
    ...Object.fromEntries(SUMMED.map((each) => [each, sql`cast(sum(${activity[each]}) as bigint)`])),
    approved: sql`0`,
    rejected: sql`0`,
    latency: sql`''`,
    waits: sql`''`,
    lastError: valueOfMax(lastError, lastFailedAt),
    lastFailedAt: max(lastFailedAt),
  };
  return sql<SpanRow>`select ${facts.value} as counted, found.* from ${facts} left join (
      select ${named(slot)} from ${activity} where ${isOfSpan(tables, arg)} and ${kind} = 'all'
      union all
      select ${named(ofName)} from ${activity} where ${isOfSpan(tables, arg)} and ${kind} <> 'all'
      group by ${accountId}, ${slotMinutes}, ${kind}, ${name}) found on true
    where ${facts.name} = ${sql.raw(`'${POSITION_FACT}'`)}`;
});

/** What is counted of a span, and up to which position, of the same moment. */
export async function readSpan(reader: Reader, span: ActivitySpan): Promise<CountedActivity> {
  const rows = await OF_SPAN.all(reader, span);
  const found = rows.flatMap((row): readonly ActivityRow[] => {
    if (row.accountId === null) return [];
    const { counted: _, at, lastFailedAt, ...figures } = row;
    const failedAt = lastFailedAt === null ? null : new Date(lastFailedAt);
    return [activityRowOf({ ...figures, at: new Date(at), lastFailedAt: failedAt })];
  });
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

function positionIn(rows: readonly { readonly counted: string }[]): number {
  return Number(rows[0]?.counted ?? 0);
}

export function activityRowOf({ latency, waits, ...row }: Stored): ActivityRow {
  return { ...row, latency: parseHistogram(latency), waits: parseHistogram(waits) };
}

const NAMED = { ...SPAN, names: "list" } as const;

/** The rows of some hosts and keys, which are chosen from the entries of the index. */
function ofNames({ db, tables, itemsOf, placeIn }: Dialect, arg: Args<keyof typeof NAMED>) {
  const { kind, name } = tables.activity;
  const isNamed = sql`(${kind}, ${name}) in (select ${placeIn(0)}, ${placeIn(1)} from ${itemsOf(arg.names)})`;
  return db
    .select(getTableColumns(tables.activity))
    .from(tables.activity)
    .where(and(isOfSpan(tables, arg), isNamed))
    .as("found");
}

const LATENCIES = read(NAMED, (dialect, arg) => {
  const { facts } = dialect.tables;
  const found = ofNames(dialect, arg);
  return dialect.db
    .select({ counted: facts.value, kind: found.kind, name: found.name, latency: found.latency })
    .from(facts)
    .leftJoin(found, sql`true`)
    .where(eq(facts.name, POSITION_FACT));
});

/** The latencies of some hosts and keys, and up to which position they are counted. */
export async function readLatencies(
  reader: Reader,
  span: ActivitySpan,
  names: readonly ActivityName[],
): ReturnType<ActivityStore["latencies"]> {
  const rows = await LATENCIES.all(reader, { ...span, names: names.map(({ kind, name }) => [kind, name]) });
  const texts = Map.groupBy(rows, ({ kind, name }) => `${kind} ${name}`);
  const latencies = names.flatMap(({ kind, name }) => {
    const found = texts.get(`${kind} ${name}`)?.map(({ latency }) => latency ?? "");
    return found === undefined ? [] : [{ kind, name, latency: mergeHistogramTexts(found) }];
  });
  return { position: positionIn(rows), latencies };
}

const HOST_SLOTS = read(NAMED, (dialect, arg) => {
  const { facts } = dialect.tables;
  const found = ofNames(dialect, arg);
  const { name, at, created, completed, failed, attempts, failedAttempts } = found;
  return dialect.db
    .select({ counted: facts.value, host: name, at, created, completed, failed, attempts, failedAttempts })
    .from(facts)
    .leftJoin(found, sql`true`)
    .where(eq(facts.name, POSITION_FACT));
});

/** What some hosts did in each slot, and up to which position it is counted. */
export async function readHostSlots(
  reader: Reader,
  span: ActivitySpan,
  hosts: readonly string[],
): ReturnType<ActivityStore["hostSlots"]> {
  const rows = await HOST_SLOTS.all(reader, { ...span, names: hosts.map((host) => ["host", host]) });
  // Without slots, the position alone.
  const found = rows.filter((row): row is typeof row & HostSlot => row.host !== null);
  const slots = found.map((row): HostSlot => {
    const { counted: _, ...slot } = row;
    return slot;
  });
  return { position: positionIn(rows), slots };
}

/**
 * Covered by the index of the queues: otherwise bodies of a megabyte would be read to reach later columns. What is due
 * later is a retry or has a `run_at`.
 */
const PENDING_BY_HOST = read({ accountId: "text", now: "time" }, ({ db, tables: { actions } }, arg) => {
  const s = db
    .select({ host: actions.host, dueAt: actions.dueAt })
    .from(actions)
    .where(and(eq(actions.status, "pending"), eq(actions.accountId, arg.accountId)))
    .orderBy(actions.host)
    .limit(PENDING_SCAN_ROWS_MAX)
    .as("s");
  const nextAt = sql`min(case when ${s.dueAt} > ${arg.now} then ${s.dueAt} end)`;
  return db
    .select({
      host: s.host,
      pending: count().as("pending"),
      later: sql<number>`count(*) filter (where ${s.dueAt} > ${arg.now})`.as("later"),
      dueSince: sql`min(case when ${s.dueAt} <= ${arg.now} then ${s.dueAt} end)`.as("due_since"),
      nextAt: nextAt.as("next_at"),
    })
    .from(s)
    .groupBy(s.host)
    .orderBy(nextAt);
});

/** The scheduled retries of an account, among a bounded number of pending actions. */
export async function readScheduledRetries(reader: Reader, accountId: string, now: Date): Promise<ScheduledRetries> {
  const rows = await PENDING_BY_HOST.raw(reader, { accountId, now });
  const total = (column: string) => rows.reduce((all, row) => all + Number(row[column]), 0);
  const [later, pending] = [total("later"), total("pending")];
  // Times that were altered can't be told.
  const timeIn = (row: Row, name: string) => new Columns(row).timeOrNull({ name });
  const dueSince = rows.flatMap((row) => timeIn(row, "due_since")?.getTime() ?? []);
  const hosts = rows.flatMap((row) => {
    const nextAt = timeIn(row, "next_at");
    return nextAt === null ? [] : [{ host: String(row["host"]), count: Number(row["later"]), nextAt }];
  });
  return {
    count: later,
    due: pending - later,
    dueSince: dueSince.length === 0 ? null : new Date(Math.min(...dueSince)),
    isCut: pending === PENDING_SCAN_ROWS_MAX,
    hosts: hosts.slice(0, RETRY_HOSTS_SHOWN_MAX),
  };
}
