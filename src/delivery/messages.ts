import type { DecisionHistory } from "../approvals/facts.ts";
import type { Action } from "../core/action.ts";
import type { Channel } from "../core/channel.ts";
import { MESSAGE_TIMEOUT_MS } from "../core/limits.ts";
import type { DeliveryResult, Notification } from "../core/notification.ts";
import { credentialNotice, MESSAGE_FORMATS, requestNotice } from "../mail/chat-messages.ts";
import { see } from "../receipts/see.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { askedNow, endingNow, NOT_NEEDED, pendingNow } from "./needed.ts";
import type { Deliver } from "./notifications.ts";
import { post, type PostDeps } from "./post.ts";
import { alertOf, isCredentialRequested } from "../core/notification-events.ts";

interface MessageNeeds extends PostDeps {
  readonly historyOf: (action: Action) => Promise<DecisionHistory>;
}

interface Message {
  readonly channel: Channel;
  readonly body: string;
  readonly isSigned: boolean;
}

/**
 * Builds each message when it is sent, from the action or credential as it is then, and posts it. A message is sent only while
 * the action awaits its decision, the alert about a credential is up to date, or the request for one is pending.
 */
export function createMessage({ clock, config, store }: AppContext, needs: MessageNeeds): Deliver {
  const { channels, credentials, credentialRequests } = store;
  const { baseUrl } = config;
  const timeoutMsMax = Math.min(config.attemptTimeoutMs, MESSAGE_TIMEOUT_MS);

  /** The question whether to approve an action; null if nobody must be asked any more. */
  const question = async (notification: Notification, at: Date): Promise<Message | null> => {
    const asked = await askedNow(store, notification);
    if (asked === null) return null;
    const { ask, channel } = asked;
    if (channel.kind === "mail") return null;
    const action = await see(asked.action, "public");
    const told = { ask, at, action, history: await needs.historyOf(asked.action), baseUrl };
    const { isSigned, question: bodyOf } = MESSAGE_FORMATS[channel.kind];
    return { channel, body: bodyOf(told), isSigned };
  };

  /** The notice of a credential that expires, or of a request for one. Null: it is out of date. */
  const notice = async (notification: Notification, at: Date): Promise<Message | null> => {
    const { accountId, message } = notification;
    const channel = await channels.find(accountId, message.target);
    if (channel === null || !channel.enabled || channel.kind === "mail") return null;
    const { isSigned, notice: bodyOf } = MESSAGE_FORMATS[channel.kind];
    const alert = alertOf(message.event);
    if (alert === null) {
      const request = await pendingNow(credentialRequests, notification, at);
      return request && { channel, body: bodyOf(requestNotice(request, baseUrl), at), isSigned };
    }
    const credential = await endingNow(credentials, notification, alert, at);
    return credential && { channel, body: bodyOf(credentialNotice(credential, alert, baseUrl), at), isSigned };
  };

  return async (notification, stop) => {
    const { event } = notification.message;
    const isNotice = isCredentialRequested(event) || alertOf(event) !== null;
    const message = await (isNotice ? notice : question)(notification, clock.now());
    if (message === null) return NOT_NEEDED;
    const { channel, body, isSigned } = message;
    const { accountId, url } = channel;
    if (url === null) return UNREADABLE;
    return post(clock, needs, notification, { accountId, url, body, isSigned }, { timeoutMsMax, stop, keepFor: null });
  };
}

const UNREADABLE: DeliveryResult = {
  kind: "withheld",
  error: "No message was sent: where the channel goes can't be read. Set its URL again.",
};
