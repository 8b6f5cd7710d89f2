import type { KnownChannels } from "../core/channel.ts";
import { NOTIFY_DELAYS_MS } from "../core/limits.ts";
import {
  type DeliveryResult,
  type Notification,
  type NotificationChange,
  notificationHosts,
  settleNotification,
} from "../core/notification.ts";
import { describeOutcome } from "../core/outcome.ts";
import { StoreUnavailable } from "../core/store.ts";
import { errorName } from "../observability/log.ts";
import { type LoopContext, NOTHING_DUE, Scheduler, type SchedulerOptions } from "./scheduler.ts";
import { parseAsk, type NotificationKind } from "../core/notification-events.ts";

/** Makes one attempt to deliver a notification. Rejects only when the store is unavailable; then nothing was sent. */
export type Deliver = (notification: Notification, stop: AbortSignal) => Promise<DeliveryResult>;

interface NotificationNeeds extends Pick<
  SchedulerOptions<Notification>,
  "limits" | "isPaused" | "findLimits" | "beginWaitMs"
> {
  readonly kind: NotificationKind;
  readonly deliver: Deliver;
  readonly channels: Pick<KnownChannels, "of" | "channelName">;
}

/**
 * Delivers one kind of notification, with its own slots and schedule: a slow receiver never delays an action, and nothing
 * here changes an action.
 */
export function createNotificationScheduler(app: LoopContext, needs: NotificationNeeds): Scheduler<Notification> {
  const { kind, deliver, channels, ...loop } = needs;
  const { clock, files, ids, log, metrics, unwritten, store } = app;
  const { outbox } = store;
  const name = `${kind}s` as const;

  const settleChange = (notification: Notification, delivery: DeliveryResult, now: Date): NotificationChange => {
    const ask = parseAsk(notification.message.event);
    const channel = ask === null ? null : channels.channelName(notification.accountId, ask.channelId);
    return settleNotification(notification, { delivery, now, chance: ids.random(), channel });
  };

  /** Logs one line per attempt. Its error is one of our own sentences, so it quotes no receiver. */
  const report = (change: NotificationChange, delivery: DeliveryResult, now: Date, durationMs: number | null): void => {
    const { before, status, dueAt, lastError } = change;
    const { id, accountId, actionId, message, host, attempts } = before;
    const next = status === "pending" ? "retry" : status;
    if (delivery.kind === "not_started") metrics.unclaimed(kind);
    else metrics.notified(kind, next, durationMs);
    log[status === "given_up" ? "warn" : "info"](`${kind}.attempted`, {
      id,
      action_id: actionId,
      account_id: accountId,
      event: message.event,
      host: kind === "callback" ? host : undefined,
      attempt: attempts,
      attempts_max: NOTIFY_DELAYS_MS.length + 1,
      error: lastError,
      duration_ms: durationMs,
      next,
      next_in_ms: dueAt === null ? undefined : dueAt.getTime() - now.getTime(),
    });
    if (dueAt !== null) scheduler.add({ lane: before, dueAt, isLarge: false });
  };

  /**
   * Records the result of an attempt of this process. Never rejects because of the store: it resolves when the result is
   * written or the process ends.
   */
  const settle = async (
    notification: Notification,
    delivery: DeliveryResult,
    durationMs: number | null,
  ): Promise<void> => {
    const now = clock.now();
    const change = settleChange(notification, delivery, now);
    const names = { id: notification.id, attempt: notification.attempts };
    const written = await unwritten.write({
      // Nothing more than the fixed size: the body of a callback is in the store already.
      bytes: 0,
      write: async (isRepeat) =>
        (await outbox.settle(change, now)) || (isRepeat && (await outbox.isSettled(change, now))),
      onKept: (error) => log.warn("notification.result_kept", { ...names, error: errorName(error) }),
    });
    if (written === "never") return log.warn("notification.unrecorded", names);
    if (written) return report(change, delivery, now, durationMs);
    metrics.fenced();
    log.warn("notification.fenced", names);
  };

  const scheduler = new Scheduler<Notification>(app, {
    name,
    ...loop,
    queue: outbox[name],
    findDue: (action) => {
      const { accountId, keyId } = action;
      const hosts = notificationHosts(action, kind, channels.of(accountId));
      if (hosts.length === 0) return NOTHING_DUE;
      const dueAt = clock.now();
      return hosts.map((host) => ({ lane: { accountId, host, keyId }, dueAt, isLarge: false }));
    },
    attempt: async (notification, { stop, releaseSlot }) => {
      const startedMs = clock.monotonicMs();
      const delivery = await deliver(notification, stop).catch(async (error: unknown) => {
        releaseSlot();
        if (error instanceof StoreUnavailable) await settle(notification, UNREAD, null);
        throw error;
      });
      const durationMs = delivery.kind === "not_started" ? null : Math.round(clock.monotonicMs() - startedMs);
      await app.turns.wait();
      if (delivery.kind === "not_started" && delivery.why === "no_file") files.lack();
      releaseSlot();
      await settle(notification, delivery, durationMs);
    },
    recovery: {
      async recover(notification) {
        const now = clock.now();
        const change = settleChange(notification, INTERRUPTED, now);
        if (!(await outbox.settle(change, now))) return false;
        report(change, INTERRUPTED, now, null);
        return true;
      },
      unclaim: (notification) => settle(notification, { kind: "not_started", why: "in_doubt" }, null),
      onRescued: (count) => log.warn(`${name}.rescued`, { count }),
    },
  });
  return scheduler;
}

const UNREAD: DeliveryResult = { kind: "not_started", why: "store_away" };

const INTERRUPTED: DeliveryResult = {
  kind: "interrupted",
  error: describeOutcome({ kind: "unknown", fault: "interrupted" }, 0),
};
