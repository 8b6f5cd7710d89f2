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
import { describe } from "../domain/outcome.ts";
import type { Deliver } from "./callback.ts";
import type { Attempt } from "./flights.ts";
import type { KeptResults } from "./kept-results.ts";

export interface NotifyDeps {
  readonly outbox: Pick<OutboxStore, "settle" | "isSettled" | "force">;
  readonly kept: KeptResults;
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

/** The end of every attempt, whoever saw it: the law decides, the store writes it, log and metrics hear of it. */
export interface NotificationSettlement {
  /** Of an attempt of this process. Never rejects because of the store: resolves when it is written or the process ends. */
  readonly settle: (notification: Notification, notified: Notified) => Promise<void>;
  /** Of an attempt that nobody works on any more. Tells whether it was written; rejects where the store is away. */
  readonly recover: (notification: Notification) => Promise<boolean>;
  /** Of a row that was altered by hand; the same. */
  readonly setAside: (notification: Notification) => Promise<boolean>;
}

/** One attempt of a notification that was claimed for it: deliver, then settle. The end is on disk when it resolves. */
export function createNotify(
  { clock, deliver }: Pick<NotifyDeps, "clock" | "deliver">,
  { settle }: Pick<NotificationSettlement, "settle">,
): Attempt<Notification> {
  return async (notification, { stop, releaseSlot }) => {
    const startedMs = clock.monotonicMs();
    const attempt = notification.isAltered === true ? Promise.resolve(ALTERED) : deliver(notification, stop);
    const delivery = await attempt.catch(async (error: unknown) => {
      releaseSlot();
      if (error instanceof StoreUnavailable) await settle(notification, { delivery: UNREAD, durationMs: null });
      throw error;
    });
    const durationMs = delivery.kind === "not_started" ? null : Math.round(clock.monotonicMs() - startedMs);
    releaseSlot();
    await settle(notification, { delivery, durationMs });
  };
}

export function createNotificationSettlement(deps: NotifyDeps): NotificationSettlement {
  const { outbox, kept, clock, ids, log, metrics, again } = deps;

  const changeOf = (notification: Notification, delivery: Delivery, now: Date): NotificationChange =>
    settleNotification(notification, { delivery, now, chance: ids.chance() });

  const announce = (change: NotificationChange, now: Date, { delivery, durationMs }: Notified): void => {
    const { before, attempts, dueAt } = change;
    if (delivery.kind === "not_started") metrics.unclaimed(before.message.kind);
    else metrics.notified(before.message.kind, nextOf(change), durationMs);
    if (delivery === ALTERED) tellSetAside(deps, before);
    else tell(log, change, now, durationMs);
    if (dueAt !== null) again(before, { id: before.id, revision: attempts, dueAt });
  };

  return {
    async settle(notification, notified) {
      const now = clock.now();
      const change = changeOf(notification, notified.delivery, now);
      const names = { id: notification.id, attempt: notification.attempts };
      const written = await kept.write({
        // The body of a callback is in the store already.
        bytes: 0,
        write: () => outbox.settle(change, now),
        isWritten: () => outbox.isSettled(change, now),
        onKept: (error) =>
          log.warn("notification.result_kept", { ...names, error: error instanceof Error ? error.name : "unknown" }),
      });
      if (written === "yes") return announce(change, now, notified);
      if (written === "no") metrics.fenced();
      log.warn(written === "no" ? "notification.fenced" : "notification.unrecorded", names);
    },

    async recover(notification) {
      const now = clock.now();
      const change = changeOf(notification, INTERRUPTED, now);
      if (!(await outbox.settle(change, now))) return false;
      announce(change, now, { delivery: INTERRUPTED, durationMs: null });
      return true;
    },

    async setAside(notification) {
      const now = clock.now();
      const change = changeOf(notification, ALTERED, now);
      if (!(await outbox.force(change, now))) return false;
      tellSetAside(deps, notification);
      return true;
    },
  };
}

/** Once for each row, with its id: whoever keeps the database has to look at it. */
function tellSetAside({ metrics, log }: Pick<NotifyDeps, "metrics" | "log">, notification: Notification): void {
  const { id, actionId, message } = notification;
  metrics.setAside(message.kind);
  log.error("notification.set_aside", {
    id,
    action_id: actionId,
    message: "Its row was altered where it is stored. It is given up, and nothing of it is sent any more.",
  });
}

function nextOf({ status }: NotificationChange): "delivered" | "retry" | "given_up" | "dropped" {
  return status === "pending" ? "retry" : status;
}

/** One attempt, one line. The error is one of our own sentences. */
function tell(log: Log, change: NotificationChange, now: Date, durationMs: number | null): void {
  const { before, status, dueAt, lastError } = change;
  const { id, accountId, actionId, message, host, attempts } = before;
  log[status === "given_up" ? "warn" : "info"](`${message.kind}.attempted`, {
    id,
    action_id: actionId,
    account_id: accountId,
    event: message.event,
    host: message.kind === "callback" ? host : undefined,
    attempt: attempts,
    attempts_max: NOTIFY_DELAYS_MS.length + 1,
    error: lastError,
    duration_ms: durationMs,
    next: nextOf(change),
    next_in_ms: dueAt === null ? undefined : dueAt.getTime() - now.getTime(),
  });
}

const UNREAD: Delivery = { kind: "not_started", why: "store_away" };

const INTERRUPTED: Delivery = {
  kind: "interrupted",
  error: describe({ kind: "unknown", fault: "interrupted" }, 0),
};

const ALTERED: Delivery = { kind: "withheld", error: describe({ kind: "not_sent", fault: "altered" }, 0) };
