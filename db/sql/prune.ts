import { setImmediate as nextTurn } from "node:timers/promises";
import { and, eq, gt, lt, max, sql } from "drizzle-orm";
import { DEDUPE_WINDOW_MS, PRUNE_BYTES_MAX, PRUNE_ROWS_MAX, PRUNE_SCAN_ROWS_MAX } from "../../src/core/limits.ts";
import { firstActionId } from "../../src/core/ids.ts";
import type { PruneStep, PruneTimes, UpkeepStore } from "../../src/core/store.ts";
import { isWaitingToExpire } from "../tables.ts";
import { isDeletable } from "../commands/deletable.ts";
import * as commands from "../commands/upkeep.ts";
import type { StoreContext } from "./context.ts";
import type { Tables } from "../commands/command.ts";
import { bytesOf } from "./dialect.ts";
import { bytesOfAction } from "./find.ts";
import { type Args, read } from "./read.ts";

/** Each step begins with a turn of the event loop, so that steps in a row don't block others. */
export function createUpkeepStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): UpkeepStore {
  return {
    async held(until, after, limit) {
      await nextTurn();
      return HELD.all(reader, { after, before: firstIdAfter(until), limit });
    },
    async expired(until, after, limit) {
      await nextTurn();
      const rows = await EXPIRED.all(reader, {
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

const isBetween = ({ id }: Tables["actions"], arg: Args<"after" | "before">) =>
  and(gt(id, arg.after), lt(id, arg.before));

/** A run is held when it begins: the first at the create, others at their retry. */
const HELD = read({ after: "text", before: "text", limit: "number" }, ({ db, tables: { timeline, actions } }, arg) => {
  const isOfRun = sql`${timeline.actionId} = ${actions.id} and ${timeline.run} = ${actions.run}`;
  const last = db
    .select({ at: max(timeline.at) })
    .from(timeline)
    .where(and(isOfRun, eq(timeline.type, "held")));
  const heldAt = sql<Date>`coalesce(${last}, ${actions.createdAt})`.mapWith(actions.createdAt).as("held_at");
  return db
    .select({ id: actions.id, accountId: actions.accountId, run: actions.run, heldAt })
    .from(actions)
    .where(and(eq(actions.status, "awaiting_approval"), isBetween(actions, arg)))
    .orderBy(actions.id)
    .limit(arg.limit);
});

const EXPIRED = read(
  { until: "time", afterAt: "time", afterId: "text", limit: "number" },
  ({ db, tables: { actions } }, arg) => {
    const { id, accountId, expiresAt } = actions;
    // By its parts: the comparison of a pair uses the index for its first part only.
    const isAfter = sql`${expiresAt} >= ${arg.afterAt} and (${expiresAt} > ${arg.afterAt} or ${id} > ${arg.afterId})`;
    return db
      .select({ id, accountId, expiresAt })
      .from(actions)
      .where(sql`${isWaitingToExpire(actions)} and ${expiresAt} <= ${arg.until} and ${isAfter}`)
      .orderBy(expiresAt, id)
      .limit(arg.limit);
  },
);

/** How long an Idempotency-Key may name an action that it matched by `dedupe` at the end of that key's window. */
const BOUND_MS_MAX = 2 * DEDUPE_WINDOW_MS;

/** With the rows of the timeline, counted up to the bound; null for actions that must stay. */
const SCAN = read(
  { finishedUntil: "time", boundUntil: "time", after: "text", before: "text" },
  ({ db, tables: { timeline, actions, attempts, outbox } }, arg) => {
    const rows = db.select({ seq: timeline.seq }).from(timeline).where(eq(timeline.actionId, actions.id));
    const count = db.$count(rows.limit(PRUNE_ROWS_MAX + 1).as("counted"));
    const { id, revision, accountId, dedupe, idempotencyKey } = actions;
    const kept = db
      .select({ bytes: sql`sum(${bytesOf(attempts.responseBody)})` })
      .from(attempts)
      .where(eq(attempts.actionId, actions.id));
    const bytes = sql<number>`${bytesOfAction(actions)} + coalesce(${kept}, 0)`.as("bytes");
    const events = sql<number | null>`case when ${isDeletable({ actions, outbox }, arg)} then ${count} end`.as(
      "events",
    );
    const scanned = db.select({ id, revision, accountId, dedupe, idempotencyKey, bytes, events }).from(actions);
    return scanned.where(isBetween(actions, arg)).orderBy(id).limit(PRUNE_SCAN_ROWS_MAX);
  },
);

type Scanned = NonNullable<Awaited<ReturnType<typeof SCAN.get>>>;

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
  const found = await SCAN.all(reader, { ...until, after, before: firstIdAfter(finishedUntil) });
  const { deletable, last } = fitting(found);
  const [first] = deletable;
  if (first !== undefined && (first.events ?? 0) > PRUNE_ROWS_MAX) {
    await writer.run(commands.shorten, { id: first.id, revision: first.revision, ...until });
    return { deleted: 0, next: after };
  }
  const deleted = first === undefined ? 0 : await writer.run(commands.deleteActions, { found: deletable, ...until });
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
