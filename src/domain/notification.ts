import { RETRY_JITTER, NOTIFY_DELAYS_MS } from "./limits.ts";
import type { Owed } from "./owed.ts";
import type { Happening } from "./timeline.ts";

export type NotificationStatus = "pending" | "active" | "delivered" | "given_up";

/** A callback or mail that an action owes, claimed for an attempt. Its fate never touches the action. */
export interface Notification {
  /** Stays the same over all attempts: the `webhook-id` of a callback. */
  readonly id: string;
  readonly actionId: string;
  readonly accountId: string;
  /** The run of the action that owes it. */
  readonly run: number;
  readonly owed: Owed;
  /** With the account the lane that it waits in. */
  readonly host: string;
  /** Attempts so far, this one counted: the fencing token of the claim. */
  readonly attempts: number;
  readonly leaseUntil: Date | null;
}

/** How one attempt to deliver a notification ended; a value, never an exception. */
export type Delivery =
  | { readonly kind: "delivered" }
  /** Tried again on the schedule; where the receiver asked for it, not before so many milliseconds. */
  | { readonly kind: "failed"; readonly error: string; readonly notBeforeMs: number | null }
  /** Another attempt would end the same way. */
  | { readonly kind: "refused"; readonly error: string }
  /** The sender was stopped: nothing is known against the receiver, so that the next attempt is due at once. */
  | { readonly kind: "interrupted"; readonly error: string };

/** The end of an attempt, with what the action's timeline tells of it. Written while the attempt is still the row's. */
export interface NotificationChange {
  readonly before: Notification;
  readonly status: Exclude<NotificationStatus, "active">;
  /** When it is tried again; null when it is over. */
  readonly dueAt: Date | null;
  readonly lastError: string | null;
  readonly happening: Happening;
}

export interface DeliveryEnd {
  readonly delivery: Delivery;
  readonly now: Date;
  /** Uniform in [0, 1). */
  readonly chance: number;
}

/** What becomes of a notification after an attempt: delivered, waiting for the next one, or given up (decisions 8). */
export function settleNotification(before: Notification, { delivery, now, chance }: DeliveryEnd): NotificationChange {
  if (delivery.kind === "delivered") return change(before, "delivered", null, null);
  const delayMs = delayBefore(before.attempts, delivery, chance);
  if (delayMs !== null) return change(before, "pending", new Date(now.getTime() + delayMs), delivery.error);
  const attempts = before.attempts === 1 ? "1 attempt" : `${before.attempts} attempts`;
  return change(before, "given_up", null, `${delivery.error} Given up after ${attempts}.`);
}

/** Milliseconds until the next attempt; null when there is none. */
function delayBefore(attempts: number, delivery: Exclude<Delivery, { kind: "delivered" }>, chance: number) {
  const plain = NOTIFY_DELAYS_MS[attempts - 1];
  if (plain === undefined || delivery.kind === "refused") return null;
  if (delivery.kind === "interrupted") return 0;
  const delayMs = Math.round(plain * (1 + RETRY_JITTER * (2 * chance - 1)));
  // The later of the two: a receiver that always answers "in a second" would have used up its attempts in six.
  return Math.max(delayMs, delivery.notBeforeMs ?? 0);
}

function change(
  before: Notification,
  status: NotificationChange["status"],
  dueAt: Date | null,
  error: string | null,
): NotificationChange {
  const { owed, attempts } = before;
  const told = { event: owed.event, delivered: status === "delivered", attempts, error };
  const happening: Happening = { type: owed.kind, ...told, next_retry_at: dueAt?.toISOString() ?? null };
  return { before, status, dueAt, lastError: error, happening };
}
