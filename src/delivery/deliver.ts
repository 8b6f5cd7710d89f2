import { USER_AGENT } from "../config/config.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import { createLinksOf, decidableUntil } from "../approvals/links.ts";
import type { Recipients } from "../approvals/recipients.ts";
import type { Action, Creator } from "../core/action.ts";
import { isHeldIn } from "../core/changes.ts";
import type { Channel } from "../core/channel.ts";
import type { Clock } from "../core/clock.ts";
import { type Credential, type CredentialRequest, statusOfRequest } from "../core/credential.ts";
import {
  MAILS_PER_ACCOUNT_MAX,
  MAILS_PER_RECIPIENT_MAX,
  MESSAGE_TIMEOUT_MS,
  NOTIFY_DELAYS_MS,
  PEOPLE_PER_ACCOUNT_MAX,
} from "../core/limits.ts";
import { isByManager } from "../core/makers.ts";
import type { DeliveryResult, Notification } from "../core/notification.ts";
import {
  attemptMs,
  describeOutcome,
  type Fault,
  isPolicyRefusal,
  isSuccess,
  isWithoutFile,
  type Outcome,
} from "../core/outcome.ts";
import { mayDo } from "../core/roles.ts";
import { type Store, StoreUnavailable } from "../core/store.ts";
import { invitationLink } from "../core/team-store.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import { type Secrets, UnreadableSecret } from "../crypto/secrets.ts";
import { type Mailer, NO_MAILER } from "../mail/mailer.ts";
import {
  approvalMessage,
  channelMessage,
  credentialMessage,
  credentialRequestMessage,
  type DecidedMail,
  decisionMessage,
  invitationMessage,
  type Mail,
} from "../mail/messages.ts";
import type { OutboundRequest, Sender } from "../outbound/sender.ts";
import { see } from "../receipts/see.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { Header, SignedHeaders } from "./attempt.ts";
import type { CallRates } from "./call-rates.ts";
import { retryAfterMs } from "../core/retry.ts";
import {
  type AskKind,
  askOf,
  alertOf,
  type CredentialAlert,
  isCredentialRequested,
} from "../core/notification-events.ts";

/** Makes one attempt to deliver a notification. Rejects only when the store is unavailable; then nothing was sent. */
export type Deliver = (notification: Notification, stop: AbortSignal) => Promise<DeliveryResult>;

/** What is needed to post a text to a callback or channel. */
export interface PostDeps {
  readonly sender: Sender;
  readonly signedHeaders: SignedHeaders;
}

/** A text to post. */
interface Post {
  readonly accountId: string;
  readonly url: string;
  /** `webhook-id`: the same for all attempts. */
  readonly id: string;
  readonly body: string;
  /** With the account's secret for callbacks. */
  readonly isSigned: boolean;
}

/** The request that posts a text. */
async function postRequest(
  { signedHeaders }: Pick<PostDeps, "signedHeaders">,
  { isSigned, ...text }: Post,
  now: Date,
): Promise<OutboundRequest> {
  const signed = isSigned ? await signedHeaders(text, now) : [];
  const { url, body } = text;
  return {
    url,
    method: "POST",
    headers: [["User-Agent", USER_AGENT], ["Content-Type", "application/json"], ...signed],
    body,
  };
}

export type AlterHeaders = (headers: readonly Header[]) => readonly Header[];

/** Posts a text at once, for somebody who waits for the result. */
export async function postNow(
  { clock, ids }: Pick<AppContext, "clock" | "ids">,
  needs: PostDeps,
  text: Omit<Post, "id">,
  alter: AlterHeaders = (headers) => headers,
): Promise<Outcome> {
  const now = clock.now();
  const request = await postRequest(needs, { ...text, id: `test_${ids.row(now)}` }, now).catch(deliveryFault);
  if (typeof request === "string") return { kind: "not_sent", fault: request };
  const sent = { ...request, headers: alter(request.headers) };
  const outcome = await needs.sender.send(sent, { timeoutMs: MESSAGE_TIMEOUT_MS });
  return outcome.kind === "stopped" ? { kind: "unknown", fault: "interrupted" } : outcome;
}

