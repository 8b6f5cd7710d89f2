import type { Action } from "../core/action.ts";
import { isHeldIn } from "../core/changes.ts";
import type { Channel } from "../core/channel.ts";
import { type Credential, type CredentialRequest, statusOfRequest } from "../core/credential.ts";
import type { DeliveryResult, Notification } from "../core/notification.ts";
import { type AskKind, askOf, type CredentialAlert } from "../core/notification-events.ts";
import type { Store } from "../core/store.ts";

// What a mail or message is about, read when it is sent: null if nobody needs it any more.

export const NOT_NEEDED: DeliveryResult = { kind: "needless" };

/** A channel's question about an action that still awaits its decision. */
interface Asked {
  readonly ask: AskKind;
  readonly channel: Channel;
  readonly action: Action;
}

/** What a notification asks its channel. Null: the action was decided, or the channel was removed or switched off. */
export async function askedNow(
  { actions, channels }: Pick<Store, "actions" | "channels">,
  { accountId, actionId, run, message }: Notification,
): Promise<Asked | null> {
  const asked = askOf(message.event);
  if (asked === null) return null;
  const channel = await channels.find(accountId, asked.channelId);
  if (channel === null || !channel.enabled) return null;
  const action = await actions.find(accountId, actionId);
  return action !== null && isHeldIn(action, run) ? { ask: asked.kind, channel, action } : null;
}

/** The credential that an alert is about. Null: it is gone or off, its end was changed, or a later alert is due. */
export async function endingNow(
  credentials: Store["credentials"],
  { accountId, actionId: id }: Notification,
  { stage, expiresAt }: CredentialAlert,
  now: Date,
): Promise<Credential | null> {
  const credential = await credentials.find(accountId, id);
  if (credential === null || !credential.enabled) return null;
  if (credential.expiresAt?.getTime() !== expiresAt.getTime()) return null;
  return expiresAt <= now === (stage === "expired") ? credential : null;
}

/** The credential request that a notification is about. Null: it is no longer pending. */
export async function pendingNow(
  credentialRequests: Store["credentialRequests"],
  { accountId, actionId: id }: Notification,
  now: Date,
): Promise<CredentialRequest | null> {
  const request = await credentialRequests.find(accountId, id);
  return request !== null && statusOfRequest(request, now) === "pending" ? request : null;
}
