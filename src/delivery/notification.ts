import { describeNotStarted, type NotStarted } from "../actions/settle.ts";
import { RETRY_JITTER, NOTIFY_DELAYS_MS } from "../config/limits.ts";
import type { TimelineEvent } from "../actions/timeline.ts";
import type { Action, ActionStatus } from "../actions/action.ts";
import { normalTarget } from "../outbound/normal-target.ts";

/** `dropped`: it came to be needless, and nothing is told of it. */
export type NotificationStatus = "pending" | "active" | "delivered" | "given_up" | "dropped";

/** A callback or mail that an action owes, claimed for an attempt. Its fate never touches the action. */
export interface Notification {
  /** Stays the same over all attempts: the `webhook-id` of a callback. */
  readonly id: string;
  readonly actionId: string;
  readonly accountId: string;
  /** The run of the action that owes it. */
  readonly run: number;
  readonly message: NewNotification;
  /** With the account and the key the queue that it waits in. */
  readonly host: string;
  /** Of the action. */
  readonly keyId: string;
  /** Attempts so far, this one counted: the fencing token of the claim. */
  readonly attempts: number;
  /** With `attempts` the fencing token: a claim that was given back is followed by one of the same number. */
  readonly leaseUntil: Date | null;
  /** The row was altered where it is stored: nothing of it is sent. */
  readonly isAltered?: true;
}

/** How one attempt to deliver a notification ended; a value, never an exception. */
export type Delivery =
  | { readonly kind: "delivered" }
  /** Tried again on the schedule; where the receiver asked for it, not before so many milliseconds. */
  | { readonly kind: "failed"; readonly error: string; readonly notBeforeMs: number | null }
  /** Another attempt would end the same way. */
  | { readonly kind: "refused"; readonly error: string }
  /** Nothing was tried, and nothing will be. */
  | { readonly kind: "withheld"; readonly error: string }
  /** There is nobody whom it would tell anything. */
  | { readonly kind: "needless" }
  /** No byte has left: the claim is given back, and the attempt does not count. */
  | { readonly kind: "not_started"; readonly why: NotStarted }
  /** The sender was stopped: nothing is known against the receiver, so that the next attempt is due at once. */
  | { readonly kind: "interrupted"; readonly error: string };

/** The end of an attempt, with what the action's timeline tells of it. Written while the attempt is still the row's. */
export interface NotificationChange {
  readonly before: Notification;
  readonly status: Exclude<NotificationStatus, "active">;
  /** Attempts that count from now on. */
  readonly attempts: number;
  /** When it is tried again; null when it is over. */
  readonly dueAt: Date | null;
  readonly lastError: string | null;
  /** Null: the timeline is not told. */
  readonly event: TimelineEvent | null;
}

export interface DeliveryEnd {
  readonly delivery: Delivery;
  readonly now: Date;
  /** Uniform in [0, 1). */
  readonly chance: number;
}

/** What becomes of a notification after an attempt: delivered, waiting for the next one, or given up (decisions 8). */
export function settleNotification(before: Notification, { delivery, now, chance }: DeliveryEnd): NotificationChange {
  const { attempts } = before;
  if (delivery.kind === "delivered") return change(before, { status: "delivered", dueAt: null, error: null, attempts });
  if (delivery.kind === "needless") {
    return { before, status: "dropped", attempts, dueAt: null, lastError: null, event: null };
  }
  if (delivery.kind === "not_started") {
    const error = describeNotStarted(delivery.why);
    const made = Math.max(0, attempts - 1);
    return { ...change(before, { status: "pending", dueAt: now, error, attempts: made }), attempts: made };
  }
  if (delivery.kind === "withheld") {
    return change(before, {
      status: "given_up",
      dueAt: null,
      error: delivery.error,
      attempts: Math.max(0, attempts - 1),
    });
  }
  return failed(before, delivery, now, chance);
}

type Failure = Extract<Delivery, { readonly kind: "failed" | "refused" | "interrupted" }>;

function failed(before: Notification, failure: Failure, now: Date, chance: number): NotificationChange {
  const { attempts } = before;
  const delayMs = delayBefore(attempts, failure, chance);
  if (delayMs !== null) {
    const dueAt = new Date(now.getTime() + delayMs);
    return change(before, { status: "pending", dueAt, error: failure.error, attempts });
  }
  const error = `${failure.error} Given up after ${attempts === 1 ? "1 attempt" : `${attempts} attempts`}.`;
  return change(before, { status: "given_up", dueAt: null, error, attempts });
}

