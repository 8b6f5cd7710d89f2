import { NOTIFY_DELAYS_MS } from "../domain/limits.ts";
import {
  type Delivery,
  type Notification,
  type NotificationChange,
  settleNotification,
} from "../domain/notification.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Log } from "../ports/log.ts";
import type { Metrics } from "../ports/metrics.ts";
import { type DueRow, type OutboxStore, StoreUnavailable } from "../ports/store.ts";
import type { Deliver } from "./callback.ts";
import type { Attempt } from "./flights.ts";
import { untilWritten } from "./until-written.ts";

export interface NotifyDeps {
  readonly outbox: Pick<OutboxStore, "settle">;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "chance">;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly deliver: Deliver;
  /** Hears of a notification that is to be tried again. */
  readonly again: (notification: Notification, due: DueRow) => void;
}

/** How an attempt ended, and after how long; null where nobody measured. */
export interface Notified {
  readonly delivery: Delivery;
  readonly durationMs: number | null;
}

/** Writes down how an attempt ended. Never rejects because of the store: it tries until the lease is over. */
export type SettleNotification = (notification: Notification, notified: Notified) => Promise<void>;

/** One attempt of a notification that was claimed for it: deliver, then settle. The end is on disk when it resolves. */
export function createNotify({ clock, deliver }: NotifyDeps, settle: SettleNotification): Attempt<Notification> {
  return async (notification, { stop, landed }) => {
    // After a pause as long as the lease somebody else may have taken it over; the rescue ends what is left.
    if (notification.leaseUntil === null || clock.now() >= notification.leaseUntil) return;
    const startedMs = clock.monotonicMs();
    const delivery = await deliver(notification, stop).catch(async (error: unknown) => {
      landed();
      if (error instanceof StoreUnavailable) await settle(notification, { delivery: UNREAD, durationMs: 0 });
      throw error;
    });
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    landed();
    await settle(notification, { delivery, durationMs });
  };
}

/** The end of every attempt, whoever saw it: the law decides, the store writes it, log and metrics hear of it. */
export function createSettleNotification(deps: NotifyDeps): SettleNotification {
  const { outbox, clock, ids, log, metrics, again } = deps;
  return async (notification, { delivery, durationMs }) => {
    const now = clock.now();
    const change = settleNotification(notification, { delivery, now, chance: ids.chance() });
    const written = await untilWritten(clock, notification.leaseUntil, () => outbox.settle(change, now));
    const { id, attempts } = notification;
    if (written !== "yes") {
      metrics.fenced();
      log.warn(written === "no" ? "notification.fenced" : "notification.unrecorded", { id, attempt: attempts });
      return;
    }
    metrics.notified(notification.owed.kind, nextOf(change), durationMs);
    tell(log, change, now, durationMs);
    if (change.dueAt !== null) again(notification, { id, revision: attempts, dueAt: change.dueAt });
  };
}

function nextOf({ status }: NotificationChange): "delivered" | "retry" | "given_up" | "dropped" {
  return status === "pending" ? "retry" : status;
}

/** One attempt, one line. The error is one of our own sentences. */
function tell(log: Log, change: NotificationChange, now: Date, durationMs: number | null): void {
  const { before, status, dueAt, lastError } = change;
  const { id, accountId, actionId, owed, host, attempts } = before;
  log[status === "given_up" ? "warn" : "info"](`${owed.kind}.attempted`, {
    id,
    action_id: actionId,
    account_id: accountId,
    event: owed.event,
    host: owed.kind === "callback" ? host : undefined,
    attempt: attempts,
    attempts_max: NOTIFY_DELAYS_MS.length + 1,
    error: lastError,
    duration_ms: durationMs,
    next: nextOf(change),
    next_in_ms: dueAt === null ? undefined : dueAt.getTime() - now.getTime(),
  });
}

const UNREAD: Delivery = {
  kind: "failed",
  error: "Nothing was sent: the service could not use its database.",
  notBeforeMs: null,
};