interface PostLimits {
  readonly timeoutMax: number;
  readonly stop: AbortSignal;
  /** See `SendLimits`. */
  readonly keepFor: string | null;
  /** Whether the rate of its host lets it leave; resolves when it may. */
  readonly mayBegin?: () => boolean | Promise<boolean>;
}

/** Posts a text within what is left of the claim's time. */
export async function post(
  clock: Clock,
  needs: PostDeps,
  notification: Notification,
  text: Omit<Post, "id">,
  { timeoutMax, stop, keepFor, mayBegin = () => true }: PostLimits,
): Promise<DeliveryResult> {
  const now = clock.now();
  const request = await postRequest(needs, { ...text, id: notification.id }, now).catch(deliveryFault);
  if (typeof request === "string") return deliveryOf({ kind: "not_sent", fault: request }, now, timeoutMax);
  const timeoutMs = attemptMs(notification, clock.now(), timeoutMax);
  if (timeoutMs === 0) return { kind: "not_started", why: "late" };
  let why: "stopping" | "rated" = "stopping";
  const outcome = await needs.sender.send(request, {
    timeoutMs,
    stop,
    keepFor,
    async mayBegin() {
      const isLate = !(await mayBegin());
      if (isLate) why = "rated";
      return !isLate;
    },
  });
  if (outcome.kind === "stopped") return { kind: "not_started", why };
  return deliveryOf(outcome, clock.now(), timeoutMs);
}

/** Why nothing is sent. Rethrows the error if the store is unavailable. */
function deliveryFault(error: unknown): Fault {
  if (error instanceof StoreUnavailable) throw error;
  // An unreadable secret is retried, because a rotation can replace it. Any other error means that the row was altered.
  return error instanceof UnreadableSecret ? "unsignable" : "altered";
}

/** What the outcome of a POST means for a callback or message. */
export function deliveryOf(outcome: Outcome, now: Date, timeoutMs: number): DeliveryResult {
  if (isSuccess(outcome, "POST")) return { kind: "delivered" };
  if (isWithoutFile(outcome)) return { kind: "not_started", why: "no_file" };
  const error = describeOutcome(outcome, timeoutMs);
  if (isPolicyRefusal(outcome)) return { kind: "refused", error };
  if (outcome.kind !== "answered" && outcome.fault === "interrupted") return { kind: "interrupted", error };
  const notBeforeMs = outcome.kind === "answered" ? retryAfterMs(outcome.retryAfter, now) : null;
  return { kind: "failed", error, notBeforeMs };
}

interface CallbackNeeds extends PostDeps {
  readonly rates: Pick<CallRates, "turnOf">;
  readonly recipients: Pick<Recipients, "mayCallBack">;
}

/** Posts the body that was stored with the change, signed with the account's secret for callbacks. */
export function createCallback({ clock, config, store }: AppContext, needs: CallbackNeeds): Deliver {
  const { outbox } = store;
  const timeoutMax = config.attemptTimeoutMs;
  const altered = () => deliveryOf({ kind: "not_sent", fault: "altered" }, clock.now(), timeoutMax);
  return async (notification, stop) => {
    const { id, accountId, attempts } = notification;
    const { target: url } = notification.message;
    // Read only now, so that rows that wait for a slot don't hold a megabyte each.
    const body = await outbox.payload(id);
    // The row was altered: a retry would not help.
    if (body === null || !URL.canParse(url)) return altered();
    const creator = await outbox.creatorOf(id);
    if (creator === null) return altered();
    // Checked at every attempt, since hosts can be removed from the list.
    if (!(await needs.recipients.mayCallBack(accountId, creator, url))) return NOT_LISTED;
    // As for actions, not at the last attempt. The receiver detects a repeat by its `webhook-id`.
    const keepFor = attempts <= NOTIFY_DELAYS_MS.length ? accountId : null;
    const mayBegin = needs.rates.turnOf(notification, "callbacks");
    return post(
      clock,
      needs,
      notification,
      { accountId, url, body, isSigned: true },
      { timeoutMax, stop, keepFor, mayBegin },
    );
  };
}

