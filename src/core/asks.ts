import type { Action } from "./action.ts";
import type { Channel } from "./channel.ts";
import type { NewNotification } from "./notification.ts";

/** What channels are told of an action: that it awaits approval, and once that it still does. */
const ASKS = ["requested", "reminded"] as const;

export type AskKind = (typeof ASKS)[number];

/**
 * The event of a notification to a channel, with the channel's id; of a mail also the place of its address. A row of the outbox
 * is unique by action, revision, kind and event.
 */
export type AskEvent = `${AskKind}:${string}`;

export interface Ask {
  readonly kind: AskKind;
  readonly channelId: string;
}

/** What an event asks; null: it is not for a channel. */
export function askOf(event: string): Ask | null {
  const [word, channelId = ""] = event.split(":");
  const kind = ASKS.find((ask) => ask === word);
  return kind === undefined || channelId === "" ? null : { kind, channelId };
}

/** A notification for a channel, and after how long it is due. */
interface DueAsk {
  readonly message: NewNotification;
  readonly afterMs: number;
}

/** The notifications that channels get when an action begins to await approval: each is asked at once, and perhaps later again. */
export function asksFor({ status }: Pick<Action, "status">, channels: readonly Channel[]): readonly DueAsk[] {
  if (status !== "awaiting_approval" || channels.length === 0) return NO_ASKS;
  return channels.filter(({ enabled }) => enabled).flatMap(asksOf);
}

const NO_ASKS: readonly DueAsk[] = [];

function asksOf(channel: Channel): readonly DueAsk[] {
  const { remindAfterMinutes } = channel;
  const first = messagesTo(channel, "requested").map((message) => ({ message, afterMs: 0 }));
  if (remindAfterMinutes === null) return first;
  const afterMs = remindAfterMinutes * 60_000;
  return [...first, ...messagesTo(channel, "reminded").map((message) => ({ message, afterMs }))];
}

function messagesTo({ id, kind, to }: Channel, ask: AskKind): readonly NewNotification[] {
  if (kind !== "mail") return [{ kind: "message", event: `${ask}:${id}`, target: id }];
  return to.map((target, at) => ({ kind: "mail", event: `${ask}:${id}:${at}`, target }));
}
