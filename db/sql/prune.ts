import { setImmediate as nextTurn } from "node:timers/promises";
import { and, eq, gt, inArray, lt, max, notExists, sql, type SQL } from "drizzle-orm";
import { DEDUPE_WINDOW_MS, PRUNE_BYTES_MAX, PRUNE_ROWS_MAX, PRUNE_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import { firstActionId } from "../../src/core/ids.ts";
import type { PruneStep, PruneTimes, UpkeepStore } from "../../src/core/store.ts";
import { isWaitingToExpire } from "../tables.ts";
import type { StoreContext } from "./context.ts";
import { bytesOf, countOf } from "./dialect.ts";
import { BYTES_SUM } from "./find.ts";
import { type Args, prepare, query } from "./query.ts";
import { actionKeys, actionMetadata, actions, approvalLinks, attempts, outbox, timeline } from "../libsql/schema.ts";
import type { Statement } from "./sql.ts";
import type { Writer } from "./writer.ts";

/** Each step begins with a turn of the event loop, so that steps in a row don't block others. */
export function createUpkeepStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): UpkeepStore {
  return {
    async held(until, after, limit) {
      await nextTurn();
      return HELD.read(reader, { after, before: firstIdAfter(until), limit });
    },
    async expired(until, after, limit) {
      await nextTurn();
      const rows = await EXPIRED.read(reader, {
        until,
        afterAt: after?.expiresAt ?? 0,
        afterId: after?.id ?? "",
        limit,
      });
      return rows.flatMap(({ expiresAt, ...row }) => (expiresAt === null ? [] : [{ ...row, expiresAt }]));
    },
    async prune(times, after) {
      await nextTurn();
      return pruneStep({ sql: reader, writer }, times, after);
    },
  };
}

/** Ids may be ahead of their time: thousands in one millisecond continue in later ones. */
const ID_AHEAD_MS = 10_000;

/** Ids begin with their time: actions created later can't have finished before and are not scanned. */
function firstIdAfter(until: Date): string {
  return firstActionId(new Date(until.getTime() + ID_AHEAD_MS));
}

const isBetween = (arg: Args<"after" | "before">) => and(gt(actions.id, arg.after), lt(actions.id, arg.before));

/** A run is held when it begins: the first at the create, others at their retry. */
const HELD = prepare((arg: Args<"after" | "before" | "limit">) => {
  const isOfRun = sql`${timeline.actionId} = ${actions.id} and ${timeline.run} = ${actions.run}`;
  const last = query
    .select({ at: max(timeline.at) })
    .from(timeline)
    .where(and(isOfRun, eq(timeline.type, "held")));
  const heldAt = sql<Date>`coalesce(${last}, ${actions.createdAt})`.mapWith(actions.createdAt).as("held_at");
  return query
    .select({ id: actions.id, accountId: actions.accountId, run: actions.run, heldAt })
    .from(actions)
    .where(and(eq(actions.status, "awaiting_approval"), isBetween(arg)))
    .orderBy(actions.id)
    .limit(arg.limit);
});

const EXPIRED = prepare((arg: Args<"until" | "afterAt" | "afterId" | "limit">) => {
  const { id, accountId, expiresAt } = actions;
  // By its parts: the comparison of a pair uses the index for its first part only.
  const isAfter = sql`${expiresAt} >= ${arg.afterAt} and (${expiresAt} > ${arg.afterAt} or ${id} > ${arg.afterId})`;
  return query
    .select({ id, accountId, expiresAt })
    .from(actions)
    .where(sql`${isWaitingToExpire(actions)} and ${expiresAt} <= ${arg.until} and ${isAfter}`)
    .orderBy(expiresAt, id)
    .limit(arg.limit);
});

/** How long an Idempotency-Key may name an action that it matched by `dedupe` at the end of that key's window. */
const BOUND_MS_MAX = 2 * DEDUPE_WINDOW_MS;

/**
 * Holds for actions that may be deleted. A pending notification keeps an action, and so does an Idempotency-Key that may
 * name it; which keys do is not looked up, since every create would pay for that index.
 */
