import { seeWhole } from "./see.ts";
import type { Action, Result } from "../core/action.ts";
import type { Channel } from "../core/channel.ts";
import type { Ids } from "../core/ids.ts";
import { asksFor, notificationsFor } from "../core/notification.ts";
import { type CallbackEvent, notificationHost, type NewNotification } from "../core/notification-events.ts";
import type { OutboxRow } from "../core/store.ts";
import { isTooLate, type TimelineEvent } from "../core/timeline.ts";
import { actionJson, eventJson } from "./action-json.ts";
import { hideEchoes } from "./masking.ts";

/** The outbox rows (callbacks, mails and messages to channels) for a change of an action with these events. */
export type Enqueue = (action: Action, at: Date, events: readonly TimelineEvent[]) => readonly OutboxRow[];

/** Creates the outbox rows. A callback's body is rendered at the change; a mail or message when it is sent. */
export function createEnqueue(
  ids: Pick<Ids, "row">,
  receiptUrl: (actionId: string) => string,
  findChannels: (accountId: string) => readonly Channel[],
): Enqueue {
  return (action, at, events) => {
    const outboxRow = (message: NewNotification): OutboxRow => ({
      id: ids.row(at),
      message,
      host: notificationHost(message),
      payload: message.kind === "callback" ? callbackJson(message.event, action, at, receiptUrl(action.id)) : null,
    });
    const rows = notificationsFor(action, events).map(outboxRow);
    if (action.status !== "awaiting_approval" || events.some(isTooLate)) return rows;
    const asks = asksFor(action, findChannels(action.accountId)).map(({ message, afterMs }) => ({
      ...outboxRow(message),
      ...(afterMs > 0 && { dueAt: new Date(at.getTime() + afterMs) }),
    }));
    return [...rows, ...asks];
  };
}

/** The body of a callback, which goes where the creator said: the whole action, but with header values masked. */
export function callbackJson(event: CallbackEvent, action: Action, at: Date, receiptUrl: string): string {
  const { headers, result, lateResult } = action;
  const whole = { ...action, result: withoutEchoes(result, headers), lateResult: withoutEchoes(lateResult, headers) };
  return eventJson(event, at, actionJson(seeWhole(whole), { now: at, receiptUrl, hidesHeaderValues: true }));
}

/** Hides secrets that a target repeats in its answer, such as `Invalid key: …`. */
function withoutEchoes<Answer extends Pick<Result, "responseBody">>(answer: Answer | null, headers: Action["headers"]) {
  if (answer === null || answer.responseBody === null) return answer;
  return { ...answer, responseBody: hideEchoes(answer.responseBody, headers) };
}
