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
import { describe } from "../actions/outcome.ts";
import type { Deliver } from "./notify.ts";
import type { Attempt } from "./in-flight.ts";
import type { KeptResults } from "./settlement.ts";

type Built = "name" | "queue" | "attempt" | "rescue" | "setAside" | "unclaim";

export interface OutboxDeps
  extends Omit<LoopDeps<Notification>, Built | "metrics">, Omit<NotifyDeps, "again" | "outbox"> {
  readonly kind: NotificationKind;
  readonly store: LoopDeps<Notification>["store"] & { readonly outbox: NotifyDeps["outbox"] };
  readonly queue: Queue<Notification>;
  readonly bus: Bus;
}

const NAMES = { callback: "callbacks", mail: "mails" } as const satisfies Record<NotificationKind, string>;

/**
 * Delivers what actions owe of one kind, on a wheel of its own with its own slots and schedule: whatever a receiver does,
 * no action waits for it, and nothing here changes one (decisions 8).
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
    const notifying: NotifyDeps = {
      ...deps,
      outbox: store.outbox,
      again: (notification, due) => this.#loop.add(notification, due),
    };
    const settlement = createNotificationSettlement(notifying);
    const name = NAMES[kind];
    this.#loop = new Loop({
      ...deps,
      name,
      attempt: createNotify(notifying, settlement),
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

  /** Hears that what is paused of an account has changed. */
  pauseChanged(accountId: string): void {
    this.#loop.pauseChanged(accountId);
  }

  /** Makes due again what a dead process had under way, then begins to claim. */
  async start(): Promise<void> {
    this.#unsubscribe = this.#bus.subscribe((action) => this.#hear(action));
    await this.#loop.start();
  }

  /** Stops claiming and lets what is under way end; after `limitMs` it is interrupted and due again at the next start. */
  async drain(limitMs: number): Promise<void> {
    this.#unsubscribe();
    await this.#loop.drain(limitMs);
  }

  /** The row is in the store since the change's own commit: only its lane has to be told. */
  #hear(action: Action): void {
    const host = notificationHost(action, this.#kind);
    if (host !== null) this.#loop.hint({ accountId: action.accountId, host, keyId: action.keyId });
  }
}

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
