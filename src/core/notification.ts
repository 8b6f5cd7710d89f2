import { describeNotStarted, type NotStartedReason } from "./settle.ts";
import { NOTIFY_DELAYS_MS } from "./limits.ts";
import { jittered } from "./retry.ts";
import { isTooLate, type TimelineEvent } from "./timeline.ts";
import type { Action, ActionStatus } from "./action.ts";
import { SYSTEM } from "./roles.ts";
import type { Channel } from "./channel.ts";
import {
  type AskKind,
  type CallbackEvent,
  eventName,
  isAboutAction,
  type NewNotification,
  type NotificationKind,
  notificationHost,
} from "./notification-events.ts";

/** `dropped`: it was no longer needed; the timeline does not mention it. */
export type NotificationStatus = "pending" | "active" | "delivered" | "given_up" | "dropped";

/** A callback, mail or message to a channel, of an action, claimed for an attempt. Its outcome never affects the action. */
export interface Notification {
  /** The same for all attempts: the `webhook-id` of a callback. */
  readonly id: string;
  readonly actionId: string;
  readonly accountId: string;
  /** The run of the action that caused it. */
  readonly run: number;
  readonly message: NewNotification;
  /** Part of the lane's name, with the account and the key. */
  readonly host: string;
  /** The key that created the action. */
  readonly keyId: string;
  /** Attempts so far, including this one. Together with `leaseUntil`, the fencing token of the claim. */
  readonly attempts: number;
  /** Part of the fencing token, since after a claim was given back, the next one has the same number of attempts. */
  readonly leaseUntil: Date | null;
}

/** How one attempt to deliver a notification ended; a value, never an exception. */
export type DeliveryResult =
  | { readonly kind: "delivered" }
  /** Retried on the schedule, but not before `notBeforeMs`, if the receiver asked for that (`Retry-After`). */
  | { readonly kind: "failed"; readonly error: string; readonly notBeforeMs: number | null }
  /** Another attempt would end the same way. */
  | { readonly kind: "refused"; readonly error: string }
  /** Nothing was tried, and nothing will be. */
  | { readonly kind: "withheld"; readonly error: string }
  /** Nobody needs it any more. */
  | { readonly kind: "needless" }
  /** No byte has left: the claim is returned and the attempt does not count. */
  | { readonly kind: "not_started"; readonly why: NotStartedReason }
  /** We stopped the attempt ourselves, so the next one is due at once. */
  | { readonly kind: "interrupted"; readonly error: string };

/** The result of an attempt and its timeline event. It is written only while the attempt's claim holds. */
export interface NotificationChange {
  readonly before: Notification;
  readonly status: Exclude<NotificationStatus, "active">;
  /** Attempts that count from now on. */
  readonly attempts: number;
  /** When it is tried again; null when it is over. */
  readonly dueAt: Date | null;
  readonly lastError: string | null;
  /** Null: nothing is added to the timeline. */
  readonly event: TimelineEvent | null;
}

interface DeliveryEnd {
  readonly delivery: DeliveryResult;
  readonly now: Date;
  /** Uniform in [0, 1). */
  readonly chance: number;
  /** The name of the channel that it is for; null: none. */
  readonly channel?: string | null;
}

/** Decides what follows an attempt: delivered, retried or given up. See docs/events.md. */
export function settleNotification(before: Notification, end: DeliveryEnd): NotificationChange {
  const { delivery, channel = null } = end;
  const next = nextDelivery(before.attempts, end);
  const isMade = delivery.kind !== "not_started" && delivery.kind !== "withheld";
  const made = isMade ? before.attempts : before.attempts - 1;
  const settled = { before, ...next, attempts: delivery.kind === "not_started" ? made : before.attempts };
  const { kind: type, event: name } = before.message;
  if (next.status === "dropped" || !isAboutAction(name)) return { ...settled, event: null };
  const event = {
    type,
    event: eventName(name),
    delivered: next.status === "delivered",
    attempts: made,
    error: next.lastError,
    next_retry_at: next.dueAt?.toISOString() ?? null,
    ...(channel !== null && { channel }),
  };
  return { ...settled, event };
}

function nextDelivery(
  attempts: number,
  { delivery, now, chance }: DeliveryEnd,
): Pick<NotificationChange, "status" | "dueAt" | "lastError"> {
  const over = { dueAt: null, lastError: null };
  if (delivery.kind === "delivered") return { ...over, status: "delivered" };
  if (delivery.kind === "needless") return { ...over, status: "dropped" };
  if (delivery.kind === "not_started") {
    return { status: "pending", dueAt: now, lastError: describeNotStarted(delivery.why) };
  }
  const { error } = delivery;
  if (delivery.kind === "withheld") return { ...over, status: "given_up", lastError: error };
  const delayMs = delayBefore(attempts, delivery, chance);
  if (delayMs !== null) return { status: "pending", dueAt: new Date(now.getTime() + delayMs), lastError: error };
  const made = attempts === 1 ? "1 attempt" : `${attempts} attempts`;
  return { ...over, status: "given_up", lastError: `${error} Given up after ${made}.` };
}

