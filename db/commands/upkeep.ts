import { type Column, and, eq, inArray, lt, lte, max, type SQL, sql } from "drizzle-orm";
import { ACTIVITY_PRUNE_ROWS, PRUNE_ROWS_MAX } from "../../src/core/limits.ts";
import { command, PRUNE_ROWS, type Tx } from "./command.ts";
import { isDeletable, type Until } from "./deletable.ts";

/** What the service deletes by the clock. Each deletes a bounded number of rows, so that it never blocks the writer for long. */

/** Whether columns, those of a primary key, have the values of one of the rows. */
function isOneOfRows(columns: readonly Column[], rows: readonly (readonly (string | number)[])[]): SQL {
  const names = sql.join([...columns], sql`, `);
  const values = rows.map((row) => {
    // PostgreSQL takes an argument for text here.
    const members = row.map((value) => (typeof value === "number" ? sql`cast(${value} as bigint)` : sql`${value}`));
    return sql`(${sql.join(members, sql`, `)})`;
  });
  return sql`(${names}) in (values ${sql.join(values, sql`, `)})`;
}

interface KeysArgs {
  /** Keys of then or earlier name no action any more. */
  readonly windowStart: Date;
  /** Days before are over: one more than yesterday, since the clock may be set back. */
  readonly beforeDay: number;
}

/** Forgets dedupe and idempotency keys, and how much API keys did on days that are over; returns whether there may be more. */
export const pruneKeys = command(async ({ db, tables }, { windowStart, beforeDay }: KeysArgs) => {
  const { actionKeys, keyDays } = tables;
  const { accountId, kind, key } = actionKeys;
  const isOver = lte(actionKeys.createdAt, windowStart);
  const keys = await db.select({ accountId, kind, key }).from(actionKeys).where(isOver).limit(PRUNE_ROWS);
  if (keys.length > 0) {
    const isKey = isOneOfRows(
      [accountId, kind, key],
      keys.map((one) => [one.accountId, one.kind, one.key]),
    );
    await db.delete(actionKeys).where(and(isKey, isOver));
  }
  const isPast = lt(keyDays.day, beforeDay);
  const days = db.select({ keyId: keyDays.keyId }).from(keyDays).where(isPast).limit(PRUNE_ROWS);
  await db.delete(keyDays).where(and(isPast, inArray(keyDays.keyId, days)));
  return keys.length === PRUNE_ROWS;
});

interface ActivityArgs {
  readonly slotMinutes: number;
  readonly before: Date;
}

/** Deletes figures of a range that are too old; returns whether there may be more. */
export const pruneActivity = command(async ({ db, tables: { activity } }, { slotMinutes, before }: ActivityArgs) => {
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

/** The newest row of the timeline is never deleted, only emptied: otherwise its number would be given out again. */
async function newestPosition({ db, tables: { timeline } }: Tx): Promise<number> {
  const [newest] = await db.select({ seq: max(timeline.seq) }).from(timeline);
  return newest?.seq ?? 0;
}

interface ShortenArgs extends Until {
  readonly id: string;
  readonly revision: number;
}

/** Deletes the oldest rows of the very long timeline of an action that may be deleted: only the newest are shown anyway. */
export const shorten = command(async (tx, { id, revision, ...until }: ShortenArgs) => {
  const { actions, timeline } = tx.tables;
  const isExpected = and(eq(actions.id, id), eq(actions.revision, revision), isDeletable(tx.tables, until));
  const events = tx.db
    .select({ seq: timeline.seq })
    .from(timeline)
    .innerJoin(actions, eq(actions.id, timeline.actionId));
  const older = events.where(and(isExpected, lt(timeline.seq, await newestPosition(tx)))).orderBy(timeline.revision);
  await tx.db.delete(timeline).where(inArray(timeline.seq, older.limit(PRUNE_ROWS_MAX)));
});

interface DeletableAction {
  readonly id: string;
  readonly revision: number;
  readonly accountId: string;
  readonly dedupe: string | null;
  readonly idempotencyKey: string | null;
}

interface DeleteArgs extends Until {
  readonly found: readonly DeletableAction[];
}

/** Deletes actions that may still be deleted in these revisions, with everything of them; returns how many. */
export const deleteActions = command(async (tx, { found, ...until }: DeleteArgs) => {
  const { db, tables } = tx;
  const { actionKeys, actionMetadata, actions, approvalLinks, attempts, outbox, timeline } = tables;
  const newest = await newestPosition(tx);
  await db.delete(timeline).where(and(eq(timeline.actionId, ""), lt(timeline.seq, newest)));
  const isFound = isOneOfRows(
    [actions.id, actions.revision],
    found.map(({ id, revision }) => [id, revision]),
  );
  // By id too, for PostgreSQL: it may read a whole table for rows of two values.
  const isThis = inArray(
    actions.id,
    found.map(({ id }) => id),
  );
  const deleted = await db
    .delete(actions)
    .where(and(isThis, isFound, isDeletable(tables, until)))
    .returning({ id: actions.id });
  if (deleted.length === 0) return 0;
  const ids = deleted.map(({ id }) => id);
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
