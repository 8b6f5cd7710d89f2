import { type Delivery, isCredentialRequested, type Notification } from "../core/notification.ts";
import { attemptMs, describeOutcome, type Fault, isPolicyRefusal, isSuccess, type Outcome } from "../core/outcome.ts";
import { retryAfterMs } from "../core/retry-settings.ts";
import type { Clock } from "../core/clock.ts";
import type { Recipients } from "../approvals/recipients.ts";
import { type Secrets, UnreadableSecret } from "../crypto/secrets.ts";
import type { OutboundRequest, Sender } from "../outbound/deadline.ts";
import { type OutboxStore, StoreUnavailable, type ActionStore } from "../core/store.ts";
import { type ChannelStore, askOf } from "../core/channel.ts";
import type { Credential, CredentialStore } from "../core/credential.ts";
import { alertOf, type CredentialAlert } from "../core/credential-alert.ts";
import { askedNow } from "./asked.ts";
import type { SignedHeaders } from "./attempt.ts";
import type { Action, Creator } from "../core/action.ts";
import { type CredentialRequest, type CredentialRequestStore, statusOfRequest } from "../core/credential-request.ts";
import { isHeldIn } from "../core/changes.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import {
  APPROVAL_LINK_MS,
  MAILS_PER_ACCOUNT_MAX,
  MAILS_PER_RECIPIENT_MAX,
  HOUR_MS,
  NOTIFY_DELAYS_MS,
  PEOPLE_PER_ACCOUNT_MAX,
} from "../core/limits.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import type { Mailer } from "../mail/mailer.ts";
import type {
  ApprovalMail,
  CredentialMail,
  CredentialRequestMail,
  DecidedMail,
  InvitedMail,
  OutgoingMail,
} from "../mail/messages.ts";
import { isByManager } from "../core/makers.ts";
import { mayDo } from "../core/roles.ts";
import type { PeopleStore } from "../core/account-store.ts";
import { type TeamStore, invitationLink } from "../core/team-store.ts";

interface CallbackDeps {
  readonly outbox: Pick<OutboxStore, "payload" | "creatorOf">;
  readonly recipients: Pick<Recipients, "mayCallBack">;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly signedHeaders: SignedHeaders;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
  readonly attemptTimeoutMs: number;
}

/** Makes one attempt to deliver a notification. Rejects only when the store is away, and then nothing was sent. */
export type Deliver = (notification: Notification, stop: AbortSignal) => Promise<Delivery>;

/** Posts the body that was stored with the change, signed as actions are. The target is checked at every attempt. */
export function createCallback(deps: CallbackDeps): Deliver {
  const { outbox, recipients, sender, clock, signedHeaders, userAgent, attemptTimeoutMs } = deps;
  const unsent = (fault: Fault) => deliveryOf({ kind: "not_sent", fault }, clock.now(), attemptTimeoutMs);
  return async (notification, stop) => {
    const { id, accountId } = notification;
    const { target } = notification.message;
    // Read only now, so that rows which wait for a slot don't hold a megabyte each.
    const body = await outbox.payload(id);
    // The row was altered: a retry would not help.
    if (body === null || !URL.canParse(target)) return unsent("altered");
    const creator = await outbox.creatorOf(id);
    if (creator === null) return unsent("altered");
    // Checked at every attempt, since hosts can be removed from the list.
    if (!(await recipients.mayCallBack(accountId, creator, target))) return NOT_LISTED;
    const signed = await signedHeaders({ accountId, url: target, id, body }, clock.now()).catch(faultOf);
    if (typeof signed === "string") return unsent(signed);
    const request: OutboundRequest = {
      url: target,
      method: "POST",
      headers: [["User-Agent", userAgent], ["Content-Type", "application/json"], ...signed],
      body,
    };
    const timeoutMs = attemptMs(notification, clock.now(), attemptTimeoutMs);
    if (timeoutMs === 0) return { kind: "not_started", why: "late" };
    // As for actions: not at the last attempt. The receiver detects a repeat by its `webhook-id`.
    const keepFor = notification.attempts <= NOTIFY_DELAYS_MS.length ? accountId : null;
    const outcome = await sender.send(request, { timeoutMs, stop, keepFor });
    if (outcome.kind === "stopped") return { kind: "not_started", why: "stopping" };
    return deliveryOf(outcome, clock.now(), timeoutMs);
  };
}

