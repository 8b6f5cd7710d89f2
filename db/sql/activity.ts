import {
  and,
  asc,
  count,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  isNull,
  lt,
  lte,
  max,
  or,
  sql,
  type SQLWrapper,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ActivityGroup, ActivityRow, NameTotals } from "../../src/core/activity.ts";
import type {
  ActivityName,
  ActivitySpan,
  ActivityStore,
  CountedActivity,
  FirstStepStore,
  HostSlot,
} from "../../src/core/activity-store.ts";
import { histogramText, mergeHistogramTexts, parseHistogram } from "../../src/core/histogram.ts";
import { FIRST_ACTIONS_READ_MAX, PENDING_SCAN_ROWS_MAX, RETRY_HOSTS_SHOWN_MAX } from "../../src/core/limits.ts";
import type { ScheduledRetries } from "../../src/core/store.ts";
import { FIGURES, POSITION_FACT, put } from "../commands/activity.ts";
import type { Tables } from "../commands/command.ts";
import * as firstSteps from "../commands/first-steps.ts";
import { pruneActivity } from "../commands/upkeep.ts";
import type { StoreContext } from "./context.ts";
import { valuesOf } from "./create.ts";
import type { Dialect } from "./dialect.ts";
import { readPosition } from "./events.ts";
import { readFact } from "./facts.ts";
import { type Args, read, type Reader } from "./read.ts";
import { Columns } from "./rows.ts";
import type { Row } from "./sql.ts";

export function createActivityStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): ActivityStore {
  return {
    position: async () => Number((await readFact(reader, POSITION_FACT)) ?? 0),

    async groups(after, { accountId, since, limit }) {
      const newest = await readPosition(reader);
      if (newest <= after) return { groups: [], position: after, at: null, isLast: true };
      const end = await PAGE_END.get(reader, { after, skipped: limit - 1 });
      const until = end === null ? newest : Math.min(newest, end.seq);
      const rows = await GROUPS.all(reader, { after, until, since, accountId });
      const groups = rows.map(({ minute, kind, ...figures }): ActivityGroup => {
        return { ...figures, at: new Date(minute * MINUTE_MS), kind: KINDS.find((one) => one === kind) ?? "retry" };
      });
      return { groups, position: until, at: end?.at ?? null, isLast: until === newest };
    },

    async stored(slots) {
      if (slots.length === 0) return [];
      const items = slots.map(({ accountId, slotMinutes, at }) => [accountId, slotMinutes, at.getTime()]);
      return (await STORED.all(reader, { slots: items })).map(activityRowOf);
    },

    read: (span) => readSpan(reader, span),
    latencies: (span, names) => readLatencies(reader, span, names),
    hostSlots: (span, hosts) => readHostSlots(reader, span, hosts),

    async put(write) {
      const { from, to, rows, steps } = write;
      return writer.run(put, {
        from,
        to,
        rows: rows.map((row) =>
          valuesOf(FIGURES, { ...row, latency: histogramText(row.latency), waits: histogramText(row.waits) }),
        ),
        steps: steps.map((step) => ({ ...step, personId: "" })),
      });
    },

    prune: (slotMinutes, before) => writer.run(pruneActivity, { slotMinutes, before }),
  };
}

const PAGE_END = read({ after: "number", skipped: "number" }, ({ db, tables: { timeline } }, arg) =>
  db
    .select({ seq: timeline.seq, at: timeline.at })
    .from(timeline)
    .where(gt(timeline.seq, arg.after))
    .orderBy(asc(timeline.seq))
    .limit(1)
    .offset(arg.skipped),
);

const MINUTE_MS = 60_000;

/**
 * What happened on a stretch of the timeline, found by its primary key as the event stream finds it: an index by account
 * would slow all writes. A detail that was altered to invalid JSON counts as empty: it would fail the whole page.
 */