const NOT_LISTED: DeliveryResult = {
  kind: "withheld",
  error:
    "No callback was sent: its host is not listed for this account, and callbacks of a key with a hold or a limit, and of agents where the account has rules, go only to listed hosts.",
};

interface MailNeeds {
  /** Null: no provider is configured. */
  readonly mailer: Mailer | null;
  readonly secrets: Secrets;
  readonly recipients: Pick<Recipients, "mayMail">;
  readonly historyOf: (action: Action) => Promise<DecisionHistory>;
  /** Path of an action's receipt page. */
  readonly receiptPath: (actionId: string) => string;
}

/** A mail to send, or why none is sent; null: nobody needs it any more. */
type MailNow = Mail | DeliveryResult | null;

/**
 * Builds each mail when it is sent, so that no link is ever stored. A mail is sent only while it is useful: for example, a
 * request only while it is undecided, and a decision only if the mail that asked for it was delivered.
 */
export function createMail({ clock, config, store }: AppContext, needs: MailNeeds): Deliver {
  const { mailer, secrets, recipients, historyOf, receiptPath } = needs;
  const { actions, credentials, credentialRequests, outbox, people, team } = store;
  const { baseUrl, approvalLinks, approvalTtlHours, attemptTimeoutMs } = config;
  const linksOf = createLinksOf(store.links, secrets, baseUrl);
  const receiptLink = (actionId: string) => baseUrl + receiptPath(actionId);

  /** The mail of a channel, without links that decide. Checks the recipient again, who may have left meanwhile. */
  const questionMail = async (notification: Notification): Promise<MailNow> => {
    const asked = await askedNow(store, notification);
    const { target: to } = notification.message;
    if (asked === null || !asked.channel.to.includes(to)) return null;
    if (mailer === null) return NO_MAILER;
    const { ask: event, channel } = asked;
    if (!(await recipients.mayMail(asked.action.accountId, OWNER, to))) return NOT_AN_APPROVER;
    const [action, history] = await Promise.all([see(asked.action, "mail"), historyOf(asked.action)]);
    return channelMessage({ event, to, action, run: notification.run, history, baseUrl, channel: channel.name });
  };

  /** Null: the invitation was accepted or withdrawn, is void, or has expired. */
  const invitationMail = async ({ actionId: id, message: { target: to } }: Notification): Promise<MailNow> => {
    const now = clock.now();
    const invitation = await team.invitation({ id }, now);
    if (invitation === null || !isByManager(invitation, await team.managers(invitation.accountId, now))) return null;
    const account = await people.labelOf(invitation.accountId);
    return invitationMessage({ to, invitation, link: invitationLink(baseUrl, secrets.invitationToken(id)), account });
  };

  /** Null: the alert is out of date, or the recipient no longer owns the account. */
  const alertMail = async (notification: Notification, alert: CredentialAlert): Promise<MailNow> => {
    const credential = await endingNow(credentials, notification, alert, clock.now());
    if (credential === null || !(await isToOwner(notification))) return null;
    const { accountId, message } = notification;
    const account = await people.labelOf(accountId);
    return credentialMessage({ to: message.target, alert, credential, account, baseUrl });
  };

  /** Null: the request is no longer pending, or the recipient no longer owns the account. */
  const requestMail = async (notification: Notification): Promise<MailNow> => {
    const request = await pendingNow(credentialRequests, notification, clock.now());
    if (request === null || !(await isToOwner(notification))) return null;
    return credentialRequestMessage(notification.message.target, request, baseUrl);
  };

  const isToOwner = async ({ accountId, message }: Notification): Promise<boolean> => {
    const members = await team.members(accountId, PEOPLE_PER_ACCOUNT_MAX);
    return members.some(({ email, role }) => email === message.target && mayDo(role, "manage"));
  };

  const approvalMail = async ({ message, run }: Notification, action: Action): Promise<MailNow> => {
    if (!isHeldIn(action, run)) return DECIDED_BEFORE;
    const now = clock.now();
    const kept = await linksOf(action, now);
    // By a change of who may approve, or because mails could not be sent for so long.
    if (kept.expiresAt <= now) return LINKS_ENDED;
    const links = { ...kept, expiresAt: decidableUntil(kept.expiresAt, action, approvalTtlHours) };
    const [shown, history] = await Promise.all([see(action, "mail"), historyOf(action)]);
    const receiptUrl = receiptLink(action.id);
    const mail = { to: message.target, action: shown, run, links, receiptUrl, history, baseUrl };
    return approvalMessage(mail, approvalLinks);
  };

  const decisionMail = async ({ message, run }: Notification, action: Action): Promise<MailNow> => {
    const entries = (await actions.timeline(action.accountId, action.id)).filter((entry) => entry.run === run);
    const [decided] = entries.flatMap(({ at, event }) => {
      const decision = MAILED_DECISIONS[event.type];
      return decision === undefined || !("actor" in event) ? [] : [{ ...event, decision, at }];
    });
    if (decided === undefined || !entries.some(isDeliveredRequest)) return null;
    const { decision, actor, reason = null, at } = decided;
    const [shown, receiptUrl] = [await see(action, "mail"), receiptLink(action.id)];
    return decisionMessage({ to: message.target, action: shown, run, receiptUrl, decision, actor, reason, at });
  };

  const mailNow = async (notification: Notification): Promise<MailNow> => {
    const { event } = notification.message;
    const alert = alertOf(event);
    if (askOf(event) !== null) return questionMail(notification);
    if (alert !== null) return alertMail(notification, alert);
    if (event === "invited") return invitationMail(notification);
    if (isCredentialRequested(event)) return requestMail(notification);
    const action = await actions.find(notification.accountId, notification.actionId);
    if (action === null) return null;
    const mail = await (event === "approval" ? approvalMail : decisionMail)(notification, action);
    if (mail === null || "kind" in mail) return mail;
    // Checked again here: the recipient may have left the account or APPROVERS meanwhile.
    return (await recipients.mayMail(action.accountId, action.creator, mail.to)) ? mail : NOT_AN_APPROVER;
  };

  return async (notification, stop) => {
    const { event } = notification.message;
    if (mailer === null && askOf(event) === null) return event === "decided" ? NOT_NEEDED : NO_MAILER;
    const mail = await mailNow(notification);
    if (mail === null) return NOT_NEEDED;
    if ("kind" in mail) return mail;
    if (mailer === null) return NO_MAILER;
    if (!(await outbox.permitMail(notification, clock.now()))) return TOO_MANY;
    const timeoutMs = attemptMs(notification, clock.now(), attemptTimeoutMs);
    if (timeoutMs === 0) return { kind: "not_started", why: "late" };
    return mailer.send(mail, { timeoutMs, stop });
  };
}

