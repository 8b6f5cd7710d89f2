import type { Delivery, Notification } from "./notification.ts";
import { attemptMs, describe, type Fault, isPolicyRefusal, isSuccess, type Outcome } from "../actions/outcome.ts";
import { retryAfterMs } from "../actions/backoff.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Recipients } from "../approvals/recipients.ts";
import { UnreadableSecret } from "../crypto/types.ts";
import type { OutboundRequest, Sender } from "../outbound/deadline.ts";
import { type OutboxStore, StoreUnavailable, type ActionStore } from "../../db/store.ts";
import type { SignedHeaders } from "./signing.ts";
import type { Action } from "../actions/action.ts";
import { isHeldIn } from "../actions/changes.ts";
import type { DecisionHistory } from "../approvals/facts.ts";
import { APPROVAL_LINK_MS, MAILS_PER_ACCOUNT_MAX, MAILS_PER_RECIPIENT_MAX } from "../config/limits.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import type { ApprovalMail, DecidedMail, Mailer } from "../mail/messages.ts";

export interface CallbackDeps {
  readonly outbox: Pick<OutboxStore, "payload" | "creatorOf">;
  readonly recipients: Pick<Recipients, "mayCallBack">;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly signedHeaders: SignedHeaders;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
  readonly attemptTimeoutMs: number;
}

/** Makes one attempt to deliver a notification. It rejects only where the store is away, and then nothing has left. */
export type Deliver = (notification: Notification, stop: AbortSignal) => Promise<Delivery>;

/**
 * Posts the body that was fixed with the change, signed as actions are (decisions 8). The target is judged at every
 * attempt, and whatever it does is an outcome, as for an action (hostile 4).
 */
export function createCallback(deps: CallbackDeps): Deliver {
  const { outbox, recipients, sender, clock, signedHeaders, userAgent, attemptTimeoutMs } = deps;
  const unsent = (fault: Fault) => deliveryOf({ kind: "not_sent", fault }, clock.now(), attemptTimeoutMs);
  return async (notification, stop) => {
    const { id, accountId } = notification;
    const { target } = notification.message;
    // Read only now: rows that wait for a slot must not hold a megabyte each.
    const body = await outbox.payload(id);
    // A row by hand. It would be no better at the next attempt, and nothing has left.
    if (body === null || !URL.canParse(target)) return unsent("altered");
    const creator = await outbox.creatorOf(id);
    if (creator === null) return unsent("altered");
    // At every attempt, since the list may have become shorter.
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
    const outcome = await sender.send(request, { timeoutMs, stop });
    if (outcome.kind === "stopped") return { kind: "not_started", why: "stopping" };
    return deliveryOf(outcome, clock.now(), timeoutMs);
  };
}

const NOT_LISTED: Delivery = {
  kind: "withheld",
  error:
    "No callback was sent: its host is not listed for this account, and callbacks of a key with a hold go only to listed hosts.",
};

/** Why nothing is sent; throws where the store is away. */
function faultOf(error: unknown): Fault {
  if (error instanceof StoreUnavailable) throw error;
  // The one can be mended before it is given up, by a rotation; else the account is gone, from a row by hand.
  return error instanceof UnreadableSecret ? "unsignable" : "altered";
}

function deliveryOf(outcome: Outcome, now: Date, timeoutMs: number): Delivery {
  if (isSuccess(outcome, "POST")) return { kind: "delivered" };
  const error = describe(outcome, timeoutMs);
  if (isPolicyRefusal(outcome)) return { kind: "refused", error };
  if (outcome.kind !== "answered" && outcome.fault === "interrupted") return { kind: "interrupted", error };
  return {
    kind: "failed",
    error,
    notBeforeMs: outcome.kind === "answered" ? retryAfterMs(outcome.retryAfter, now) : null,
  };
}

export interface MailDeps {
  readonly actions: Pick<ActionStore, "find" | "timeline">;
  readonly outbox: Pick<OutboxStore, "permitMail">;
  readonly clock: Clock;
  /** Null: no provider is configured. */
  readonly mailer: Mailer | null;
  readonly linksOf: (action: Action, now: Date) => Promise<ApprovalMail["links"]>;
  /** After so many hours an action that is still held is cancelled; null: it never is. */
  readonly approvalTtlHours: number | null;
  /** The whole URL of an action's receipt. */
  readonly receiptLink: (actionId: string) => string;
  readonly historyOf: (action: Action) => Promise<DecisionHistory>;
  /** Where people reach the pages, without a trailing slash. */
  readonly baseUrl: string;
  readonly attemptTimeoutMs: number;
  readonly recipients: Pick<Recipients, "mayMail">;
}

const HOUR_MS = 3_600_000;

/**
 * Writes a mail when it is sent, so that no link is ever stored, and sends it only while it still says something: a
 * question that nobody has answered, or an answer to a question that arrived.
 */
export function createMail(deps: MailDeps): Deliver {
  const { actions, outbox, clock, mailer, recipients, attemptTimeoutMs } = deps;
  return async (notification, stop) => {
    if (mailer === null) return notification.message.event === "approval" ? NOT_CONFIGURED : NEEDLESS;
    const action = await actions.find(notification.accountId, notification.actionId);
    if (action === null) return NEEDLESS;
    const mailOf = notification.message.event === "approval" ? approvalOf : decidedOf;
    const mail = await mailOf(deps, notification, action);
    if ("kind" in mail) return mail;
    // Again before it leaves: whoever was named may have left the account, or the APPROVERS, meanwhile.
    if (!(await recipients.mayMail(action.accountId, action.creator, mail.to))) return NOT_AN_APPROVER;
    if (!(await outbox.permitMail(notification, clock.now()))) return TOO_MANY;
    const timeoutMs = attemptMs(notification, clock.now(), attemptTimeoutMs);
    if (timeoutMs === 0) return { kind: "not_started", why: "late" };
    return mailer.send(mail, { timeoutMs, stop });
  };
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

/** Links are made when an action begins to be held; where it is cancelled before they end, they work no longer. */
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
  const [said] = entries.flatMap(({ at, event }) =>
    event.type === "approved" || event.type === "rejected" ? [{ ...event, at }] : [],
  );
  if (said === undefined || !entries.some(isArrivedQuestion)) return NEEDLESS;
  const { type, actor, reason = null, at } = said;
  const decision = type === "approved" ? type : "rejected";
  const receiptUrl = deps.receiptLink(action.id);
  return { event: "decided", to: message.target, action, run, receiptUrl, decision, actor, reason, at };
}

function isArrivedQuestion({ event }: TimelineEntry): boolean {
  return event.type === "mail" && event.event === "approval" && event.delivered;
}

const NEEDLESS: Delivery = { kind: "needless" };

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
