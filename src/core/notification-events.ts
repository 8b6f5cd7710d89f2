import { normalTarget } from "./target.ts";

/** What channels hear of an action: that it awaits approval, and once that it still does. */
const ASKS = ["requested", "reminded"] as const;

export type AskKind = (typeof ASKS)[number];

/**
 * The event of a notification to a channel, with the channel's id; of a mail also the place of its address. A row of the outbox
 * is unique by action, revision, kind and event.
 */
type AskEvent = `${AskKind}:${string}`;

/** What an event asks; null: it is not for a channel. */
export function askOf(event: string): { readonly kind: AskKind; readonly channelId: string } | null {
  const [word, channelId = ""] = event.split(":");
  const kind = ASKS.find((ask) => ask === word);
  return kind === undefined || channelId === "" ? null : { kind, channelId };
}

/** Why people are notified of the end of a credential: it is near, or has come. */
const STAGES = ["expiring", "expired"] as const;

/** One of two alerts for each end that a credential is given. */
export interface CredentialAlert {
  readonly stage: (typeof STAGES)[number];
  readonly expiresAt: Date;
}

/**
 * The event of a notification about the end of a credential, with that end in milliseconds and the place of its recipient. With
 * the id of the credential a row of the outbox is unique by it, so that nobody is notified twice.
 */
type AlertEvent = `credential_${CredentialAlert["stage"]}:${number}:${number}`;

export function alertEvent({ stage, expiresAt }: CredentialAlert, place: number): AlertEvent {
  return `credential_${stage}:${expiresAt.getTime()}:${place}`;
}

/** The alert of an event; null: it is about something else. */
export function alertOf(event: string): CredentialAlert | null {
  const [, word, ms] = /^credential_(expiring|expired):(\d{1,15}):\d{1,4}$/.exec(event) ?? [];
  const stage = STAGES.find((one) => one === word);
  return stage === undefined ? null : { stage, expiresAt: new Date(Number(ms)) };
}

/** Events that callbacks report. See docs/events.md. */
export type CallbackEvent = `action.${"awaiting_approval" | "completed" | "failed" | "cancelled" | "late_result"}`;

/**
 * `approval` asks for a decision. `decided` says to the recipient of that mail that somebody else has decided. `invited` is about
 * an invitation instead of an action. Events of channels and of credentials are in files of their own.
 */
type MailEvent = "approval" | "decided" | "invited";

/** Tells of what an agent asks for, with the place of its recipient. */
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
  return event !== "invited" && !isCredentialRequested(event) && alertOf(event) === null;
}

/** A notification to send because of a change. It is written to the outbox in the change's own commit. */
export type NewNotification =
  | { readonly kind: "callback"; readonly event: CallbackEvent; readonly target: string }
  | { readonly kind: "mail"; readonly event: MailEvent | AskEvent | AlertEvent | RequestEvent; readonly target: string }
  /** To a channel that is no mail; `target` is its id. */
  | { readonly kind: "message"; readonly event: AskEvent | AlertEvent | RequestEvent; readonly target: string };

export type NotificationKind = NewNotification["kind"];

/**
 * Where a notification goes, which with account and key names its lane. Mail addresses are compared without case. A
 * callback URL that was altered to an invalid one still gets a lane: it is given up there, and no change of its action
 * fails. Each channel is a lane of its own.
 */
export function hostOf({ kind, target }: Pick<NewNotification, "kind" | "target">): string {
  if (kind === "message") return target;
  return kind === "callback" ? (normalTarget(target)?.host ?? target) : target.toLowerCase();
}
