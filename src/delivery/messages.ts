import type { Action, Creator } from "../core/action.ts";
import { isHeldIn } from "../core/changes.ts";
import type { Channel } from "../core/channel.ts";
import { type Credential, type CredentialRequest, statusOfRequest } from "../core/credential.ts";
import type { DeliveryResult, Notification } from "../core/notification.ts";
import {
  type AskKind,
  parseAsk,
  type CredentialAlert,
  parseAlert,
  isCredentialRequested,
} from "../core/notification-events.ts";
import type { Store } from "../core/store.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import { createMakeLinks, decidableUntil } from "../approvals/links.ts";
import type { Recipients } from "../approvals/recipients.ts";
import {
  APPROVAL_LINK_MS,
  MAILS_PER_ACCOUNT_MAX,
  MAILS_PER_RECIPIENT_MAX,
  PEOPLE_PER_ACCOUNT_MAX,
  MESSAGE_TIMEOUT_MS,
} from "../core/limits.ts";
import { isByManager } from "../core/account-store.ts";
import { attemptMs } from "../core/outcome.ts";
import { mayDo } from "../core/roles.ts";
import { invitationLink } from "../core/team-store.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import type { Secrets } from "../crypto/secrets.ts";
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
import { see } from "../receipts/see.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { Deliver } from "./notifications.ts";
import { credentialNotice, MESSAGE_FORMATS, requestNotice } from "../mail/chat-messages.ts";
import { post, type PostDeps } from "./callbacks.ts";

// What a mail or message is about, read when it is sent: null if nobody needs it any more.

const NOT_NEEDED: DeliveryResult = { kind: "needless" };

/** A channel's question about an action that still awaits its decision. */
interface Asked {
  readonly ask: AskKind;
  readonly channel: Channel;
  readonly action: Action;
}

/** What a notification asks its channel. Null: the action was decided, or the channel was removed or switched off. */
async function askedNow(
  { actions, channels }: Pick<Store, "actions" | "channels">,
  { accountId, actionId, run, message }: Notification,
): Promise<Asked | null> {
  const asked = parseAsk(message.event);
  if (asked === null) return null;
  const channel = await channels.find(accountId, asked.channelId);
  if (channel === null || !channel.enabled) return null;
  const action = await actions.find(accountId, actionId);
  return action !== null && isHeldIn(action, run) ? { ask: asked.kind, channel, action } : null;
}

