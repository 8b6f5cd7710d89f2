import type { Action } from "../core/action.ts";
import { isHeldIn } from "../core/changes.ts";
import { type Channel, type ChannelStore, type AskKind, askOf } from "../core/channel.ts";
import type { ActionStore } from "../core/store.ts";
import type { Notification } from "../core/notification.ts";

export interface AskedDeps {
  readonly actions: Pick<ActionStore, "find">;
  readonly channels: Pick<ChannelStore, "find">;
}

/** An action that still awaits the decision that a channel is asked for. */
interface Asked {
  readonly ask: AskKind;
  readonly channel: Channel;
  readonly action: Action;
}

/** What a notification to a channel asks now; null: it was decided, or the channel is removed or switched off. */
export async function askedNow(
  { actions, channels }: AskedDeps,
  { accountId, actionId, run, message }: Notification,
): Promise<Asked | null> {
  const asked = askOf(message.event);
  if (asked === null) return null;
  const channel = await channels.find(accountId, asked.channelId);
  if (channel === null || !channel.enabled) return null;
  const action = await actions.find(accountId, actionId);
  return action !== null && isHeldIn(action, run) ? { ask: asked.kind, channel, action } : null;
}