const NOT_LISTED: Delivery = {
  kind: "withheld",
  error:
    "No callback was sent: its host is not listed for this account, and callbacks of a key with a hold or a limit go only to listed hosts.",
};

/** Why nothing is sent. Rethrows when the store is away. */
export function faultOf(error: unknown): Fault {
  if (error instanceof StoreUnavailable) throw error;
  // A rotation can replace an unreadable secret before the callback is given up. Otherwise the row was altered and its
  // account is gone.
  return error instanceof UnreadableSecret ? "unsignable" : "altered";
}

/** What the outcome of a POST means for a callback or message. */
export function deliveryOf(outcome: Outcome, now: Date, timeoutMs: number): Delivery {
  if (isSuccess(outcome, "POST")) return { kind: "delivered" };
  const error = describeOutcome(outcome, timeoutMs);
  if (isPolicyRefusal(outcome)) return { kind: "refused", error };
  if (outcome.kind !== "answered" && outcome.fault === "interrupted") return { kind: "interrupted", error };
  return {
    kind: "failed",
    error,
    notBeforeMs: outcome.kind === "answered" ? retryAfterMs(outcome.retryAfter, now) : null,
  };
}

interface MailDeps {
  readonly channels: Pick<ChannelStore, "find">;
  readonly actions: Pick<ActionStore, "find" | "timeline">;
  readonly outbox: Pick<OutboxStore, "permitMail">;
  readonly clock: Clock;
  /** Null: no provider is configured. */
  readonly mailer: Mailer | null;
  readonly linksOf: (action: Action, now: Date) => Promise<ApprovalMail["links"]>;
  /** Hours after which a held action is cancelled; null: never. */
  readonly approvalTtlHours: number | null;
  /** The whole URL of an action's receipt. */
  readonly receiptLink: (actionId: string) => string;
  readonly historyOf: (action: Action) => Promise<DecisionHistory>;
  /** Where people reach the pages, without a trailing slash. */
  readonly baseUrl: string;
  readonly attemptTimeoutMs: number;
  readonly recipients: Pick<Recipients, "mayMail">;
  readonly team: Pick<TeamStore, "invitation" | "managers" | "members">;
  readonly credentials: Pick<CredentialStore, "find">;
  readonly credentialRequests: Pick<CredentialRequestStore, "find">;
  readonly people: Pick<PeopleStore, "labelOf">;
  readonly secrets: Pick<Secrets, "invitationToken">;
}

/**
 * Builds the mail when it is sent, so that no link is ever stored. It is sent only while it is still useful: a request
 * that is still undecided, or the decision on a request whose mail was delivered.
 */
export function createMail(deps: MailDeps): Deliver {
  const { actions, mailer, recipients } = deps;
  return async (notification, stop) => {
    if (askOf(notification.message.event) !== null) return channelMail(deps, notification, stop);
    if (mailer === null) return notification.message.event === "decided" ? NOT_NEEDED : NOT_CONFIGURED;
    const alert = alertOf(notification.message.event);
    if (alert !== null) {
      const mail = await alertMail(deps, notification, alert);
      return mail === null ? NOT_NEEDED : sendMail({ ...deps, mailer }, notification, mail, stop);
    }
    if (notification.message.event === "invited") {
      const mail = await invitedOf(deps, notification);
      return mail === null ? NOT_NEEDED : sendMail({ ...deps, mailer }, notification, mail, stop);
    }
    if (isCredentialRequested(notification.message.event)) {
      const mail = await requestedOf(deps, notification);
      return mail === null ? NOT_NEEDED : sendMail({ ...deps, mailer }, notification, mail, stop);
    }
    const action = await actions.find(notification.accountId, notification.actionId);
    if (action === null) return NOT_NEEDED;
    const mailOf = notification.message.event === "approval" ? approvalOf : decidedOf;
    const mail = await mailOf(deps, notification, action);
    if ("kind" in mail) return mail;
    // Checked again here: the recipient may have left the account or APPROVERS since.
    if (!(await recipients.mayMail(action.accountId, action.creator, mail.to))) return NOT_AN_APPROVER;
    return sendMail({ ...deps, mailer }, notification, mail, stop);
  };
}

