import { normalTarget } from "./target.ts";

/** What channels are asked: an action awaits approval (`requested`), or still does (`reminded`, once). */
const ASKS = ["requested", "reminded"] as const;

export type AskKind = (typeof ASKS)[number];

/**
 * The event of a notification to a channel, with the channel's id and, for a mail, the index of its address: outbox rows are
 * unique by action, revision, kind and event.
 */
type AskEvent = `${AskKind}:${string}`;

/** The question in an event, or null if it is not for a channel. */
export function parseAsk(event: string): { readonly kind: AskKind; readonly channelId: string } | null {
  const [word, channelId = ""] = event.split(":");
  const kind = ASKS.find((ask) => ask === word);
  return kind === undefined || channelId === "" ? null : { kind, channelId };
}

/** Why people are notified about the end of a credential: it is near, or it has come. */
const STAGES = ["expiring", "expired"] as const;

/** One of the two alerts for each end of a credential. */
export interface CredentialAlert {
  readonly stage: (typeof STAGES)[number];
  readonly expiresAt: Date;
}

/**
 * The event of a notification about the end of a credential, with that end in milliseconds and the index of its recipient.
 * Outbox rows are unique by it and the credential's id, so that nobody is notified twice.
 */
type AlertEvent = `credential_${CredentialAlert["stage"]}:${number}:${number}`;

export function alertEvent({ stage, expiresAt }: CredentialAlert, place: number): AlertEvent {
  return `credential_${stage}:${expiresAt.getTime()}:${place}`;
}

/** The alert of an event; null: it is about something else. */
export function parseAlert(event: string): CredentialAlert | null {
  const [, word, ms] = /^credential_(expiring|expired):(\d{1,15}):\d{1,4}$/.exec(event) ?? [];
  const stage = STAGES.find((one) => one === word);
  return stage === undefined ? null : { stage, expiresAt: new Date(Number(ms)) };
}

/** Events that callbacks report. See docs/events.md. */
export type CallbackEvent = `action.${"awaiting_approval" | "completed" | "failed" | "cancelled" | "late_result"}`;

/**
 * `approval` asks for a decision. `decided` tells the recipient of that mail that somebody else has decided. `invited` is about
 * an invitation instead of an action.
 */
type MailEvent = "approval" | "decided" | "invited";

/** Reports an agent's request for a credential, with the index of its recipient. */
type RequestEvent = `credential_requested:${number}`;

/** The name of an event, without what names its recipient. */
export function eventName(event: string): string {
  return event.split(":", 1)[0] ?? event;
}

/** Whether it is about a request for a credential, whose id stands in place of the action's. */
export function isCredentialRequested(event: string): boolean {
  return eventName(event) === "credential_requested";
}

/** False: it is about an invitation, a credential or a request for one, whose id stands in place of the action's. */
export function isAboutAction(event: string): boolean {
  return event !== "invited" && !isCredentialRequested(event) && parseAlert(event) === null;
}

/** A notification to send because of a change. It is written to the outbox in the change's own commit. */
export type NewNotification =
  | { readonly kind: "callback"; readonly event: CallbackEvent; readonly target: string }
  | { readonly kind: "mail"; readonly event: MailEvent | AskEvent | AlertEvent | RequestEvent; readonly target: string }
  /** To a channel that is no mail; `target` is its id. */
  | { readonly kind: "message"; readonly event: AskEvent | AlertEvent | RequestEvent; readonly target: string };

export type NotificationKind = NewNotification["kind"];

/**
 * The host part of a notification's lane. Mail addresses are compared without case. Each channel is a lane of its own. A callback URL
 * that was altered to an invalid one still gets a lane, where it is given up, so that no change of its action fails.
 */
export function notificationHost({ kind, target }: Pick<NewNotification, "kind" | "target">): string {
  if (kind === "message") return target;
  return kind === "callback" ? (normalTarget(target)?.host ?? target) : target.toLowerCase();
}
