import type { Action } from "../domain/action.ts";
import type { Notification } from "../domain/notification.ts";
import { type NotificationKind, notificationHost } from "../domain/owed.ts";
import type { Bus } from "../ports/bus.ts";
import type { Queue } from "../ports/store.ts";
import { Loop, type LoopDeps } from "./loop.ts";
import { createNotificationSettlement, createNotify, type NotifyDeps } from "./notify.ts";
import { createRescue } from "./rescue.ts";
import { createSetAside } from "./set-aside.ts";

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
