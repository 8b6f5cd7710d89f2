import { and, asc, type Column, eq, getTableColumns, gt, gte, inArray, lt, lte, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ActivityGroup, ActivityRow } from "../../src/core/activity.ts";
import { histogramText } from "../../src/core/histogram.ts";
import { ACTIVITY_PRUNE_ROWS } from "../../src/core/limits.ts";
import type { ActivityStore, ActivityWrite } from "../../src/core/activity-store.ts";
import type { StoreContext } from "./context.ts";
import {
  countWhere,
  isOneOfPlaces,
  itemsOf,
  largerOf,
  numberField,
  place,
  placeIn,
  textField,
  validJson,
  valueOfMax,
} from "./dialect.ts";
import { readPosition } from "./events.ts";
import { firstStepRows } from "./first-steps.ts";
import { activityRowOf, POSITION_FACT, readHostSlots, readLatencies, readSpan } from "./overview.ts";
import { type Args, bareNames, changed, list, prepare, prepareEach, query, typed } from "./query.ts";
import { Columns } from "./rows.ts";
import { actions, activity, facts, timeline } from "../libsql/schema.ts";
import type { Row, Sql, Statement } from "./sql.ts";

export function createActivityStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): ActivityStore {
  return {
    position: () => readCounted(reader),

    async groups(after, { accountId, since, limit }) {
      const newest = await readPosition(reader);
      if (newest <= after) return { groups: [], position: after, at: null, isLast: true };
      const [end] = await PAGE_END.read(reader, { after, skipped: limit - 1 });
      const until = end === undefined ? newest : Math.min(newest, end.seq);
      const args = { after, until, since, accountId: accountId ?? "" };
      const rows = await groupsOf(accountId === null ? "all" : "one").readRaw(reader, args);
      return { groups: rows.map(groupOf), position: until, at: end?.at ?? null, isLast: until === newest };
    },

    async stored(slots) {
      if (slots.length === 0) return [];
      const items = slots.map(({ accountId, slotMinutes, at }) => [accountId, slotMinutes, at.getTime()]);
      return (await STORED.readRaw(reader, { slots: JSON.stringify(items) })).map(activityRowOf);
    },

    read: (span) => readSpan(reader, span),
    latencies: (span, names) => readLatencies(reader, span, names),
    hostSlots: (span, hosts) => readHostSlots(reader, span, hosts),

    async put(write) {
      const [, done] = await writer.write([BEGIN.bind({}), ...putStatements(write)]);
      return (done?.changes ?? 0) > 0;
    },

    async prune(slotMinutes, before) {
      const [done] = await writer.write([PRUNE.bind({ slotMinutes, before })]);
      return (done?.changes ?? 0) >= ACTIVITY_PRUNE_ROWS;
    },
  };
}

const COUNTED = prepare(() => query.select().from(facts).where(eq(facts.name, POSITION_FACT)));

async function readCounted(reader: Sql): Promise<number> {
  const [found] = await COUNTED.read(reader, {});
  return Number(found?.value ?? 0);
}