async function sendMail(
  {
    outbox,
    clock,
    attemptTimeoutMs,
    mailer,
  }: Pick<MailDeps, "outbox" | "clock" | "attemptTimeoutMs"> & { mailer: Mailer },
  notification: Notification,
  mail: OutgoingMail,
  stop: AbortSignal,
): Promise<Delivery> {
  if (!(await outbox.permitMail(notification, clock.now()))) return TOO_MANY;
  const timeoutMs = attemptMs(notification, clock.now(), attemptTimeoutMs);
  if (timeoutMs === 0) return { kind: "not_started", why: "late" };
  return mailer.send(mail, { timeoutMs, stop });
}

/** The mail of a channel: it has no links that decide. Checked again here: the recipient may have left since. */
async function channelMail(deps: MailDeps, notification: Notification, stop: AbortSignal): Promise<Delivery> {
  const { mailer, recipients, historyOf, baseUrl } = deps;
  const asked = await askedNow(deps, notification);
  const { target: to } = notification.message;
  if (asked === null || !asked.channel.to.includes(to)) return NOT_NEEDED;
  if (mailer === null) return NOT_CONFIGURED;
  const { ask: event, action, channel } = asked;
  if (!(await recipients.mayMail(action.accountId, OWNER, to))) return NOT_AN_APPROVER;
  const [run, history] = [notification.run, await historyOf(action)];
  const mail = { event, to, action, run, history, baseUrl, channel: channel.name };
  return sendMail({ ...deps, mailer }, notification, mail, stop);
}

/** Channels are made by owners. */
const OWNER: Creator = { role: "owner", hold: "none" };

/** Null: it was accepted or withdrawn, is void, or is over. */
async function invitedOf(
  { team, people, secrets, baseUrl, clock }: MailDeps,
  { actionId: id, message }: Notification,
): Promise<InvitedMail | null> {
  const now = clock.now();
  const invitation = await team.invitation({ id }, now);
  if (invitation === null || !isByManager(invitation, await team.managers(invitation.accountId, now))) return null;
  const account = await people.labelOf(invitation.accountId);
  const link = invitationLink(baseUrl, secrets.invitationToken(id));
  return { event: "invited", to: message.target, invitation, link, account };
}

/** Null: the end was told already by another alert, or was changed, or they own the account no longer. */
async function alertMail(
  { credentials, team, people, baseUrl, clock }: MailDeps,
  { accountId, actionId, message: { target: to } }: Notification,
  alert: CredentialAlert,
): Promise<CredentialMail | null> {
  const credential = await endingNow(credentials, { accountId, id: actionId }, alert, clock.now());
  if (credential === null) return null;
  const owners = (await team.members(accountId, PEOPLE_PER_ACCOUNT_MAX)).filter(({ role }) => role === "owner");
  if (!owners.some(({ email }) => email === to)) return null;
  return { event: "credential", to, ...alert, credential, account: await people.labelOf(accountId), baseUrl };
}

/** The credential whose end is told; null: it is over, was changed, or is told by the next alert. */
export async function endingNow(
  credentials: Pick<CredentialStore, "find">,
  { accountId, id }: { readonly accountId: string; readonly id: string },
  { stage, expiresAt }: CredentialAlert,
  now: Date,
): Promise<Credential | null> {
  const credential = await credentials.find(accountId, id);
  if (credential === null || !credential.enabled) return null;
  if (credential.expiresAt?.getTime() !== expiresAt.getTime()) return null;
  return expiresAt <= now === (stage === "expired") ? credential : null;
}