/** The credential that an alert is about. Null: it is gone or off, its end was changed, or a later alert is due. */
async function endingNow(
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
async function pendingNow(
  credentialRequests: Store["credentialRequests"],
  { accountId, actionId: id }: Notification,
  now: Date,
): Promise<CredentialRequest | null> {
  const request = await credentialRequests.find(accountId, id);
  return request !== null && statusOfRequest(request, now) === "pending" ? request : null;
}

interface MailNeeds {
  /** Null: no provider is configured. */
  readonly mailer: Mailer | null;
  readonly secrets: Secrets;
  readonly recipients: Pick<Recipients, "mayMail">;
  readonly readHistory: (action: Action) => Promise<DecisionHistory>;
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
  const { mailer, secrets, recipients, readHistory, receiptPath } = needs;
  const { actions, credentials, credentialRequests, outbox, people, team } = store;
  const { baseUrl, approvalLinks, approvalTtlHours, attemptTimeoutMs } = config;
  const makeLinks = createMakeLinks(store.links, secrets, baseUrl);
  const receiptLink = (actionId: string) => baseUrl + receiptPath(actionId);

  /** The mail of a channel, without links that decide. Checks the recipient again, who may have left meanwhile. */
  const questionMail = async (notification: Notification): Promise<MailNow> => {
    const asked = await askedNow(store, notification);
    const { target: to } = notification.message;
    if (asked === null || !asked.channel.to.includes(to)) return null;
    if (mailer === null) return NO_MAILER;
    const { ask: event, channel } = asked;
    if (!(await recipients.mayMail(asked.action.accountId, OWNER, to))) return NOT_AN_APPROVER;
    const [action, history] = await Promise.all([see(asked.action, "mail"), readHistory(asked.action)]);
    const { name: account } = await people.findLabel(asked.action.accountId);
    return channelMessage({
      event,
      to,
      action,
      run: notification.run,
      history,
      account,
      baseUrl,
      channel: channel.name,
    });
  };

  /** Null: the invitation was accepted or withdrawn, is void, or has expired. */
  const invitationMail = async ({ actionId: id, message: { target: to } }: Notification): Promise<MailNow> => {
    const now = clock.now();
    const invitation = await team.invitation({ id }, now);
    if (invitation === null || !isByManager(invitation, await team.managers(invitation.accountId, now))) return null;
    const account = await people.findLabel(invitation.accountId);
    return invitationMessage({ to, invitation, link: invitationLink(baseUrl, secrets.invitationToken(id)), account });
  };

  /** Null: the alert is out of date, or the recipient no longer owns the account. */
  const alertMail = async (notification: Notification, alert: CredentialAlert): Promise<MailNow> => {
    const credential = await endingNow(credentials, notification, alert, clock.now());
    if (credential === null || !(await isToOwner(notification))) return null;
    const { accountId, message } = notification;
    const account = await people.findLabel(accountId);
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
    const kept = await makeLinks(action, now);
    // By a change of who may approve, or because mails could not be sent for so long.
    if (kept.expiresAt <= now) return LINKS_ENDED;
    const links = { ...kept, expiresAt: decidableUntil(kept.expiresAt, action, approvalTtlHours) };
    const [shown, history] = await Promise.all([see(action, "mail"), readHistory(action)]);
    const { name: account } = await people.findLabel(action.accountId);
    const receiptUrl = receiptLink(action.id);
    const mail = { to: message.target, action: shown, run, links, receiptUrl, history, account, baseUrl };
    return approvalMessage(mail, approvalLinks);
  };

  const decisionMail = async ({ message, run }: Notification, action: Action): Promise<MailNow> => {
    const entries = (await actions.timeline(action.accountId, action.id)).filter((entry) => entry.run === run);
    const [decided] = entries.flatMap(({ at, event }) => {
      const decision = MAILED_DECISIONS[event.type];
      return decision === undefined || !("actor" in event) ? [] : [{ ...event, decision, at }];
    });
    if (decided === undefined || !entries.some(isDeliveredRequest)) return null;
    const link = await store.links.find({ actionId: action.id, run, decision: "approve" });
    const heldAt = entries.find(({ event }) => event.type === "held")?.at;
    // They were ended before their time: the person lost the right to approve.
    if (link !== null && heldAt !== undefined && link.expiresAt.getTime() < heldAt.getTime() + APPROVAL_LINK_MS)
      return LINKS_ENDED;
    const { decision, actor, reason = null, at } = decided;
    const [shown, receiptUrl] = [await see(action, "mail"), receiptLink(action.id)];
    return decisionMessage({ to: message.target, action: shown, run, receiptUrl, decision, actor, reason, at });
  };

  const mailNow = async (notification: Notification): Promise<MailNow> => {
    const { event } = notification.message;
    const alert = parseAlert(event);
    if (parseAsk(event) !== null) return questionMail(notification);
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
    if (mailer === null && parseAsk(event) === null) return event === "decided" ? NOT_NEEDED : NO_MAILER;
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

function isDeliveredRequest({ event }: TimelineEntry): boolean {
  return event.type === "mail" && event.event === "approval" && event.delivered;
}

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

interface MessageNeeds extends PostDeps {
  readonly readHistory: (action: Action) => Promise<DecisionHistory>;
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
  const { channels, credentials, credentialRequests, people } = store;
  const { baseUrl } = config;
  const timeoutMsMax = Math.min(config.attemptTimeoutMs, MESSAGE_TIMEOUT_MS);

  /** The question whether to approve an action; null if nobody must be asked any more. */
  const question = async (notification: Notification, at: Date): Promise<Message | null> => {
    const asked = await askedNow(store, notification);
    if (asked === null) return null;
    const { ask, channel } = asked;
    if (channel.kind === "mail") return null;
    const action = await see(asked.action, "public");
    const { name: account } = await people.findLabel(channel.accountId);
    const history = await needs.readHistory(asked.action);
    const { isSigned, question: writeQuestion } = MESSAGE_FORMATS[channel.kind];
    return { channel, body: writeQuestion({ ask, at, action, history, account, baseUrl }), isSigned };
  };

  /** The notice of a credential that expires, or of a request for one. Null: it is out of date. */
  const notice = async (notification: Notification, at: Date): Promise<Message | null> => {
    const { accountId, message } = notification;
    const channel = await channels.find(accountId, message.target);
    if (channel === null || !channel.enabled || channel.kind === "mail") return null;
    const { isSigned, notice: writeNotice } = MESSAGE_FORMATS[channel.kind];
    const alert = parseAlert(message.event);
    if (alert === null) {
      const request = await pendingNow(credentialRequests, notification, at);
      return request && { channel, body: writeNotice(requestNotice(request, baseUrl), at), isSigned };
    }
    const credential = await endingNow(credentials, notification, alert, at);
    return credential && { channel, body: writeNotice(credentialNotice(credential, alert, baseUrl), at), isSigned };
  };

  return async (notification, stop) => {
    const { event } = notification.message;
    const isNotice = isCredentialRequested(event) || parseAlert(event) !== null;
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
