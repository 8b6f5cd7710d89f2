import { describeOutcome } from "../core/outcome.ts";
import { NOTIFY_DELAYS_MS } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { type OutboxStore, StoreUnavailable } from "../core/store.ts";
import { askOf, type KnownChannels } from "../core/channel.ts";
import type { Deliver } from "./deliver.ts";
import {
  type Delivery,
  type Notification,
  type NotificationChange,
  type NotificationKind,
  notificationHosts,
  settleNotification,
} from "../core/notification.ts";
import { errorName } from "./recovery.ts";
import { type Due, Scheduler, type SchedulerDeps } from "./scheduler.ts";
import type { UnwrittenResults } from "./settlement.ts";

interface SettlementDeps {
  readonly outbox: Pick<OutboxStore, "settle" | "isSettled">;
  readonly kept: UnwrittenResults;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "random">;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly channels: Pick<KnownChannels, "of" | "nameOf">;
}

/** Shared: most changes leave nothing due. */
const NOTHING_DUE: readonly Due[] = [];

interface NotificationDeps
  extends
    SettlementDeps,
    Omit<SchedulerDeps<Notification>, "name" | "dueOf" | "attempt" | "ends" | keyof SettlementDeps> {
  readonly kind: NotificationKind;
  readonly deliver: Deliver;
}

const NAMES = { callback: "callbacks", mail: "mails", message: "messages" } as const satisfies Record<
  NotificationKind,
  string
>;

/**
 * Delivers one kind of notification with slots and a schedule of its own: a slow receiver never delays an action, and
 * nothing here changes one.
 */
export function createNotificationScheduler(deps: NotificationDeps): Scheduler<Notification> {
  const { kind, deliver, channels, clock, log } = deps;
  const settlement = new NotificationSettlement(deps, (notification, dueAt) =>
    scheduler.add({ lane: notification, dueAt, isLarge: false }),
  );
  const scheduler = new Scheduler<Notification>({
    ...deps,
    name: NAMES[kind],
    dueOf: (action) => {
      const { accountId, keyId } = action;
      const hosts = notificationHosts(action, kind, channels.of(accountId));
      if (hosts.length === 0) return NOTHING_DUE;
      const dueAt = clock.now();
      return hosts.map((host) => ({ lane: { accountId, host, keyId }, dueAt, isLarge: false }));
    },
    attempt: async (notification, { stop, releaseSlot }) => {
      const startedMs = clock.monotonicMs();
      const attempt = notification.isAltered === true ? Promise.resolve(ALTERED) : deliver(notification, stop);
      const delivery = await attempt.catch(async (error: unknown) => {
        releaseSlot();
        if (error instanceof StoreUnavailable) await settlement.settle(notification, UNREAD, null);
        throw error;
      });
      const durationMs = delivery.kind === "not_started" ? null : Math.round(clock.monotonicMs() - startedMs);
      releaseSlot();
      await settlement.settle(notification, delivery, durationMs);
    },
    ends: {
      recover: (notification) => settlement.recover(notification),
      unclaim: (notification, why) => settlement.settle(notification, { kind: "not_started", why }, null),
      onRescued: (count) => log.warn(`${NAMES[kind]}.rescued`, { count }),
    },
  });
  return scheduler;
}

/** Records the end of attempts: in the store, the log and the metrics. */
class NotificationSettlement {
  readonly #deps: SettlementDeps;
  readonly #onRetry: (notification: Notification, dueAt: Date) => void;

  /** `onRetry` is called for a notification that will be attempted again. */
  constructor(deps: SettlementDeps, onRetry: (notification: Notification, dueAt: Date) => void) {
    this.#deps = deps;
    this.#onRetry = onRetry;
  }

  /**
   * For an attempt of this process. Never rejects because of the store: it resolves when the result is written or the
   * process ends.
   */
  async settle(notification: Notification, delivery: Delivery, durationMs: number | null): Promise<void> {
    const { outbox, kept, clock, log, metrics } = this.#deps;
    const now = clock.now();
    const change = this.#changeOf(notification, delivery, now);
    const names = { id: notification.id, attempt: notification.attempts };
    const written = await kept.write({
      // The body of a callback is in the store already.
      bytes: 0,
      write: async (isRepeat) =>
        (await outbox.settle(change, now)) || (isRepeat && (await outbox.isSettled(change, now))),
      onKept: (error) => log.warn("notification.result_kept", { ...names, error: errorName(error) }),
    });
    if (written === "yes") return this.#report(change, delivery, now, durationMs);
    if (written === "no") metrics.fenced();
    log.warn(written === "no" ? "notification.fenced" : "notification.unrecorded", names);
  }

  /** For an attempt of a dead process. False: another change came first. Rejects when the store is away. */
  async recover(notification: Notification): Promise<boolean> {
    const now = this.#deps.clock.now();
    const delivery = notification.isAltered === true ? ALTERED : INTERRUPTED;
    const change = this.#changeOf(notification, delivery, now);
    if (!(await this.#deps.outbox.settle(change, now))) return false;
    this.#report(change, delivery, now, null);
    return true;
  }

  #changeOf(notification: Notification, delivery: Delivery, now: Date): NotificationChange {
    const { ids, channels } = this.#deps;
    const ask = askOf(notification.message.event);
    const channel = ask === null ? null : channels.nameOf(notification.accountId, ask.channelId);
    return settleNotification(notification, { delivery, now, chance: ids.random(), channel });
  }

  #report(change: NotificationChange, delivery: Delivery, now: Date, durationMs: number | null): void {
    const { metrics } = this.#deps;
    const { before, dueAt } = change;
    const { kind } = before.message;
    if (delivery.kind === "not_started") metrics.unclaimed(kind);
    else metrics.notified(kind, nextOf(change), durationMs);
    if (delivery === ALTERED) this.#reportSetAside(before);
    else this.#logAttempt(change, now, durationMs);
    if (dueAt !== null) this.#onRetry(before, dueAt);
  }

  /** Logged once per row with its id: the operator has to look at the database. */
  #reportSetAside({ id, actionId, message }: Notification): void {
    const { metrics, log } = this.#deps;
    metrics.setAside(message.kind);
    log.error("notification.set_aside", {
      id,
      action_id: actionId,
      message: "Its row was altered where it is stored. It is given up, and nothing of it is sent any more.",
    });
  }

  /** One line per attempt. The error is one of our own sentences. */
  #logAttempt(change: NotificationChange, now: Date, durationMs: number | null): void {
    const { before, status, dueAt, lastError } = change;
    const { id, accountId, actionId, message, host, attempts } = before;
    this.#deps.log[status === "given_up" ? "warn" : "info"](`${message.kind}.attempted`, {
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
}

function nextOf({ status }: NotificationChange): "delivered" | "retry" | "given_up" | "dropped" {
  return status === "pending" ? "retry" : status;
}

const UNREAD: Delivery = { kind: "not_started", why: "store_away" };

const INTERRUPTED: Delivery = {
  kind: "interrupted",
  error: describeOutcome({ kind: "unknown", fault: "interrupted" }, 0),
};

const ALTERED: Delivery = { kind: "withheld", error: describeOutcome({ kind: "not_sent", fault: "altered" }, 0) };
