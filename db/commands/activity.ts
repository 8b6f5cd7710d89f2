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
import type { ActivityGroup, ActivityRow } from "../../src/core/activity.ts";
import type { ActivityStore, FirstStepStore, HostSlot } from "../../src/core/activity-store.ts";
import { histogramText, mergeHistogramTexts, parseHistogram } from "../../src/core/histogram.ts";
import { ACTIVITY_PRUNE_ROWS, FIRST_ACTIONS_READ_MAX } from "../../src/core/limits.ts";
import type { StoreContext } from "../sql/context.ts";
import { type Dialect, hasValues } from "../sql/dialect.ts";
import { type Args, read, type Reader } from "../sql/read.ts";
import { command, isOneOfRows, type Tables } from "./command.ts";
import { readFact } from "./facts.ts";
import { insertList, type Values, valuesOf } from "./lists.ts";

/** The fact that says up to which position of the timeline the figures of the overview are counted. */
const POSITION_FACT = "activity";

const PUT = insertList(
  "activity",
  [],
  `on conflict (account_id, slot_minutes, at, kind, name) do update set created = excluded.created,
    completed = excluded.completed, failed = excluded.failed, attempts = excluded.attempts,
    failed_attempts = excluded.failed_attempts, approved = excluded.approved, rejected = excluded.rejected,
    latency = excluded.latency, waits = excluded.waits, last_error = excluded.last_error,
    last_failed_at = excluded.last_failed_at`,
);

interface Counted {
  /** The positions from and to which the rows were counted. */
  readonly from: number;
  readonly to: number;
  readonly rows: readonly Values[];
  readonly steps: readonly FirstStep[];
}

type FirstStep = Tables["firstSteps"]["$inferInsert"];

/** Writes the figures of a part of the timeline; false: another node has counted it. */
export const put = command(async ({ db, tables: { facts, firstSteps }, lists }, { from, to, rows, steps }: Counted) => {
  await db.insert(facts).values({ name: POSITION_FACT, value: "0" }).onConflictDoNothing({ target: facts.name });
  const isNext = hasValues(facts, { name: POSITION_FACT, value: String(from) });
  const next = db.update(facts).set({ value: String(to) });
  const moved = await next.where(isNext).returning({ name: facts.name });
  if (moved.length === 0) return false;
  await lists.insert(PUT, rows);
  if (steps.length > 0)
    await db
      .insert(firstSteps)
      .values([...steps])
      .onConflictDoNothing();
  return true;
});

export const prune = command<ActivityStore["prune"]>(async ({ db, tables: { activity } }, slotMinutes, before) => {
  const { accountId, at, kind, name } = activity;
  const isOld = and(eq(activity.slotMinutes, slotMinutes), lt(at, before));
  const rows = await db.select({ accountId, at, kind, name }).from(activity).where(isOld).limit(ACTIVITY_PRUNE_ROWS);
  if (rows.length > 0) {
    const columns = [accountId, activity.slotMinutes, at, kind, name];
    const values = rows.map((row) => [row.accountId, slotMinutes, row.at.getTime(), row.kind, row.name]);
    await db.delete(activity).where(isOneOfRows(columns, values));
  }
  return rows.length === ACTIVITY_PRUNE_ROWS;
});

export const addStep = command<FirstStepStore["add"]>(async ({ db, tables: { firstSteps } }, step) => {
  await db.insert(firstSteps).values(step).onConflictDoNothing();
});

export const removeStep = command<FirstStepStore["remove"]>(
  async ({ db, tables: { firstSteps } }, { accountId, personId, step }) => {
    await db.delete(firstSteps).where(hasValues(firstSteps, { accountId, personId, step }));
  },
);

const NEWEST_POSITION = read({}, ({ db, tables: { timeline }, isSettled }) =>
  db
    .select({ seq: max(timeline.seq).as("seq") })
    .from(timeline)
    .where(isSettled(timeline.seq)),
);

/** The newest position of the timeline. */
export async function readPosition(reader: Reader): Promise<number> {
  return (await NEWEST_POSITION.get(reader, {}))?.seq ?? 0;
}

/** The last row of a stretch of the timeline. Numbers have gaps, so rows are counted. */
export const STRETCH_END = read({ after: "number", skipped: "number" }, ({ db, tables: { timeline } }, arg) => {
  const { seq, at } = timeline;
  const after = db.select({ seq, at }).from(timeline).where(gt(seq, arg.after)).orderBy(asc(seq));
  return after.limit(1).offset(arg.skipped);
});

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
    const { actionId, accountId, at, run, type, status, detail } = timeline;
    const t = db
      .select({ actionId, accountId, at, run, type, status, detail })
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

