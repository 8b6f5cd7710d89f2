import { and, eq, gt, sql } from "drizzle-orm";
import { CLOCK_TOLERANCE_MS } from "../../src/core/limits.ts";
import type { NotificationKind } from "../../src/core/notification.ts";
import type { SetBack } from "../../src/core/store.ts";
import { command, type Tx } from "./command.ts";
import { type UpdateList, updateList, type Values } from "./lists.ts";

/** After the wall clock was set back: what was scheduled in the future was scheduled before that. */

const ACTIONS = updateList("actions", ["dueAt", "scheduledAt"], ["id", "status", "scheduledAt"]);
const NOTIFICATIONS = updateList("outbox", ["dueAt", "scheduledAt"], ["id", "status", "scheduledAt"]);

/** Makes pending actions due earlier; returns how many. */
export const actions = command(async (tx, setBack: SetBack, limit: number) => {
  const { id, status, dueAt, scheduledAt } = tx.tables.actions;
  // SQLite uses the index of pending actions only where it sees the value.
  const isLate = and(sql`${status} = 'pending'`, gt(scheduledAt, latest(setBack)));
  const found = await tx.db.select({ id, dueAt, scheduledAt }).from(tx.tables.actions).where(isLate).limit(limit);
  return makeEarlier(tx, ACTIONS, found, setBack);
});

/** The same for notifications of a kind. */
export const notifications = command(async (tx, setBack: SetBack, limit: number, kind: NotificationKind) => {
  const { outbox } = tx.tables;
  const { id, status, dueAt, scheduledAt } = outbox;
  const isLate = and(sql`${status} = 'pending'`, eq(outbox.kind, kind), gt(scheduledAt, latest(setBack)));
  const found = await tx.db.select({ id, dueAt, scheduledAt }).from(outbox).where(isLate).limit(limit);
  return makeEarlier(tx, NOTIFICATIONS, found, setBack);
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
