import { and, asc, count, eq, getTableColumns, gt, gte, inArray, isNull, lte, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type { ActivityGroup } from "../../src/core/activity.ts";
import { histogramText } from "../../src/core/histogram.ts";
import type { ActivityStore } from "../../src/core/activity-store.ts";
import type { StoreContext } from "./context.ts";
import { FIGURES, POSITION_FACT, put } from "../commands/activity.ts";
import { pruneActivity } from "../commands/upkeep.ts";
import { valuesOf } from "./create.ts";
import { readPosition } from "./events.ts";
import { activityRowOf, readHostSlots, readLatencies, readSpan } from "./overview.ts";
import { read, type Reader } from "./read.ts";

export function createActivityStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): ActivityStore {
  return {
    position: () => readCounted(reader),

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

const COUNTED = read({}, ({ db, tables: { facts } }) => db.select().from(facts).where(eq(facts.name, POSITION_FACT)));

async function readCounted(reader: Reader): Promise<number> {
  return Number((await COUNTED.get(reader, {}))?.value ?? 0);
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
