import type { Action, ActionStatus } from "./action.ts";

/** The four kinds of news that a callback brings (decisions 8). */
export type CallbackEvent = `action.${"awaiting_approval" | "completed" | "failed" | "cancelled"}`;

/** A notification that a change owes to somebody outside; it becomes a row of the outbox in the change's own commit. */
export type Owed =
  | { readonly kind: "callback"; readonly event: CallbackEvent; readonly target: string }
  | { readonly kind: "mail"; readonly event: "approval"; readonly target: string };

export type OwedKind = Owed["kind"];

/** All mails of an account wait in one lane; no host of a URL is empty. */
const MAIL_HOST = "";

/** Where a notification goes to: with the account, the lane that it waits in. */
export function hostOf({ kind, target }: Owed): string {
  return kind === "callback" ? new URL(target).host : MAIL_HOST;
}

const CALLBACK_EVENTS: Readonly<Record<ActionStatus, CallbackEvent | null>> = {
  awaiting_approval: "action.awaiting_approval",
  completed: "action.completed",
  failed: "action.failed",
  cancelled: "action.cancelled",
  pending: null,
  active: null,
};

/** What is owed because an action has come into this state. */
export function owedOn(action: Pick<Action, "status" | "callback" | "notifyEmail" | "approve">): readonly Owed[] {
  const owed: Owed[] = [];
  const event = CALLBACK_EVENTS[action.status];
  if (event !== null && action.callback !== null) owed.push({ kind: "callback", event, target: action.callback });
  if (action.status === "awaiting_approval" && action.notifyEmail !== null) {
    owed.push({ kind: "mail", event: "approval", target: action.notifyEmail });
  }
  return owed;
}