const PAGE_END = prepare((arg: Args<"after" | "skipped">) =>
  query
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
const groupsOf = prepareEach((whose: "all" | "one") =>
  prepare((arg: Args<"after" | "until" | "since" | "accountId">) => {
    const isOfAccount = whose === "one" ? eq(timeline.accountId, arg.accountId) : undefined;
    const types = inArray(timeline.type, ["created", "attempt", "approved", "rejected"]);
    const t = query
      .select({
        actionId: timeline.actionId,
        accountId: timeline.accountId,
        at: timeline.at,
        run: timeline.run,
        type: timeline.type,
        status: timeline.status,
        detail: validJson(timeline.detail).as("detail"),
      })
      .from(timeline)
      .where(and(gt(timeline.seq, arg.after), lte(timeline.seq, arg.until), isOfAccount, types))
      .as("t");
    const begun = alias(timeline, "begun");
    // A run begins with the row that holds it.
    const heldAt = query
      .select({ at: sql`min(${begun.at})`.as("held_at") })
      .from(begun)
      .where(and(sql`${begun.actionId} = ${t.actionId}`, sql`${begun.run} = ${t.run}`));
    const c = query
      .select({
        accountId: t.accountId,
        at: sql`${t.at}`.as("happened_at"),
        minute: sql`${t.at} / ${MINUTE_MS}`.as("minute"),
        host: actions.host,
        createdBy: actions.createdBy,
        keyId: actions.keyId,
        kind: sql`case when ${t.type} <> 'attempt' then ${t.type}
          when ${t.status} in ('completed', 'failed') then ${t.status} else 'retry' end`.as("group_kind"),
        ms: sql`case when ${t.type} = 'attempt' then ${numberField(t.detail, "duration_ms")}
          when ${t.type} <> 'created' then ${largerOf(sql`0`, sql`${t.at} - ${heldAt}`)} end`.as("ms"),
        error: sql`case when ${t.type} = 'attempt' then ${textField(t.detail, "error")} end`.as("error"),
      })
      .from(t)
      .crossJoin(actions)
      .where(and(eq(actions.id, t.actionId), gte(t.at, arg.since)))
      .as("c");
    // Durations to two digits, so that a page has a bounded number of them.
    const rounded = sql`case when ${c.ms} < 100 then ${c.ms} when ${c.ms} < 1000 then ${c.ms} / 10 * 10
      when ${c.ms} < 10000 then ${c.ms} / 100 * 100 else ${c.ms} / 1000 * 1000 end`;
    return query
      .select({
        accountId: c.accountId,
        minute: c.minute,
        host: c.host,
        keyId: c.keyId,
        kind: c.kind,
        ms: sql`round(avg(${c.ms}))`.as("mean_ms"),
        count: sql`count(*)`.as("count"),
        byMcp: countWhere(sql`${c.kind} = 'created' and ${c.createdBy} like 'mcp:%'`).as("by_mcp"),
        failed: sql`count(${c.error})`.as("failed"),
        // With one `max`, SQLite takes other columns from the row that has it.
        error: valueOfMax(sql`${c.error}`, c.at).as("last_error"),
        lastFailedAt: sql`max(case when ${c.error} is not null then ${c.at} end)`.as("last_failed_at"),
      })
      .from(c)
      .groupBy(sql`${c.accountId}`, sql`${c.minute}`, sql`${c.host}`, sql`${c.keyId}`, sql`${c.kind}`, rounded);
  }),
);

const KINDS = ["created", "completed", "failed", "retry", "approved", "rejected"] as const;

function groupOf(row: Row): ActivityGroup {
  const columns = new Columns(row);
  return {
    accountId: columns.text(activity.accountId),
    at: new Date(Number(row["minute"]) * MINUTE_MS),
    host: columns.text(actions.host),
    keyId: columns.text(actions.keyId),
    kind: KINDS.find((kind) => kind === row["group_kind"]) ?? "retry",
    ms: typeof row["mean_ms"] === "number" ? row["mean_ms"] : null,
    count: Number(row["count"]),
    byMcp: Number(row["by_mcp"]),
    failedAttempts: Number(row["failed"]),
    lastError: columns.textOrNull(activity.lastError),
    lastFailedAt: columns.timeOrNull(activity.lastFailedAt),
  };
}

const STORED = prepare((arg: Args<"slots">) => {
  const { accountId, slotMinutes, at } = activity;
  const isSlot = sql`${accountId} = ${placeIn(0)} and ${slotMinutes} = ${typed(placeIn(1), slotMinutes)}
    and ${at} = ${typed(placeIn(2), at)}`;
  return sql`select ${list(Object.values(getTableColumns(activity)))} from ${itemsOf(arg.slots)}
    cross join ${activity} where ${isSlot}`;
});

const BEGIN = prepare(() =>
  query.insert(facts).values({ name: POSITION_FACT, value: "0" }).onConflictDoNothing({ target: facts.name }),
);

/** Of nodes that count the same rows one gets on: the others name a position that is over. */
const ADVANCE = prepare((arg: Args<"from" | "to">) =>
  query
    .update(facts)
    .set({ value: sql`${arg.to}` })
    .where(and(eq(facts.name, POSITION_FACT), eq(facts.value, arg.from))),
);

const ALL_COLUMNS: readonly Column[] = Object.values(getTableColumns(activity));

const { accountId: ofAccount, slotMinutes: ofLength, at: ofTime, kind: ofKind, name: ofName } = activity;

const KEY: readonly Column[] = [ofAccount, ofLength, ofTime, ofKind, ofName];

const PUT = prepare((arg: Args<"rows">) => {
  const values = list(ALL_COLUMNS.map((column, at) => typed(placeIn(at), column)));
  const figures = ALL_COLUMNS.filter((column) => !KEY.includes(column));
  const set = list(figures.map(({ name }) => sql`${sql.identifier(name)} = excluded.${sql.identifier(name)}`));
  return sql`insert into ${activity} (${bareNames(...ALL_COLUMNS)}) select ${values} from ${itemsOf(arg.rows)}
    where ${changed} on conflict (${bareNames(...KEY)}) do update set ${set}`;
});

function putStatements({ from, to, rows, steps }: ActivityWrite): readonly Statement[] {
  const advance = ADVANCE.bind({ from: String(from), to: String(to) });
  if (rows.length === 0) return [advance];
  const put = PUT.bind({ rows: JSON.stringify(rows.map(valuesIn)) });
  return steps.length === 0 ? [advance, put] : [advance, put, firstStepRows(steps)];
}

/** The values of a row, in the order of the table's columns. */
function valuesIn(row: ActivityRow): readonly (string | number | null)[] {
  const { accountId, slotMinutes, at, kind, name, latency, waits, lastError, lastFailedAt } = row;
  const { created, completed, failed, attempts, failedAttempts, approved, rejected } = row;
  const slot = [accountId, slotMinutes, at.getTime(), kind, name];
  const counts = [created, completed, failed, attempts, failedAttempts, approved, rejected];
  const rest = [histogramText(latency), histogramText(waits), lastError, lastFailedAt?.getTime() ?? null];
  return [...slot, ...counts, ...rest];
}

const PRUNE = prepare((arg: Args<"slotMinutes" | "before">) => {
  const at = sql<number>`${activity}.${place}`;
  const isOld = and(eq(activity.slotMinutes, arg.slotMinutes), lt(activity.at, arg.before));
  const old = query.select({ at }).from(activity).where(isOld).limit(ACTIVITY_PRUNE_ROWS);
  return query.delete(activity).where(isOneOfPlaces(at, old));
});
