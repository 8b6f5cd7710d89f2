import { attemptMs } from "../core/outcome.ts";
import type { Action } from "../core/action.ts";
import type { Channel } from "../core/channel.ts";
import type { CredentialStore } from "../core/credential.ts";
import type { CredentialRequestStore } from "../core/credential-request.ts";
import { alertOf, type CredentialAlert } from "../core/credential-alert.ts";
import {
  type Question,
  slackAlert,
  slackQuestion,
  slackRequest,
  webhookAlert,
  webhookQuestion,
  webhookRequest,
} from "../mail/chat-messages.ts";
import { MESSAGE_TIMEOUT_MS } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import type { OutboundRequest, Sender } from "../outbound/deadline.ts";
import { see } from "../receipts/see.ts";
import { askedNow, type AskedDeps } from "./asked.ts";
import type { SignedHeaders } from "./attempt.ts";
import { type Deliver, deliveryOf, endingNow, faultOf, pendingNow } from "./deliver.ts";
import { type Delivery, isCredentialRequested, type Notification } from "../core/notification.ts";

/** How a text is posted to a channel. */
export interface PostDeps {
  readonly signedHeaders: SignedHeaders;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
}

/** A text for a channel. */
interface Post {
  readonly channel: Pick<Channel, "accountId" | "kind">;
  readonly url: string;
  /** `webhook-id`: the same over all attempts. */
  readonly id: string;
  readonly body: string;
}

/** The request that posts a text. Only a webhook of the account's own is signed: Slack checks no signature. */
export async function postRequest(
  { signedHeaders, userAgent }: PostDeps,
  { channel: { accountId, kind }, url, id, body }: Post,
  now: Date,
): Promise<OutboundRequest> {
  const signed = kind === "webhook" ? await signedHeaders({ accountId, url, id, body }, now) : [];
  return {
    url,
    method: "POST",
    headers: [["User-Agent", userAgent], ["Content-Type", "application/json"], ...signed],
    body,
  };
}

interface MessageDeps extends AskedDeps, PostDeps {
  readonly credentials: Pick<CredentialStore, "find">;
  readonly credentialRequests: Pick<CredentialRequestStore, "find">;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly historyOf: (action: Action) => Promise<DecisionHistory>;
  readonly baseUrl: string;
  readonly attemptTimeoutMs: number;
}

/**
 * Builds the message when it is sent, from the action or credential as it is then, and posts it. The target is checked at every
 * attempt. It is sent only while the action awaits the decision, or the credential still ends as was told.
 */
export function createMessage(deps: MessageDeps): Deliver {
  const { sender, clock } = deps;
  const timeoutMax = Math.min(deps.attemptTimeoutMs, MESSAGE_TIMEOUT_MS);
  return async (notification, stop) => {
    const now = clock.now();
    const message = await messageNow(deps, notification, now);
    if (message === null) return NOT_NEEDED;
    const { channel, body } = message;
    const { url } = channel;
    if (url === null) return UNREADABLE;
    const request = await postRequest(deps, { channel, url, id: notification.id, body }, now).catch(faultOf);
    if (typeof request === "string") return deliveryOf({ kind: "not_sent", fault: request }, now, timeoutMax);
    const timeoutMs = attemptMs(notification, clock.now(), timeoutMax);
    if (timeoutMs === 0) return { kind: "not_started", why: "late" };
    const outcome = await sender.send(request, { timeoutMs, stop, keepFor: null });
    if (outcome.kind === "stopped") return { kind: "not_started", why: "stopping" };
    return deliveryOf(outcome, clock.now(), timeoutMs);
  };
}

interface Message {
  readonly channel: Channel;
  readonly body: string;
}

/** Null: it is of no use any more. */
function messageNow(deps: MessageDeps, notification: Notification, at: Date): Promise<Message | null> {
  const { event } = notification.message;
  if (isCredentialRequested(event)) return requestNow(deps, notification, at);
  const alert = alertOf(event);
  return alert === null ? questionNow(deps, notification, at) : alertNow(deps, notification, alert, at);
}

/** Null: nobody has to be asked any more. */
async function questionNow(deps: MessageDeps, notification: Notification, at: Date): Promise<Message | null> {
  const asked = await askedNow(deps, notification);
  if (asked === null || asked.channel.kind === "mail") return null;
  const { ask, channel } = asked;
  const action = await see(asked.action, "public");
  const question: Question = { ask, at, action, history: await deps.historyOf(asked.action), baseUrl: deps.baseUrl };
  return { channel, body: channel.kind === "slack" ? slackQuestion(question) : webhookQuestion(question) };
}

/** Null: nobody has to be told any more. */
async function alertNow(
  { channels, credentials, baseUrl }: MessageDeps,
  { accountId, actionId, message }: Notification,
  alert: CredentialAlert,
  at: Date,
): Promise<Message | null> {
  const channel = await channels.find(accountId, message.target);
  if (channel === null || !channel.enabled || channel.kind === "mail") return null;
  const credential = await endingNow(credentials, { accountId, id: actionId }, alert, at);
  if (credential === null) return null;
  const told = { ...alert, credential, baseUrl, at };
  return { channel, body: channel.kind === "slack" ? slackAlert(told) : webhookAlert(told) };
}

/** Null: it was answered, or is over. */
async function requestNow(
  { channels, credentialRequests, baseUrl }: MessageDeps,
  notification: Notification,
  at: Date,
): Promise<Message | null> {
  const channel = await channels.find(notification.accountId, notification.message.target);
  if (channel === null || !channel.enabled || channel.kind === "mail") return null;
  const request = await pendingNow(credentialRequests, notification, at);
  if (request === null) return null;
  const told = { request, baseUrl, at };
  return { channel, body: channel.kind === "slack" ? slackRequest(told) : webhookRequest(told) };
}

const NOT_NEEDED: Delivery = { kind: "needless" };

const UNREADABLE: Delivery = {
  kind: "withheld",
  error: "No message was sent: where the channel goes can't be read. Set its URL again.",
};