/** Milliseconds until the next attempt; null when there is none. */
function delayBefore(attempts: number, failure: Failure, chance: number): number | null {
  const plain = NOTIFY_DELAYS_MS[attempts - 1];
  if (plain === undefined || failure.kind === "refused") return null;
  if (failure.kind === "interrupted") return 0;
  const delayMs = Math.round(plain * (1 + RETRY_JITTER * (2 * chance - 1)));
  // The later of the two: a receiver that always answers "in a second" would have used up its attempts in six.
  return Math.max(delayMs, failure.notBeforeMs ?? 0);
}

interface Ended {
  readonly status: NotificationChange["status"];
  readonly dueAt: Date | null;
  readonly error: string | null;
  /** Attempts that were made, as the timeline tells of them. */
  readonly attempts: number;
}

function change(before: Notification, { status, dueAt, error, attempts }: Ended): NotificationChange {
  const { kind: type, event } = before.message;
  const next_retry_at = dueAt?.toISOString() ?? null;
  const entry: TimelineEvent = { type, event, delivered: status === "delivered", attempts, error, next_retry_at };
  return { before, status, attempts: before.attempts, dueAt, lastError: error, event: entry };
}

/** The four kinds of news that a callback brings (decisions 8). */
export type CallbackEvent = `action.${"awaiting_approval" | "completed" | "failed" | "cancelled"}`;

/**
 * `approval` asks for a decision; `decided` tells whoever was asked that somebody else has decided, so that the question
 * in the mailbox has its answer below it.
 */
export type MailEvent = "approval" | "decided";

/** A notification that a change owes to somebody outside; it becomes a row of the outbox in the change's own commit. */
export type NewNotification =
  | { readonly kind: "callback"; readonly event: CallbackEvent; readonly target: string }
  | { readonly kind: "mail"; readonly event: MailEvent; readonly target: string };

export type NotificationKind = NewNotification["kind"];

/**
 * Where a notification goes to: with the account, the lane that it waits in. A mailbox is one whatever its case. A callback
 * that was altered by hand to what is no URL has a lane too: there it is given up, and no change of its action fails.
 */
export function hostOf({ kind, target }: Pick<NewNotification, "kind" | "target">): string {
  return kind === "callback" ? (normalTarget(target)?.host ?? target) : target.toLowerCase();
}

const CALLBACK_EVENTS: Readonly<Record<ActionStatus, CallbackEvent | null>> = {
  awaiting_approval: "action.awaiting_approval",
  completed: "action.completed",
  failed: "action.failed",
  cancelled: "action.cancelled",
  pending: null,
  active: null,
};

type Owing = Pick<Action, "status" | "callback" | "notifyEmail" | "approve">;

/** What is owed because an action has come into this state, by what is told of how it came there. */
export function notificationsFor(action: Owing, events: readonly TimelineEvent[]): readonly NewNotification[] {
  const { status, callback, notifyEmail } = action;
  const notifications: NewNotification[] = [];
  const event = CALLBACK_EVENTS[status];
  if (event !== null && callback !== null) notifications.push({ kind: "callback", event, target: callback });
  if (notifyEmail === null) return notifications;
  if (status === "awaiting_approval") notifications.push({ kind: "mail", event: "approval", target: notifyEmail });
  if (events.some((entry) => isDecidedByOthers(entry, notifyEmail))) {
    notifications.push({ kind: "mail", event: "decided", target: notifyEmail });
  }
  return notifications;
}

/** Whoever decided by the link of the mail knows it. */
function isDecidedByOthers(event: TimelineEvent, email: string): boolean {
  const isDecision = event.type === "approved" || event.type === "rejected";
  return isDecision && event.actor !== `email:${email}`;
}

/**
 * The host at which an action in this state may have a new notification of a kind; null when it has none. A hint, in
 * which nothing is missing: more may be looked for than is there.
 */
export function notificationHost(action: Owing, kind: NotificationKind): string | null {
  const { status, callback, notifyEmail, approve } = action;
  if (kind === "callback") {
    return callback === null || CALLBACK_EVENTS[status] === null ? null : hostOf({ kind, target: callback });
  }
  const mayBeNews = approve && (status === "awaiting_approval" || status === "pending" || status === "cancelled");
  return notifyEmail !== null && mayBeNews ? hostOf({ kind, target: notifyEmail }) : null;
}