type Failure = Extract<DeliveryResult, { readonly kind: "failed" | "refused" | "interrupted" }>;

/** Milliseconds until the next attempt; null when there is none. */
function delayBefore(attempts: number, failure: Failure, chance: number): number | null {
  const plain = NOTIFY_DELAYS_MS[attempts - 1];
  if (plain === undefined || failure.kind === "refused") return null;
  if (failure.kind === "interrupted") return 0;
  // The later time, or a receiver that always answers "retry in a second" would use up all attempts in seconds.
  return Math.max(jittered(plain, chance), failure.notBeforeMs ?? 0);
}

const CALLBACK_EVENTS: Readonly<Record<ActionStatus, CallbackEvent | null>> = {
  awaiting_approval: "action.awaiting_approval",
  completed: "action.completed",
  failed: "action.failed",
  cancelled: "action.cancelled",
  pending: null,
  active: null,
};

type NotifyingAction = Pick<Action, "status" | "callback" | "notifyEmail" | "approve" | "approvedBy">;

/** The notifications to send because an action reached this state by these events. */
export function notificationsFor(
  action: NotifyingAction,
  events: readonly TimelineEvent[],
): readonly NewNotification[] {
  const { status, callback, notifyEmail } = action;
  const notifications: NewNotification[] = [];
  const event = callbackEvent(status, events);
  if (event !== null && callback !== null) notifications.push({ kind: "callback", event, target: callback });
  if (notifyEmail === null || events.some(isTooLate)) return notifications;
  if (status === "awaiting_approval") notifications.push({ kind: "mail", event: "approval", target: notifyEmail });
  if (events.some((entry) => isDecidedByOthers(entry, action, notifyEmail))) {
    notifications.push({ kind: "mail", event: "decided", target: notifyEmail });
  }
  return notifications;
}

function callbackEvent(status: ActionStatus, [first]: readonly TimelineEvent[]): CallbackEvent | null {
  if (first?.type !== "attempt" || !isTooLate(first)) return CALLBACK_EVENTS[status];
  return first.late === "result" ? "action.late_result" : null;
}

/** People who decided by the mail's link need no second mail, and a withdrawn question asks nothing any more. */
function isDecidedByOthers(event: TimelineEvent, { approve, approvedBy }: NotifyingAction, email: string): boolean {
  if (event.type === "cancelled") return approve && approvedBy === null && event.actor !== SYSTEM;
  const isDecision = event.type === "approved" || event.type === "rejected";
  return isDecision && event.actor !== `email:${email}`;
}

/** A notification for a channel, and how long from now it is due. */
interface DueAsk {
  readonly message: NewNotification;
  readonly afterMs: number;
}

/** The notifications for channels when an action begins to await approval: one at once, and perhaps a reminder later. */
export function asksFor({ status }: Pick<Action, "status">, channels: readonly Channel[]): readonly DueAsk[] {
  if (status !== "awaiting_approval" || channels.length === 0) return NO_ASKS;
  return channels
    .filter(({ enabled }) => enabled)
    .flatMap((channel) => {
      const { remindAfterMinutes: minutes } = channel;
      const first = messagesTo(channel, "requested", 0);
      return minutes === null ? first : [...first, ...messagesTo(channel, "reminded", minutes * 60_000)];
    });
}

const NO_ASKS: readonly DueAsk[] = [];

function messagesTo({ id, kind, to }: Channel, ask: AskKind, afterMs: number): readonly DueAsk[] {
  if (kind !== "mail") return [{ message: { kind: "message", event: `${ask}:${id}`, target: id }, afterMs }];
  return to.map((target, at) => ({ message: { kind: "mail", event: `${ask}:${id}:${at}`, target }, afterMs }));
}

/**
 * The lanes' hosts for new notifications of this kind that an action in this state may have. A hint: it may name a host
 * without new rows, but never misses one, except where another node has just changed the channels.
 */
export function notificationHosts(
  action: NotifyingAction,
  kind: NotificationKind,
  channels: readonly Channel[],
): readonly string[] {
  const { status, callback, notifyEmail, approve } = action;
  if (kind === "callback") {
    return callback === null || CALLBACK_EVENTS[status] === null
      ? NO_HOSTS
      : [notificationHost({ kind, target: callback })];
  }
  const mayHaveMail = approve && (status === "awaiting_approval" || status === "pending" || status === "cancelled");
  const own =
    kind === "mail" && notifyEmail !== null && mayHaveMail
      ? [notificationHost({ kind, target: notifyEmail })]
      : NO_HOSTS;
  const asks = asksFor(action, channels);
  if (asks.length === 0) return own;
  return [
    ...new Set([...own, ...asks.flatMap(({ message }) => (message.kind === kind ? [notificationHost(message)] : []))]),
  ];
}

/** Shared, since most changes have none. */
const NO_HOSTS: readonly string[] = [];