function isDeletable({ finishedUntil, boundUntil }: Args<"finishedUntil" | "boundUntil">): SQL {
  const isUnsent = sql`${outbox.actionId} = ${actions.id} and ${outbox.status} in ('pending', 'active')`;
  const isNotified = notExists(query.select({ id: outbox.id }).from(outbox).where(isUnsent));
  const isUnbound = sql`(${actions.dedupe} is null or ${actions.createdAt} <= ${boundUntil})`;
  return sql`${actions.finishedAt} <= ${finishedUntil} and ${isUnbound} and ${isNotified}`;
}

/** With the rows of the timeline, counted up to the bound; null for actions that must stay. */
const SCAN = prepare((arg: Args<"finishedUntil" | "boundUntil" | "after" | "before">) => {
  const rows = query
    .select({ seq: timeline.seq })
    .from(timeline)
    .where(sql`${timeline.actionId} = ${actions.id}`);
  const count = countOf(rows.limit(PRUNE_ROWS_MAX + 1));
  const { id, revision, accountId, dedupe, idempotencyKey } = actions;
  const kept = query
    .select({ bytes: sql`sum(${bytesOf(attempts.responseBody)})` })
    .from(attempts)
    .where(eq(attempts.actionId, actions.id));
  const bytes = sql<number>`${BYTES_SUM} + coalesce(${kept}, 0)`.as("bytes");
  const events = sql<number | null>`case when ${isDeletable(arg)} then ${count} end`.as("events");
  const scanned = query.select({ id, revision, accountId, dedupe, idempotencyKey, bytes, events }).from(actions);
  return scanned.where(isBetween(arg)).orderBy(id).limit(PRUNE_SCAN_ROWS_MAX);
});

type Scanned = Awaited<ReturnType<typeof SCAN.read>>[number];

interface Until {
  readonly finishedUntil: Date;
  readonly boundUntil: Date;
}

/**
 * Scans some actions by id and deletes those that may go, in one commit that is bounded in rows and bytes. It needs no
 * index by end, which every action would pay for.
 */
async function pruneStep(
  { sql: reader, writer }: Pick<StoreContext, "sql" | "writer">,
  { now, finishedUntil }: PruneTimes,
  after: string,
): Promise<PruneStep> {
  const until = { finishedUntil, boundUntil: new Date(now.getTime() - BOUND_MS_MAX) };
  const found = await SCAN.read(reader, { ...until, after, before: firstIdAfter(finishedUntil) });
  const { deletable, last } = fitting(found);
  const [first] = deletable;
  if (first !== undefined && (first.events ?? 0) > PRUNE_ROWS_MAX) {
    await writer.write([SHORTEN.bind({ ...first, ...until })]);
    return { deleted: 0, next: after };
  }
  const deleted = first === undefined ? 0 : await deleteAll(writer, deletable, until);
  const isLast = found.length < PRUNE_SCAN_ROWS_MAX && last === found.at(-1)?.id;
  return { deleted, next: found.length === 0 || isLast ? null : (last ?? after) };
}

/** The rows that one commit may delete, at least one, and the last row scanned. */
function fitting(found: readonly Scanned[]) {
  const deletable: Scanned[] = [];
  let last: string | null = null;
  let rows = 0;
  let bytes = 0;
  for (const row of found) {
    if (row.events !== null) {
      rows += row.events;
      bytes += row.bytes;
      if (deletable.length > 0 && (rows > PRUNE_ROWS_MAX || bytes > PRUNE_BYTES_MAX)) break;
      deletable.push(row);
    }
    last = row.id;
  }
  return { deletable, last };
}

/** The newest row stays, emptied, until there is a newer one: otherwise its number would be given out again. */
const NEWEST = sql`(select max(seq) from ${timeline})`;

const isExpected = (arg: Args<"id" | "revision" | "finishedUntil" | "boundUntil">) =>
  and(eq(actions.id, arg.id), eq(actions.revision, arg.revision), isDeletable(arg));

