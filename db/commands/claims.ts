import { and, eq, exists, gt, inArray, sql } from "drizzle-orm";
import { CLOCK_TOLERANCE_MS } from "../../src/core/limits.ts";
import type { NotificationKind } from "../../src/core/notification.ts";
import type { Claim, LaneName, SetBack } from "../../src/core/store.ts";
import { pauseLocks } from "../sql/locks.ts";
import { command, listCommand, type Tx } from "./command.ts";
import { type UpdateList, updateList, type Values } from "./lists.ts";

/** What waits in lanes: actions, and each kind of notification. */
export type QueueName = "action" | NotificationKind;

/** Times in milliseconds. The rest is as in `Claim` of `src/core/store.ts`. */
export interface ClaimOfQueue {
  readonly queue: QueueName;
  readonly lanes: Claim["lanes"];
  readonly bytesMax: number;
  /** Bytes of the largest row that may be claimed: each lane ends before its first larger one. */
  readonly rowBytesMax: number;
  readonly now: number;
  readonly leaseUntil: number;
  /** The node that claims. */
  readonly by: string;
}

export interface Claimed {
  /** In the order of their turns. `fence` is the revision of an action and the attempts of a notification, after the claim. */
  readonly rows: readonly { readonly id: string; readonly fence: number }[];
  /** The earliest row that stays pending, of each lane that has one and is not paused. */
  readonly next: readonly (LaneName & { readonly dueAt: number; readonly bytes: number })[];
}

/**
 * Makes due rows active with a lease: of each lane the earliest, one of each lane in turn, as many as fit into the bytes; the
 * first always fits. Each database has its own way.
 */
export const claim = listCommand(
  (tx, claims: readonly ClaimOfQueue[]): Promise<readonly Claimed[]> => tx.claim(claims),
  {
    locks: ({ lanes }) => pauseLocks(new Set(lanes.map(({ accountId }) => accountId))),
    size: ({ lanes }) => ({ rows: lanes.length, bytes: 0 }),
    turn: "claim",
  },
);

/**
 * Ends those of the actions whose timeline knows a later revision than they have, as after a part of a backup was restored: what
 * they are was once decided otherwise, and no claim of them can be written.
 */
export const endSetBack = command(async ({ db, tables: { actions, timeline } }, ids: readonly string[], at: Date) => {
  const isLater = and(eq(timeline.actionId, actions.id), gt(timeline.revision, actions.revision));
  const later = db.select({ seq: timeline.seq }).from(timeline).where(isLater);
  await db
    .update(actions)
    .set({ status: "failed", dueAt: null, finishedAt: at, lastError: SET_BACK, errorSource: "dispatch" })
    .where(and(inArray(actions.id, [...ids]), eq(actions.status, "pending"), exists(later)));
});

const SET_BACK = "The stored action is older than its timeline, so it is not sent.";

const UNREADABLE = "The stored row can't be read, so it was altered. Nothing of it is sent any more.";

/** Ends active rows that can't be read; returns which of them. */
export const endUnreadable = command(async ({ db, tables }, queue: QueueName, ids: readonly string[], at: Date) => {
  const { actions, outbox } = tables;
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

/** After the wall clock was set back: what was scheduled in the future was scheduled before that. */

const MOVE_ACTION = updateList("actions", ["dueAt", "scheduledAt"], ["id", "status", "scheduledAt"]);
const MOVE_NOTIFICATION = updateList("outbox", ["dueAt", "scheduledAt"], ["id", "status", "scheduledAt"]);

/** Makes pending actions due earlier; returns how many. */
export const rescheduleActions = command(async (tx, setBack: SetBack, limit: number) => {
  const { id, status, dueAt, scheduledAt } = tx.tables.actions;
  // SQLite uses the index of pending actions only where it sees the value.
  const isLate = and(sql`${status} = 'pending'`, gt(scheduledAt, latest(setBack)));
  const found = await tx.db.select({ id, dueAt, scheduledAt }).from(tx.tables.actions).where(isLate).limit(limit);
  return makeEarlier(tx, MOVE_ACTION, found, setBack);
});

/** The same for notifications of a kind. */
export const rescheduleNotifications = command(async (tx, setBack: SetBack, limit: number, kind: NotificationKind) => {
  const { outbox } = tx.tables;
  const { id, status, dueAt, scheduledAt } = outbox;
  const isLate = and(sql`${status} = 'pending'`, eq(outbox.kind, kind), gt(scheduledAt, latest(setBack)));
  const found = await tx.db.select({ id, dueAt, scheduledAt }).from(outbox).where(isLate).limit(limit);
  return makeEarlier(tx, MOVE_NOTIFICATION, found, setBack);
});

/** Where it is not known by how much, a clock that was corrected a little is tolerated. */
function latest({ now, byMs }: SetBack): Date {
  return new Date(now.getTime() + (byMs === 0 ? CLOCK_TOLERANCE_MS : 0));
}

interface Scheduled {
  readonly id: string;
  readonly dueAt: Date | null;
  readonly scheduledAt: Date;
}

/** By as much as the clock was set back, but never before now, and never later than after the original delay. */
async function makeEarlier(tx: Tx, list: UpdateList, found: readonly Scheduled[], { now, byMs }: SetBack) {
  const at = now.getTime();
  const rows = found.flatMap(({ id, dueAt, scheduledAt }): readonly Values[] => {
    const [due, scheduled] = [(dueAt ?? now).getTime(), scheduledAt.getTime()];
    const earlier = Math.max(at, Math.min(due - byMs, at + due - scheduled));
    // Of a row that was altered it may be no number: that one stays as it is.
    return Number.isNaN(earlier) ? [] : [[earlier, at, id, "pending", scheduled]];
  });
  return (await tx.lists.update(list, rows)).filter(Boolean).length;
}