/** Channels are made by owners. */
const OWNER: Creator = { role: "owner", hold: "none" };

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

function isDeliveredRequest({ event }: TimelineEntry): boolean {
  return event.type === "mail" && event.event === "approval" && event.delivered;
}

export const NOT_NEEDED: DeliveryResult = { kind: "needless" };

const MAILED_DECISIONS: Readonly<Partial<Record<string, DecidedMail["decision"]>>> = {
  approved: "approved",
  rejected: "rejected",
  cancelled: "withdrawn",
};

const NOT_AN_APPROVER: DeliveryResult = {
  kind: "withheld",
  error: "No mail was sent: the address is neither of a person of this account nor one of the APPROVERS.",
};

const LINKS_ENDED: DeliveryResult = {
  kind: "withheld",
  error: "No mail was sent: its links have ended, since the person lost the right to approve or after seven days.",
};

const DECIDED_BEFORE: DeliveryResult = { kind: "withheld", error: "No mail was sent: it was decided before." };

const TOO_MANY: DeliveryResult = {
  kind: "withheld",
  error:
    `No mail was sent: at most ${MAILS_PER_RECIPIENT_MAX} go to one address and ` +
    `${MAILS_PER_ACCOUNT_MAX.toLocaleString("en")} from one account in an hour, ` +
    "and half as many answers and reminders.",
};