/** Deletes the oldest rows of a very long timeline first, in pieces: only the newest are shown anyway. */
const SHORTEN = prepare((arg: Args<"id" | "revision" | "finishedUntil" | "boundUntil">) => {
  const events = query
    .select({ seq: timeline.seq })
    .from(timeline)
    .innerJoin(actions, eq(actions.id, timeline.actionId));
  const oldest = events.where(and(isExpected(arg), sql`${timeline.seq} < ${NEWEST}`)).orderBy(timeline.revision);
  return query.delete(timeline).where(inArray(timeline.seq, oldest.limit(PRUNE_ROWS_MAX)));
});

const DELETE = prepare((arg: Args<"id" | "revision" | "finishedUntil" | "boundUntil">) =>
  query.delete(actions).where(isExpected(arg)),
);

const isGone = ({ id }: Args<"id">) =>
  notExists(query.select({ id: actions.id }).from(actions).where(eq(actions.id, id)));

/** The other rows of an action, deleted only if it is gone. */
const DELETE_ROWS = [
  prepare((arg: Args<"id">) => {
    const isOfAction = and(eq(timeline.actionId, arg.id), isGone(arg));
    return query.delete(timeline).where(and(isOfAction, sql`${timeline.seq} < ${NEWEST}`));
  }),
  prepare((arg: Args<"id">) => query.delete(outbox).where(and(eq(outbox.actionId, arg.id), isGone(arg)))),
  prepare((arg: Args<"id">) =>
    query.delete(actionMetadata).where(and(eq(actionMetadata.actionId, arg.id), isGone(arg))),
  ),
  prepare((arg: Args<"id">) => query.delete(attempts).where(and(eq(attempts.actionId, arg.id), isGone(arg)))),
  prepare((arg: Args<"id">) => query.delete(approvalLinks).where(and(eq(approvalLinks.actionId, arg.id), isGone(arg)))),
];

const DELETE_KEY = prepare((arg: Args<"accountId" | "kind" | "key" | "id">) => {
  const isKey = and(
    eq(actionKeys.accountId, arg.accountId),
    eq(actionKeys.kind, arg.kind),
    eq(actionKeys.key, arg.key),
  );
  return query.delete(actionKeys).where(and(isKey, eq(actionKeys.actionId, arg.id), isGone(arg)));
});

const DELETE_EMPTIED = prepare(() =>
  query.delete(timeline).where(and(eq(timeline.actionId, ""), sql`${timeline.seq} < ${NEWEST}`)),
);

const EMPTY_NEWEST = prepare(() => {
  const action = query
    .select({ id: actions.id })
    .from(actions)
    .where(sql`${actions.id} = ${timeline.actionId}`);
  const emptied = { actionId: "", accountId: "", detail: "{}" };
  return query
    .update(timeline)
    .set(emptied)
    .where(and(sql`${timeline.seq} = ${NEWEST}`, notExists(action)));
});

async function deleteAll(writer: Writer, deletable: readonly Scanned[], until: Until): Promise<number> {
  const deletions = deletable.map((row) => deleteOne(row, until));
  const done = await writer.write([DELETE_EMPTIED.bind({}), ...deletions.flat(), EMPTY_NEWEST.bind({})]);
  let at = 1;
  let deleted = 0;
  for (const { length } of deletions) {
    deleted += done[at]?.changes ?? 0;
    at += length;
  }
  return deleted;
}

/** Deletes the action by its revision, and its other rows only if it is gone then. */
function deleteOne(row: Scanned, until: Until): readonly Statement[] {
  const { id, accountId, dedupe, idempotencyKey } = row;
  const keys = [
    { kind: "dedupe", key: dedupe },
    { kind: "idempotency", key: idempotencyKey },
  ];
  return [
    DELETE.bind({ ...row, ...until }),
    ...DELETE_ROWS.map((statement) => statement.bind({ id })),
    ...keys.filter(({ key }) => key !== null).map((key) => DELETE_KEY.bind({ ...key, accountId, id })),
  ];
}
