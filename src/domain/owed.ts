import type { Action, ActionStatus } from "./action.ts";
import { normalTarget } from "./normal-target.ts";
import type { TimelineEvent } from "./timeline.ts";

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