/** The request that still waits for an answer; null: it is over. */
export async function pendingNow(
  credentialRequests: Pick<CredentialRequestStore, "find">,
  { accountId, actionId: id }: Notification,
  now: Date,
): Promise<CredentialRequest | null> {
  const request = await credentialRequests.find(accountId, id);
  return request !== null && statusOfRequest(request, now) === "pending" ? request : null;
}

/** Null: it is over, or the recipient is no owner any more. */
async function requestedOf(
  { credentialRequests, team, baseUrl, clock }: MailDeps,
  notification: Notification,
): Promise<CredentialRequestMail | null> {
  const request = await pendingNow(credentialRequests, notification, clock.now());
  if (request === null) return null;
  const { accountId, message } = notification;
  const members = await team.members(accountId, PEOPLE_PER_ACCOUNT_MAX);
  const isOwner = members.some(({ email, role }) => email === message.target && mayDo(role, "manage"));
  return isOwner ? { event: "credential_requested", to: message.target, request, baseUrl } : null;
}

async function approvalOf(
  deps: MailDeps,
  { message, run }: Notification,
  action: Action,
): Promise<ApprovalMail | Delivery> {
  if (!isHeldIn(action, run)) return DECIDED_BEFORE;
  const kept = await deps.linksOf(action, deps.clock.now());
  const links = { ...kept, expiresAt: earlierEnd(kept.expiresAt, deps.approvalTtlHours) };
  const [receiptUrl, history] = [deps.receiptLink(action.id), await deps.historyOf(action)];
  return { event: "approval", to: message.target, action, run, links, receiptUrl, history, baseUrl: deps.baseUrl };
}

/** Links are issued when the action is held. They end early if the held action is cancelled before they expire. */
function earlierEnd(linksEnd: Date, ttlHours: number | null): Date {
  const heldMs = linksEnd.getTime() - APPROVAL_LINK_MS;
  return ttlHours === null ? linksEnd : new Date(Math.min(linksEnd.getTime(), heldMs + ttlHours * HOUR_MS));
}

async function decidedOf(
  deps: MailDeps,
  { message, run }: Notification,
  action: Action,
): Promise<DecidedMail | Delivery> {
  const entries = (await deps.actions.timeline(action.accountId, action.id)).filter((entry) => entry.run === run);
  const [decided] = entries.flatMap(({ at, event }) => {
    const decision = MAILED_DECISIONS[event.type];
    return decision === undefined || !("actor" in event) ? [] : [{ ...event, decision, at }];
  });
  if (decided === undefined || !entries.some(isDeliveredRequest)) return NOT_NEEDED;
  const { decision, actor, reason = null, at } = decided;
  const receiptUrl = deps.receiptLink(action.id);
  return { event: "decided", to: message.target, action, run, receiptUrl, decision, actor, reason, at };
}

const MAILED_DECISIONS: Readonly<Partial<Record<string, DecidedMail["decision"]>>> = {
  approved: "approved",
  rejected: "rejected",
  cancelled: "withdrawn",
};

function isDeliveredRequest({ event }: TimelineEntry): boolean {
  return event.type === "mail" && event.event === "approval" && event.delivered;
}

const NOT_NEEDED: Delivery = { kind: "needless" };

const NOT_CONFIGURED: Delivery = {
  kind: "withheld",
  error: "No mail was sent: no mail provider is configured (see MAILGUN_API_KEY).",
};

const NOT_AN_APPROVER: Delivery = {
  kind: "withheld",
  error: "No mail was sent: the address is neither of a person of this account nor one of the APPROVERS.",
};

const DECIDED_BEFORE: Delivery = { kind: "withheld", error: "No mail was sent: it was decided before." };

const TOO_MANY: Delivery = {
  kind: "withheld",
  error:
    `No mail was sent: at most ${MAILS_PER_RECIPIENT_MAX} go to one address and ` +
    `${MAILS_PER_ACCOUNT_MAX.toLocaleString("en")} from one account in an hour.`,
};
