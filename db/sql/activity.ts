import { and, asc, eq, getTableColumns, gt, gte, inArray, lte, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ActivityGroup } from "../../src/core/activity.ts";
import { histogramText } from "../../src/core/histogram.ts";
import type { ActivityStore } from "../../src/core/activity-store.ts";
import type { StoreContext } from "./context.ts";
import { countWhere, itemsOf, largerOf, numberField, placeIn, textField, validJson, valueOfMax } from "./dialect.ts";
import { FIGURES, POSITION_FACT, put } from "../commands/activity.ts";
import { pruneActivity } from "../commands/upkeep.ts";
import { valuesOf } from "./create.ts";
import { readPosition } from "./events.ts";
import { activityRowOf, readHostSlots, readLatencies, readSpan } from "./overview.ts";
import { type Args, list, prepare, prepareEach, query, typed } from "./query.ts";
import { Columns } from "./rows.ts";
import { actions, activity, facts, timeline } from "../libsql/schema.ts";
import type { Row, Sql } from "./sql.ts";

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
