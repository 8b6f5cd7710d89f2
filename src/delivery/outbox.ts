import type { Action } from "../actions/action.ts";
import {
  type Notification,
  type NotificationKind,
  notificationHost,
  type Delivery,
  type NotificationChange,
  settleNotification,
} from "./notification.ts";
import type { Bus } from "../events/bus.ts";
import { type Queue, type DueRow, type OutboxStore, StoreUnavailable } from "../../db/store.ts";
import { Loop, type LoopDeps } from "./scheduler.ts";
import { createRescue, createSetAside } from "./recovery.ts";
import { NOTIFY_DELAYS_MS } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import { describeOutcome } from "../actions/outcome.ts";
import type { Deliver } from "./notify.ts";
import type { Attempt } from "./in-flight.ts";
import type { KeptResults } from "./settlement.ts";

type LoopOwn = "name" | "queue" | "attempt" | "rescue" | "setAside" | "unclaim";

export interface OutboxDeps
  extends Omit<LoopDeps<Notification>, LoopOwn | "metrics">, Omit<NotifyDeps, "onRetry" | "outbox"> {
  readonly kind: NotificationKind;
  readonly store: LoopDeps<Notification>["store"] & { readonly outbox: NotifyDeps["outbox"] };
  readonly queue: Queue<Notification>;
  readonly bus: Bus;
}

const NAMES = { callback: "callbacks", mail: "mails" } as const satisfies Record<NotificationKind, string>;

/**
 * Delivers one kind of notification with a loop, slots and schedule of its own: a slow receiver never delays an action,
 * and nothing here changes one.
 */
export class Outbox {
  readonly #kind: NotificationKind;
  readonly #bus: Bus;
  readonly #loop: Loop<Notification>;
  #unsubscribe: () => void = () => {};

  constructor(deps: OutboxDeps) {
    const { kind, bus, queue, clock, log, store } = deps;
    this.#kind = kind;
    this.#bus = bus;
    const notifyDeps: NotifyDeps = {
      ...deps,
      outbox: store.outbox,
      onRetry: (notification, due) => this.#loop.add(notification, due),
    };
    const settlement = createNotificationSettlement(notifyDeps);
    const name = NAMES[kind];
    this.#loop = new Loop({
      ...deps,
      name,
      attempt: createNotify(notifyDeps, settlement),
      unclaim: (notification) =>
        settlement.settle(notification, { delivery: { kind: "not_started", why: "in_doubt" }, durationMs: null }),
      setAside: createSetAside({ name, log, queue, end: settlement.setAside }),
      rescue: createRescue({
        name,
        log,
        queue,
        clock,
        end: settlement.recover,
        onRescued: (count) => log.warn(`${name}.rescued`, { count }),
      }),
    });
  }

  get isPaused(): boolean {
    return this.#loop.isPaused;
  }

  /** Re-evaluates the account's lanes after a pause began or ended. */
  pauseChanged(accountId: string): void {
    this.#loop.pauseChanged(accountId);
  }

  /** Makes due again what a dead process left active, then begins to claim. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#bus.subscribe((action) => this.#onChange(action));
    await this.#loop.start();
  }

  /**
   * Stops claiming and waits for what is in flight. After `limitMs` it is interrupted, and due again at the next start.
   */
  async drain(limitMs: number): Promise<void> {
    this.#unsubscribe();
    await this.#loop.drain(limitMs);
  }

  /** The row was stored with the change, so a hint for its lane is enough. */
  #onChange(action: Action): void {
    const host = notificationHost(action, this.#kind);
    if (host !== null) this.#loop.hint({ accountId: action.accountId, host, keyId: action.keyId });
  }
}

interface NotifyDeps {
  readonly outbox: Pick<OutboxStore, "settle" | "isSettled" | "force">;
  readonly kept: KeptResults;
  readonly clock: Clock;
  readonly ids: Pick<Ids, "chance">;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly deliver: Deliver;
  /** Called for a notification that will be retried. */
  readonly onRetry: (notification: Notification, due: DueRow) => void;
}

/** How an attempt ended and how long it took; null where that was not measured. */
export interface Notified {
  readonly delivery: Delivery;
  readonly durationMs: number | null;
}

/** Records the end of attempts: in the store, the log and the metrics. */
interface NotificationSettlement {
  /**
   * For an attempt of this process. Never rejects because of the store: it resolves when the result is written or the
   * process ends.
   */
  readonly settle: (notification: Notification, notified: Notified) => Promise<void>;
  /** For an attempt of a dead process. False: another change came first. Rejects when the store is away. */
  readonly recover: (notification: Notification) => Promise<boolean>;
  /** For a row that was altered in the database; the same. */
  readonly setAside: (notification: Notification) => Promise<boolean>;
}

/** One attempt of a claimed notification: deliver, then settle. The result is committed when it resolves. */
function createNotify(
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

function createNotificationSettlement(deps: NotifyDeps): NotificationSettlement {
  const { outbox, kept, clock, ids, log, metrics, onRetry } = deps;

  const changeOf = (notification: Notification, delivery: Delivery, now: Date): NotificationChange =>
    settleNotification(notification, { delivery, now, chance: ids.chance() });

  const report = (change: NotificationChange, now: Date, { delivery, durationMs }: Notified): void => {
    const { before, attempts, dueAt } = change;
    if (delivery.kind === "not_started") metrics.unclaimed(before.message.kind);
    else metrics.notified(before.message.kind, nextOf(change), durationMs);
    if (delivery === ALTERED) reportSetAside(deps, before);
    else logAttempt(log, change, now, durationMs);
    if (dueAt !== null) onRetry(before, { id: before.id, revision: attempts, dueAt });
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
      if (written === "yes") return report(change, now, notified);
      if (written === "no") metrics.fenced();
      log.warn(written === "no" ? "notification.fenced" : "notification.unrecorded", names);
    },

    async recover(notification) {
      const now = clock.now();
      const change = changeOf(notification, INTERRUPTED, now);
      if (!(await outbox.settle(change, now))) return false;
      report(change, now, { delivery: INTERRUPTED, durationMs: null });
      return true;
    },

    async setAside(notification) {
      const now = clock.now();
      const change = changeOf(notification, ALTERED, now);
      if (!(await outbox.force(change, now))) return false;
      reportSetAside(deps, notification);
      return true;
    },
  };
}

/** Logged once per row with its id: the operator has to look at the database. */
function reportSetAside({ metrics, log }: Pick<NotifyDeps, "metrics" | "log">, notification: Notification): void {
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

/** One line per attempt. The error is one of our own sentences. */
function logAttempt(log: Log, change: NotificationChange, now: Date, durationMs: number | null): void {
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
  error: describeOutcome({ kind: "unknown", fault: "interrupted" }, 0),
};

const ALTERED: Delivery = { kind: "withheld", error: describeOutcome({ kind: "not_sent", fault: "altered" }, 0) };