const GROUPS = read(
  { after: "number", until: "number", since: "time", accountId: "text?" },
  ({ db, tables: { timeline, actions }, jsonField, greatest, valueOfMax }, arg) => {
    const isOfAccount = or(isNull(arg.accountId), eq(timeline.accountId, arg.accountId));
    const types = inArray(timeline.type, ["created", "attempt", "approved", "rejected"]);
    const t = db
      .select({
        actionId: timeline.actionId,
        accountId: timeline.accountId,
        at: timeline.at,
        run: timeline.run,
        type: timeline.type,
        status: timeline.status,
        detail: timeline.detail,
      })
      .from(timeline)
      .where(and(gt(timeline.seq, arg.after), lte(timeline.seq, arg.until), isOfAccount, types))
      .as("t");
    const begun = alias(timeline, "begun");
    // A run begins with the row that holds it.
    const heldAt = db
      .select({ at: sql`min(${begun.at})`.as("held_at") })
      .from(begun)
      .where(and(sql`${begun.actionId} = ${t.actionId}`, sql`${begun.run} = ${t.run}`));
    const c = db
      .select({
        accountId: t.accountId,
        at: sql`${t.at}`.as("happened_at"),
        minute: sql<number>`${t.at} / ${MINUTE_MS}`.as("minute"),
        host: actions.host,
        createdBy: actions.createdBy,
        keyId: actions.keyId,
        kind: sql<string>`case when ${t.type} <> 'attempt' then ${t.type}
          when ${t.status} in ('completed', 'failed') then ${t.status} else 'retry' end`.as("group_kind"),
        ms: sql<
          number | null
        >`case when ${t.type} = 'attempt' then cast(cast(${jsonField(t.detail, "duration_ms")} as numeric) as bigint)
          when ${t.type} <> 'created' then ${greatest(sql`0`, sql`${t.at} - ${heldAt}`)} end`.as("ms"),
        error: sql<string | null>`case when ${t.type} = 'attempt' then ${jsonField(t.detail, "error")} end`.as("error"),
      })
      .from(t)
      .crossJoin(actions)
      .where(and(eq(actions.id, t.actionId), gte(t.at, arg.since)))
      .as("c");
    // Durations to two digits, so that a page has a bounded number of them.
    const rounded = sql`case when ${c.ms} < 100 then ${c.ms} when ${c.ms} < 1000 then ${c.ms} / 10 * 10
      when ${c.ms} < 10000 then ${c.ms} / 100 * 100 else ${c.ms} / 1000 * 1000 end`;
    return db
      .select({
        accountId: c.accountId,
        minute: c.minute,
        host: c.host,
        keyId: c.keyId,
        kind: c.kind,
        ms: sql<number | null>`round(avg(${c.ms}))`.as("mean_ms"),
        count: count().as("count"),
        byMcp: sql<number>`count(*) filter (where ${c.kind} = 'created' and ${c.createdBy} like 'mcp:%')`.as("by_mcp"),
        failedAttempts: count(c.error).as("failed"),
        lastError: sql<string | null>`${valueOfMax(c.error, c.at)}`.as("last_error"),
        lastFailedAt: sql<Date | null>`max(case when ${c.error} is not null then ${c.at} end)`
          .mapWith(timeline.at)
          .as("last_failed_at"),
      })
      .from(c)
      .groupBy(sql`${c.accountId}`, sql`${c.minute}`, sql`${c.host}`, sql`${c.keyId}`, sql`${c.kind}`, rounded);
  },
);

const KINDS = ["created", "completed", "failed", "retry", "approved", "rejected"] as const;

const STORED = read({ slots: "list" }, ({ db, tables: { activity }, itemsOf, placeIn }, arg) => {
  const { accountId, slotMinutes, at } = activity;
  const isSlot = sql`${accountId} = ${placeIn(0)} and ${slotMinutes} = cast(${placeIn(1)} as bigint)
    and ${at} = cast(${placeIn(2)} as bigint)`;
  return db.select(getTableColumns(activity)).from(itemsOf(arg.slots)).crossJoin(activity).where(isSlot);
});

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
async function readSpan(reader: Reader, span: ActivitySpan): Promise<CountedActivity> {
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

function activityRowOf({ latency, waits, ...row }: Stored): ActivityRow {
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
async function readLatencies(
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
async function readHostSlots(
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

/** What accounts did for the first time; a step that is stored keeps its time. */
export function createFirstStepStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): FirstStepStore {
  return {
    done: (accountId, personId) => OF_PERSON.all(reader, { accountId, personId }),
    newest: (accountId) => NEWEST_ACTIONS.all(reader, { accountId }),
    add: (step) => writer.run(firstSteps.add, step),
    remove: (step) => writer.run(firstSteps.remove, step),
  };
}

const NEWEST_ACTIONS = read({ accountId: "text" }, ({ db, tables: { actions } }, arg) =>
  db
    .select({ createdBy: actions.createdBy, approvedBy: actions.approvedBy })
    .from(actions)
    .where(eq(actions.accountId, arg.accountId))
    .orderBy(desc(actions.id))
    .limit(FIRST_ACTIONS_READ_MAX),
);

/** At most one row for each step, and one more of the person. */
const OF_PERSON = read({ accountId: "text", personId: "text" }, ({ db, tables: { firstSteps: steps } }, arg) =>
  db
    .select({ step: steps.step, at: steps.at })
    .from(steps)
    .where(and(eq(steps.accountId, arg.accountId), or(eq(steps.personId, ""), eq(steps.personId, arg.personId)))),
);