const NEWEST_ACTIONS = read({ accountId: "text" }, ({ db, tables: { actions } }, arg) =>
  db
    .select({ createdBy: actions.createdBy, approvedBy: actions.approvedBy })
    .from(actions)
    .where(eq(actions.accountId, arg.accountId))
    .orderBy(desc(actions.id))
    .limit(FIRST_ACTIONS_READ_MAX),
);

/** At most one row for each step, and one more of the person. */
const OF_PERSON = read({ accountId: "text", personId: "text" }, ({ db, tables: { firstSteps } }, arg) => {
  const { accountId, personId, step, at } = firstSteps;
  const isOfPerson = or(eq(personId, ""), eq(personId, arg.personId));
  return db
    .select({ step, at })
    .from(firstSteps)
    .where(and(eq(accountId, arg.accountId), isOfPerson));
});

function activityRowOf({ latency, waits, ...row }: Stored): ActivityRow {
  return { ...row, latency: parseHistogram(latency), waits: parseHistogram(waits) };
}

function positionIn(rows: readonly { readonly counted: string }[]): number {
  return Number(rows[0]?.counted ?? 0);
}

export function createActivityStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): ActivityStore {
  return {
    position: async () => Number((await readFact(reader, POSITION_FACT)) ?? 0),

    async groups(after, { accountId, since, limit }) {
      const newest = await readPosition(reader);
      if (newest <= after) return { groups: [], position: after, at: null, isLast: true };
      const end = await STRETCH_END.get(reader, { after, skipped: limit - 1 });
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

    async read(span) {
      const rows = await OF_SPAN.all(reader, span);
      const found = rows.flatMap((row): readonly ActivityRow[] => {
        if (row.accountId === null) return [];
        const { counted: _, at, lastFailedAt, ...figures } = row;
        const failedAt = lastFailedAt === null ? null : new Date(lastFailedAt);
        return [activityRowOf({ ...figures, at: new Date(at), lastFailedAt: failedAt })];
      });
      const names = found.flatMap(({ kind, name, ...figures }) => {
        if (kind === "all") return [];
        const { created, completed, failed, attempts, failedAttempts, lastError, lastFailedAt } = figures;
        return [{ kind, name, created, completed, failed, attempts, failedAttempts, lastError, lastFailedAt }];
      });
      return { position: positionIn(rows), slots: found.filter(({ kind }) => kind === "all"), names };
    },

    async latencies(span, names) {
      const rows = await LATENCIES.all(reader, { ...span, names: names.map(({ kind, name }) => [kind, name]) });
      const texts = Map.groupBy(rows, ({ kind, name }) => `${kind} ${name}`);
      const latencies = names.flatMap(({ kind, name }) => {
        const found = texts.get(`${kind} ${name}`)?.map(({ latency }) => latency ?? "");
        return found === undefined ? [] : [{ kind, name, latency: mergeHistogramTexts(found) }];
      });
      return { position: positionIn(rows), latencies };
    },

    async hostSlots(span, hosts) {
      const rows = await HOST_SLOTS.all(reader, { ...span, names: hosts.map((host) => ["host", host]) });
      // Without slots, the position alone.
      const found = rows.filter((row): row is typeof row & HostSlot => row.host !== null);
      const slots = found.map((row): HostSlot => {
        const { counted: _, ...slot } = row;
        return slot;
      });
      return { position: positionIn(rows), slots };
    },

    async put({ from, to, rows, steps }) {
      const stored = rows.map((row) =>
        valuesOf(PUT.columns, { latency: histogramText(row.latency), waits: histogramText(row.waits) }, row),
      );
      return writer.run(put, { from, to, rows: stored, steps: steps.map((step) => ({ ...step, personId: "" })) });
    },

    prune: writer.method(prune),
  };
}

/** What accounts did for the first time; a step that is stored keeps its time. */
export function createFirstStepStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): FirstStepStore {
  return {
    done: (accountId, personId) => OF_PERSON.all(reader, { accountId, personId }),
    newest: (accountId) => NEWEST_ACTIONS.all(reader, { accountId }),
    add: writer.method(addStep),
    remove: writer.method(removeStep),
  };
}
