import { and, eq, exists, gt, inArray, sql } from "drizzle-orm";
import { CLOCK_TOLERANCE_MS } from "../../src/core/limits.ts";
import type { SetBack } from "../../src/core/store.ts";
import { pauseLocks } from "../sql/locks.ts";
import { all, qb } from "../sql/read.ts";
import { command, listCommand, type QueueName, type QueueClaim, type ClaimResult } from "./command.ts";
import { updateList, type Values } from "./lists.ts";
import { actions, outbox, timeline } from "../libsql/schema.ts";

/** Makes due rows active under a lease: the earliest of each lane in turn, as many as fit into `bytesMax`, but at least one. */
export const claim = listCommand(
  (tx, claims: readonly QueueClaim[]): Promise<readonly ClaimResult[]> => tx.claim(claims),
  {
    locks: ({ lanes }) => pauseLocks(new Set(lanes.map(({ accountId }) => accountId))),
    size: ({ lanes }) => ({ rows: lanes.length, bytes: 0 }),
    turn: "claim",
  },
);

/**
 * Ends actions that are older than their timeline, such as after only a part of a backup was restored. They may have been
 * decided differently since, and no claim of them can be written.
 */
export const endOutdated = command(async ({ db }, ids: readonly string[], at: Date) => {
  const isLater = and(eq(timeline.actionId, actions.id), gt(timeline.revision, actions.revision));
  const later = qb.select({ seq: timeline.seq }).from(timeline).where(isLater);
  await db
    .update(actions)
    .set({ status: "failed", dueAt: null, finishedAt: at, lastError: OLDER_THAN_TIMELINE, errorSource: "dispatch" })
    .where(and(inArray(actions.id, [...ids]), eq(actions.status, "pending"), exists(later)));
});

const OLDER_THAN_TIMELINE = "The stored action is older than its timeline, so it is not sent.";

const UNREADABLE = "The stored row can't be read, so it was altered. Nothing of it is sent any more.";

/** Ends active rows that can't be read. Returns the ids of those that it ended. */
export const endUnreadable = command(async ({ db }, queue: QueueName, ids: readonly string[], at: Date) => {
  const over = { dueAt: null, leaseUntil: null, lastError: UNREADABLE };
  const ended =
    queue === "action"
      ? await db
          .update(actions)
          .set({ ...over, status: "failed", finishedAt: at, errorSource: "dispatch" })
          .where(and(inArray(actions.id, [...ids]), eq(actions.status, "active")))
          .returning({ id: actions.id })
      : await db
          .update(outbox)
          .set({ ...over, status: "given_up" })
          .where(and(inArray(outbox.id, [...ids]), eq(outbox.status, "active")))
          .returning({ id: outbox.id });
  return ended.map(({ id }) => id);
});

const MOVED = [
  ["dueAt", "scheduledAt"],
  ["id", "status", "scheduledAt"],
] as const;
const MOVE_ACTION = updateList(actions, ...MOVED);
const MOVE_NOTIFICATION = updateList(outbox, ...MOVED);

/**
 * Corrects due times after the wall clock was set back. Pending rows that were scheduled in what is now the future become due
 * earlier by as much, but not before now, and in any case within their original delay from now. Returns how many.
 */
export const reschedule = command(async (tx, queue: QueueName, { now, byMs }: SetBack, limit: number) => {
  const table = queue === "action" ? actions : outbox;
  const { id, status, dueAt, scheduledAt } = table;
  // If it is unknown by how much, small corrections of the clock are tolerated.
  const latest = new Date(now.getTime() + (byMs === 0 ? CLOCK_TOLERANCE_MS : 0));
  const isOfKind = queue === "action" ? undefined : eq(outbox.kind, queue);
  // A literal, since SQLite uses the partial index only if it sees the value.
  const isLate = and(sql`${status} = 'pending'`, isOfKind, gt(scheduledAt, latest));
  const found = await all(tx, qb.select({ id, dueAt, scheduledAt }).from(table).where(isLate).limit(limit));
  const at = now.getTime();
  const rows = found.flatMap((row): readonly Values[] => {
    const [due, scheduled] = [(row.dueAt ?? now).getTime(), row.scheduledAt.getTime()];
    const earlier = Math.max(at, Math.min(due - byMs, at + due - scheduled));
    // NaN if the row was altered, which then stays as it is.
    return Number.isNaN(earlier) ? [] : [[earlier, at, row.id, "pending", scheduled]];
  });
  const moved = await tx.lists.update(queue === "action" ? MOVE_ACTION : MOVE_NOTIFICATION, rows);
  return moved.filter(Boolean).length;
});
