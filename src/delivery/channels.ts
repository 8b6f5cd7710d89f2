import { attemptMs } from "../core/outcome.ts";
import type { Action } from "../core/action.ts";
import type { Channel } from "../core/channel.ts";
import { type Question, slackQuestion, webhookQuestion } from "../mail/chat-messages.ts";
import { MESSAGE_TIMEOUT_MS } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import type { OutboundRequest, Sender } from "../outbound/deadline.ts";
import { see } from "../receipts/see.ts";
import { askedNow, type AskedDeps } from "./asked.ts";
import type { SignedHeaders } from "./attempt.ts";
import { type Deliver, deliveryOf, faultOf } from "./deliver.ts";
import type { Delivery } from "../core/notification.ts";

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
  readonly sender: Sender;
  readonly clock: Clock;
  readonly historyOf: (action: Action) => Promise<DecisionHistory>;
  readonly baseUrl: string;
  readonly attemptTimeoutMs: number;
}

/**
 * Builds the message when it is sent, from the action as it is then, and posts it. The target is checked at every attempt. It is
 * sent only while the action awaits the decision.
 */
export function createMessage(deps: MessageDeps): Deliver {
  const { sender, clock, historyOf, baseUrl } = deps;
  const timeoutMax = Math.min(deps.attemptTimeoutMs, MESSAGE_TIMEOUT_MS);
  return async (notification, stop) => {
    const asked = await askedNow(deps, notification);
    if (asked === null || asked.channel.kind === "mail") return NOT_NEEDED;
    const { ask, channel } = asked;
    const { url } = channel;
    if (url === null) return UNREADABLE;
    const action = await see(asked.action, "public");
    const history = await historyOf(asked.action);
    const now = clock.now();
    const question: Question = { ask, at: now, action, history, baseUrl };
    const body = channel.kind === "slack" ? slackQuestion(question) : webhookQuestion(question);
    const request = await postRequest(deps, { channel, url, id: notification.id, body }, now).catch(faultOf);
    if (typeof request === "string") return deliveryOf({ kind: "not_sent", fault: request }, now, timeoutMax);
    const timeoutMs = attemptMs(notification, clock.now(), timeoutMax);
    if (timeoutMs === 0) return { kind: "not_started", why: "late" };
    const outcome = await sender.send(request, { timeoutMs, stop, keepFor: null });
    if (outcome.kind === "stopped") return { kind: "not_started", why: "stopping" };
    return deliveryOf(outcome, clock.now(), timeoutMs);
  };
}

const NOT_NEEDED: Delivery = { kind: "needless" };

const UNREADABLE: Delivery = {
  kind: "withheld",
  error: "No message was sent: where the channel goes can't be read. Set its URL again.",
};
