/** What the overview counts of the timeline, by slots of time, and what an account has done for the first time. */
import {
  and,
  asc,
  type Column,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  lt,
  lte,
  max,
  min,
  ne,
  or,
  sql,
} from "drizzle-orm";
import { alias } from "drizzle-orm/sqlite-core";
import type {
  ActivityGroup,
  ActivityRow,
  ActivitySpan,
  ActivityStore,
  FirstStepStore,
} from "../../src/core/activity.ts";
import { histogramText, mergeHistogramTexts, parseHistogram } from "../../src/core/histogram.ts";
import { ACTIVITY_PRUNE_ROWS, FIRST_ACTIONS_READ_MAX } from "../../src/core/limits.ts";
import type { Reader } from "../sql/dialect.ts";
import { all, hasValues, membersIn, prepare, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import { actions, activity, facts, firstSteps, timeline } from "../tables.ts";
import { command, deleteSome, upsertList, type Values, valuesOf } from "./command.ts";
import { readFact } from "./facts.ts";

/** The fact that stores the position of the timeline up to which everything is counted. */
const POSITION_FACT = "activity";

const PUT = upsertList(activity, ["accountId", "slotMinutes", "at", "kind", "name"]);

interface Counted {
  /** The stretch of the timeline that was counted. */
  readonly from: number;
  readonly to: number;
  readonly rows: readonly Values[];
  readonly steps: readonly FirstStep[];
}

type FirstStep = typeof firstSteps.$inferInsert;

/** Writes the counts of a stretch of the timeline. False: another node has counted it. */
export const putActivity = command(async ({ db, lists }, { from, to, rows, steps }: Counted) => {
  await db.insert(facts).values({ name: POSITION_FACT, value: "0" }).onConflictDoNothing({ target: facts.name });
  const isNext = hasValues(facts, { name: POSITION_FACT, value: String(from) });
  const next = db.update(facts).set({ value: String(to) });
  const moved = await next.where(isNext).returning();
  if (moved.length === 0) return false;
  await lists.insert(PUT, rows);
  if (steps.length > 0)
    await db
      .insert(firstSteps)
      .values([...steps])
      .onConflictDoNothing();
  return true;
});

export const pruneActivity = command<ActivityStore["prune"]>((tx, slotMinutes, before) => {
  const { accountId, slotMinutes: minutes, at, kind, name } = activity;
  const isOld = and(eq(minutes, slotMinutes), lt(at, before));
  return deleteSome(tx, [accountId, minutes, at, kind, name], isOld, ACTIVITY_PRUNE_ROWS);
});

export const addStep = command<FirstStepStore["add"]>(async ({ db }, step) => {
  await db.insert(firstSteps).values(step).onConflictDoNothing();
});

export const removeStep = command<FirstStepStore["remove"]>(async ({ db }, { accountId, personId, step }) => {
  await db.delete(firstSteps).where(hasValues(firstSteps, { accountId, personId, step }));
});

const NEWEST_POSITION = prepare({}, (_arg, { isSettled }) =>
  qb
    .select({ seq: max(timeline.seq).as("seq") })
    .from(timeline)
    .where(isSettled(timeline.seq)),
);

export async function readPosition(reader: Reader): Promise<number> {
  return (await NEWEST_POSITION.get(reader, {}))?.seq ?? 0;
}

const STRETCH_END = prepare({ after: "number", rows: "number" }, (arg) => {
  const { seq, at } = timeline;
  const behind = qb.select({ seq, at }).from(timeline).where(gt(seq, arg.after)).orderBy(asc(seq));
  return behind.limit(1).offset(arg.rows);
});

/** The last of `rows` timeline rows after a position; null: there are fewer. Counts rows, since positions have gaps. */
export function findStretchEnd(reader: Reader, after: number, rows: number) {
  return STRETCH_END.get(reader, { after, rows: rows - 1 });
}

/** What the overview counts of a stretch of the timeline. */
const HAPPENED = prepare({ after: "number", until: "number", since: "time" }, (arg) => {
  const { at, type, status, detail } = timeline;
  const isOfStretch = and(gt(timeline.seq, arg.after), lte(timeline.seq, arg.until), gte(timeline.at, arg.since));
  const types = inArray(timeline.type, ["created", "attempt", "not_started", "approved", "rejected"]);
  const begun = alias(timeline, "begun");
  const heldAt = qb
    .select({ at: min(begun.at) })
    .from(begun)
    .where(and(eq(begun.actionId, timeline.actionId), eq(begun.run, timeline.run)));
  const isDecision = sql`${type} in ('approved', 'rejected')`;
  return qb
    .select({
      accountId: timeline.accountId,
      at,
      type,
      status,
      detail,
      host: actions.host,
      keyId: actions.keyId,
      byMcp: sql<number>`case when ${actions.createdBy} like 'mcp:%' then 1 else 0 end`.as("by_mcp"),
      // When the decided run began.
      heldAt: sql<Date | null>`case when ${isDecision} then ${heldAt} end`.mapWith(at).as("held_at"),
    })
    .from(timeline)
    .crossJoin(actions)
    .where(and(isOfStretch, types, eq(actions.id, timeline.actionId)));
});

const STORED = prepare({ slots: "list" }, (arg, { itemsOf, placeIn }) => {
  const isSlot = sql`${activity.accountId} = ${placeIn(0)} and
    ${activity.slotMinutes} = cast(${placeIn(1)} as bigint) and ${activity.at} = cast(${placeIn(2)} as bigint)`;
  return qb.select(getTableColumns(activity)).from(itemsOf(arg.slots)).crossJoin(activity).where(isSlot);
});

const MINUTE_MS = 60_000;

type Group = { -readonly [Member in keyof ActivityGroup]: ActivityGroup[Member] };

/** Groups rows that differ only within a minute and slightly in duration. */
function toGroups(rows: Awaited<ReturnType<typeof HAPPENED.all>>): readonly ActivityGroup[] {
  const groups = new Map<string, { readonly group: Group; totalMs: number }>();
  for (const { accountId, host, keyId, type, status, detail, byMcp, heldAt, at } of rows) {
    // Skip altered rows: their counts could not be written, and then nothing after them would be counted.
    const isText = [accountId, host, keyId].every((one) => typeof one === "string");
    if (!isText || Number.isNaN(at.getTime()) || Number.isNaN(heldAt?.getTime() ?? 0)) continue;
    const made = type === "attempt" ? membersIn(detail) : {};
    // A late result is no further attempt, but may end the action, also when a claim is given back.
    const isAttempt = type === "attempt" && made["late"] === undefined;
    const happened = type === "attempt" || type === "not_started" ? status : type;
    // After other attempts the action is not final.
    const kind = KINDS.find((one) => one === happened) ?? "retry";
    if (kind === "retry" && !isAttempt) continue;
    const { error, duration_ms: tookMs } = isAttempt ? made : {};
    const waitedMs = heldAt === null ? null : Math.max(0, at.getTime() - heldAt.getTime());
    const ms = typeof tookMs === "number" ? Math.trunc(tookMs) : waitedMs;
    const minute = Math.floor(at.getTime() / MINUTE_MS);
    const name = `${accountId} ${host} ${keyId} ${kind} ${minute} ${ms === null ? "" : rounded(ms)}`;
    let one = groups.get(name);
    if (one === undefined) {
      const none = { count: 0, byMcp: 0, attempts: 0, failedAttempts: 0, lastError: null, lastFailedAt: null };
      one = { group: { accountId, host, keyId, kind, at: new Date(minute * MINUTE_MS), ms, ...none }, totalMs: 0 };
      groups.set(name, one);
    }
    const { group } = one;
    group.count += 1;
    one.totalMs += ms ?? 0;
    if (ms !== null) group.ms = Math.round(one.totalMs / group.count);
    if (kind === "created") group.byMcp += byMcp;
    if (isAttempt) group.attempts += 1;
    if (typeof error !== "string") continue;
    group.failedAttempts += 1;
    if (group.lastFailedAt !== null && group.lastFailedAt > at) continue;
    [group.lastError, group.lastFailedAt] = [error, at];
  }
  return Array.from(groups.values(), ({ group }) => group);
}

const UNITS_MS = [1, 10, 100, 1_000];

/** Rounds to two digits, which bounds the number of groups. */
function rounded(ms: number): number {
  const unit = UNITS_MS.findLast((each) => ms >= 10 * each) ?? 1;
  return Math.trunc(ms / unit) * unit;
}

const KINDS = ["created", "completed", "failed", "retry", "approved", "rejected"] as const;

function isOfSpan({ accountId, slotMinutes, since, until }: ActivitySpan) {
  return and(hasValues(activity, { accountId, slotMinutes }), gte(activity.at, since), lt(activity.at, until));
}

type Stored = typeof activity.$inferSelect;

function toActivityRow({ latency, waits, ...row }: Stored): ActivityRow {
  return { ...row, latency: parseHistogram(latency), waits: parseHistogram(waits) };
}

export function createActivityStore({ reader, writer }: StoreAccess): ActivityStore {
  const { itemsOf, placeIn, valueOfMax } = reader.dialect;
  const { kind: ofKind, name: named } = activity;
  /** The condition that a slot is of these hosts and keys. */
  const isOfNames = (span: ActivitySpan, names: readonly (readonly string[])[]) => {
    const isNamed = sql`(${ofKind}, ${named}) in (select ${placeIn(0)}, ${placeIn(1)} from ${itemsOf(names)})`;
    return and(isOfSpan(span), isNamed);
  };
  return {
    ...writer.methods({ prune: pruneActivity }),
    position: async () => Number((await readFact(reader, POSITION_FACT)) ?? 0),

    async groups(after, { since, limit }) {
      const newest = await readPosition(reader);
      if (newest <= after) return { groups: [], position: after, at: null, isLast: true };
      const end = await findStretchEnd(reader, after, limit);
      const until = end === null ? newest : Math.min(newest, end.seq);
      const groups = toGroups(await HAPPENED.all(reader, { after, until, since }));
      return { groups, position: until, at: end?.at ?? null, isLast: until === newest };
    },

    async stored(slots) {
      if (slots.length === 0) return [];
      const items = slots.map(({ accountId, slotMinutes, at }) => [accountId, slotMinutes, at.getTime()]);
      return (await STORED.all(reader, { slots: items })).map(toActivityRow);
    },

    async read(span) {
      const { created, completed, failed, attempts, failedAttempts, lastError, lastFailedAt } = activity;
      const sumColumn = (column: Column) => sql<number>`cast(sum(${column}) as bigint)`.as(column.name);
      const slots = qb
        .select()
        .from(activity)
        .where(and(isOfSpan(span), eq(ofKind, "all")));
      // Leaves out latencies, which are long texts for busy accounts: the overview shows those of twenty names only.
      const names = qb
        .select({
          kind: ofKind,
          name: named,
          created: sumColumn(created),
          completed: sumColumn(completed),
          failed: sumColumn(failed),
          attempts: sumColumn(attempts),
          failedAttempts: sumColumn(failedAttempts),
          lastError: sql<string | null>`${valueOfMax(lastError, lastFailedAt)}`.as("last_error"),
          lastFailedAt: sql<Date | null>`max(${lastFailedAt})`.mapWith(lastFailedAt).as("last_failed_at"),
        })
        .from(activity)
        .where(and(isOfSpan(span), ne(ofKind, "all")))
        .groupBy(ofKind, named);
      const [ofAll, ofNames] = await Promise.all([all(reader, slots), all(reader, names)]);
      return {
        slots: ofAll.map(toActivityRow),
        names: ofNames.flatMap(({ kind, ...sums }) => (kind === "all" ? [] : [{ kind, ...sums }])),
      };
    },

    async latencies(span, names) {
      const asked = names.map(({ kind, name }) => [kind, name]);
      const columns = { kind: ofKind, name: named, latency: activity.latency };
      const stored = qb.select(columns).from(activity).where(isOfNames(span, asked));
      const texts = Map.groupBy(await all(reader, stored), ({ kind, name }) => `${kind} ${name}`);
      return names.flatMap(({ kind, name }) => {
        const found = texts.get(`${kind} ${name}`)?.map(({ latency }) => latency);
        return found === undefined ? [] : [{ kind, name, latency: mergeHistogramTexts(found) }];
      });
    },

    hostSlots(span, hosts) {
      const { at, created, completed, failed, attempts, failedAttempts } = activity;
      const columns = { host: named, at, created, completed, failed, attempts, failedAttempts };
      const asked = hosts.map((host) => ["host", host]);
      return all(reader, qb.select(columns).from(activity).where(isOfNames(span, asked)));
    },

    async put({ from, to, rows, steps }) {
      const stored = rows.map((row) =>
        valuesOf(PUT.columns, { latency: histogramText(row.latency), waits: histogramText(row.waits) }, row),
      );
      return writer.run(putActivity, {
        from,
        to,
        rows: stored,
        steps: steps.map((step) => ({ ...step, personId: "" })),
      });
    },
  };
}

/** A stored step keeps its time. */
export function createFirstStepStore({ reader, writer }: StoreAccess): FirstStepStore {
  return {
    ...writer.methods({ add: addStep, remove: removeStep }),
    /** There is at most one row for each step, and one more for the person. */
    done(accountId, personId) {
      const { step, at } = firstSteps;
      const isOfPerson = or(eq(firstSteps.personId, ""), eq(firstSteps.personId, personId));
      const done = qb.select({ step, at }).from(firstSteps);
      return all(reader, done.where(and(eq(firstSteps.accountId, accountId), isOfPerson)));
    },
    newest(accountId) {
      const { createdBy, approvedBy } = actions;
      const ofAccount = qb.select({ createdBy, approvedBy }).from(actions).where(eq(actions.accountId, accountId));
      return all(reader, ofAccount.orderBy(desc(actions.id)).limit(FIRST_ACTIONS_READ_MAX));
    },
  };
}
