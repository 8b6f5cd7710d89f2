/** Housekeeping: which actions have waited too long, and the deletion of old ones with all their rows. */
import { and, type Column, eq, gt, gte, inArray, lt, lte, max, or, type SQL, sql } from "drizzle-orm";
import { setImmediate as nextTurn } from "node:timers/promises";
import { firstActionId } from "../../src/core/ids.ts";
import { utcDay } from "../../src/core/key-limits.ts";
import { DEDUPE_WINDOW_MS, PRUNE_BYTES_MAX, PRUNE_ROWS_MAX, PRUNE_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import type { UpkeepStore } from "../../src/core/store.ts";
import { all, columnBytes, bytesOfAction, get, hasValues, qb } from "../sql/read.ts";
import type { StoreAccess } from "../sql/writer.ts";
import {
  actionKeys,
  actionMetadata,
  actions,
  approvalLinks,
  attempts,
  isWaitingToExpire,
  keyDays,
  outbox,
  ruleCounts,
  timeline,
} from "../tables.ts";
import { keyWindowStart } from "./actions.ts";
import { command, deleteSome, type Tx } from "./command.ts";
import { FACT, NEWEST_DELETED, setFact } from "./facts.ts";

interface Until {
  readonly finishedUntil: Date;
  /** Actions created after this may still be named by an idempotency key, which matched them by `dedupe`. */
  readonly boundUntil: Date;
}

/**
 * The condition that an action may be deleted: it has no pending notification, and no idempotency key may name it. The keys are
 * judged by time, since an index of them would make every create slower.
 */
function isDeletable({ finishedUntil, boundUntil }: Until): SQL {
  const isUnsent = sql`${outbox.actionId} = ${actions.id} and ${outbox.status} in ('pending', 'active')`;
  return sql`${lte(actions.finishedAt, finishedUntil)}
    and (${actions.dedupe} is null or ${lte(actions.createdAt, boundUntil)})
    and not exists (select 1 from ${outbox} where ${isUnsent})`;
}

/** Deletes expired dedupe and idempotency keys, and old counts of keys and rules. Returns whether there may be more. */
export const pruneKeys = command(async (tx, now: Date, today: number) => {
  const { accountId, kind, key, createdAt } = actionKeys;
  const { ruleId, subject, start, until } = ruleCounts;
  const windowStart = new Date(keyWindowStart(now.getTime()));
  const keys = await deleteSome(tx, [accountId, kind, key], lte(createdAt, windowStart));
  const counts = await deleteSome(tx, [ruleId, subject, start], lt(until, now));
  // Keep yesterday, since the clock may be set back.
  const days = await deleteSome(tx, [keyDays.keyId, keyDays.day], lt(keyDays.day, today - 1));
  return keys || counts || days;
});

/** The newest timeline row is never deleted, only emptied: its position would be given out again. */
async function newestPosition(tx: Tx): Promise<number> {
  return (await get(tx, qb.select({ seq: max(timeline.seq).as("seq") }).from(timeline)))?.seq ?? 0;
}

/** Notes the newest of these events, which are to be deleted. */
async function noteDeleted(tx: Tx, condition: SQL): Promise<void> {
  const deleted = await get(
    tx,
    qb
      .select({ seq: max(timeline.seq).as("seq") })
      .from(timeline)
      .where(condition),
  );
  const [before] = await tx.lists.find(FACT, [{ name: NEWEST_DELETED }]);
  const seq = Math.max(deleted?.seq ?? 0, Number(before?.[0]?.value ?? 0));
  await setFact(tx, NEWEST_DELETED, String(seq));
}

/** Deletes the oldest rows of a timeline that is too long for one commit, if its action may be deleted. */
export const shorten = command(async (tx, { id, revision, ...until }: Pick<Scanned, "id" | "revision"> & Until) => {
  const isExpected = and(hasValues(actions, { id, revision }), isDeletable(until));
  const events = qb.select({ seq: timeline.seq }).from(timeline).innerJoin(actions, eq(actions.id, timeline.actionId));
  const older = events.where(and(isExpected, lt(timeline.seq, await newestPosition(tx)))).orderBy(timeline.revision);
  const isOlder = inArray(timeline.seq, older.limit(PRUNE_ROWS_MAX));
  await noteDeleted(tx, isOlder);
  await tx.db.delete(timeline).where(isOlder);
});

/** Deletes actions with all their rows, if they may still be deleted and have the same revision. Returns how many. */
export const deleteActions = command(async (tx, found: readonly Scanned[], until: Until) => {
  const { db } = tx;
  const newest = await newestPosition(tx);
  await db.delete(timeline).where(and(eq(timeline.actionId, ""), lt(timeline.seq, newest)));
  const isFound = isOneOfRows(
    [actions.id, actions.revision],
    found.map(({ id, revision }) => [id, revision]),
  );
  // Also by id, since PostgreSQL may read the whole table for a list of pairs.
  const isThis = inArray(
    actions.id,
    found.map(({ id }) => id),
  );
  const deleted = await db
    .delete(actions)
    .where(and(isThis, isFound, isDeletable(until)))
    .returning({ id: actions.id });
  if (deleted.length === 0) return 0;
  const ids = deleted.map(({ id }) => id);
  await noteDeleted(tx, inArray(timeline.actionId, ids));
  await db.delete(timeline).where(and(inArray(timeline.actionId, ids), lt(timeline.seq, newest)));
  const emptied = { actionId: "", accountId: "", detail: "{}" };
  await db
    .update(timeline)
    .set(emptied)
    .where(and(eq(timeline.seq, newest), inArray(timeline.actionId, ids)));
  for (const table of [outbox, actionMetadata, attempts, approvalLinks]) {
    await db.delete(table).where(inArray(table.actionId, ids));
  }
  const keys = found.flatMap(({ accountId, dedupe, idempotencyKey }) => [
    ...(dedupe === null ? [] : [[accountId, "dedupe", dedupe]]),
    ...(idempotencyKey === null ? [] : [[accountId, "idempotency", idempotencyKey]]),
  ]);
  if (keys.length > 0) {
    const isKey = isOneOfRows([actionKeys.accountId, actionKeys.kind, actionKeys.key], keys);
    await db.delete(actionKeys).where(and(isKey, inArray(actionKeys.actionId, ids)));
  }
  return deleted.length;
});

/** The condition that these columns, a key, have one of these lists of values. */
function isOneOfRows(columns: readonly Column[], rows: readonly (readonly (string | number)[])[]): SQL {
  const names = sql.join([...columns], sql`, `);
  const values = rows.map((row) => {
    // PostgreSQL would take a number for a text here.
    const members = row.map((value) => (typeof value === "number" ? sql`cast(${value} as bigint)` : sql`${value}`));
    return sql`(${sql.join(members, sql`, `)})`;
  });
  return sql`(${names}) in (values ${sql.join(values, sql`, `)})`;
}

/** Ids may be ahead of their time: thousands in one millisecond take the ids of later ones. */
const ID_AHEAD_MS = 10_000;

/** The first id after `until`: actions with later ids were created later, so they can't have finished by then. */
function firstIdAfter(until: Date): string {
  return firstActionId(new Date(until.getTime() + ID_AHEAD_MS));
}

/** The longest time for which an idempotency key may name an action: it may match at the end of the dedupe window. */
const BOUND_MS_MAX = 2 * DEDUPE_WINDOW_MS;

/** Selects actions with their number of timeline rows, up to a bound; null for actions that must stay. */
function scanned(until: Until, after: string) {
  const rows = qb.select({ seq: timeline.seq }).from(timeline).where(eq(timeline.actionId, actions.id));
  const count = qb.$count(rows.limit(PRUNE_ROWS_MAX + 1).as("counted"));
  const { id, revision, accountId, dedupe, idempotencyKey } = actions;
  const kept = qb
    .select({ bytes: sql`sum(${columnBytes(attempts.responseBody)})` })
    .from(attempts)
    .where(eq(attempts.actionId, id));
  const bytes = sql<number>`${bytesOfAction()} + coalesce(${kept}, 0)`.as("bytes");
  const events = sql<number | null>`case when ${isDeletable(until)} then ${count} end`.as("events");
  return qb
    .select({ id, revision, accountId, dedupe, idempotencyKey, bytes, events })
    .from(actions)
    .where(and(gt(id, after), lt(id, firstIdAfter(until.finishedUntil))))
    .orderBy(id)
    .limit(PRUNE_SCAN_ROWS_MAX);
}

type Scanned = ReturnType<typeof scanned>["_"]["result"][number];

/** The actions that fit into one commit, at least one, and the last one looked at. */
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

/** Each step begins with a turn of the event loop, so that many steps don't block other work. */
export function createUpkeepStore({ reader, writer }: StoreAccess): UpkeepStore {
  const { id, accountId, expiresAt } = actions;
  return {
    pruneKeys: (now) => writer.run(pruneKeys, now, utcDay(now)),
    /** A run is held from its beginning, which is the create or a retry. */
    async held(until, after, limit) {
      await nextTurn();
      const isOfRun = sql`${timeline.actionId} = ${id} and ${timeline.run} = ${actions.run}`;
      const last = qb
        .select({ at: max(timeline.at) })
        .from(timeline)
        .where(and(isOfRun, eq(timeline.type, "held")));
      const heldAt = sql<Date>`coalesce(${last}, ${actions.createdAt})`.mapWith(actions.createdAt).as("held_at");
      const held = qb
        .select({ id, accountId, run: actions.run, heldAt })
        .from(actions)
        .where(and(sql`${actions.status} = 'awaiting_approval'`, gt(id, after), lt(id, firstIdAfter(until))));
      return all(reader, held.orderBy(id).limit(limit));
    },
    async expired(until, after, limit) {
      await nextTurn();
      const from = after?.expiresAt ?? new Date(0);
      // Two conditions, since a comparison of pairs would use only the first column of the index.
      const isBehind = and(gte(expiresAt, from), or(gt(expiresAt, from), gt(id, after?.id ?? "")));
      const expired = qb
        .select({ id, accountId, expiresAt })
        .from(actions)
        .where(and(isWaitingToExpire(actions), lte(expiresAt, until), isBehind));
      const rows = await all(reader, expired.orderBy(expiresAt, id).limit(limit));
      return rows.flatMap(({ expiresAt: at, ...row }) => (at === null ? [] : [{ ...row, expiresAt: at }]));
    },
    /** Reads actions by id and deletes some in one bounded commit. An index by end would make every action slower. */
    async prune({ now, finishedUntil }, after) {
      await nextTurn();
      const until = { finishedUntil, boundUntil: new Date(now.getTime() - BOUND_MS_MAX) };
      const found = await all(reader, scanned(until, after));
      const { deletable, last } = fitting(found);
      const [first] = deletable;
      if (first !== undefined && (first.events ?? 0) > PRUNE_ROWS_MAX) {
        await writer.run(shorten, { id: first.id, revision: first.revision, ...until });
        return { deleted: 0, next: after };
      }
      const deleted = first === undefined ? 0 : await writer.run(deleteActions, deletable, until);
      const isLast = found.length < PRUNE_SCAN_ROWS_MAX && last === found.at(-1)?.id;
      return { deleted, next: found.length === 0 || isLast ? null : (last ?? after) };
    },
  };
}
