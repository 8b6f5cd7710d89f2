import type { Action } from "../domain/action.ts";
import { isHeldIn } from "../domain/change.ts";
import type { DecisionHistory } from "../domain/decision-facts.ts";
import { attemptMs } from "../domain/lease.ts";
import { APPROVAL_LINK_MS, MAILS_PER_ACCOUNT_MAX, MAILS_PER_RECIPIENT_MAX } from "../domain/limits.ts";
import type { Delivery, Notification } from "../domain/notification.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import type { Clock } from "../ports/clock.ts";
import type { Recipients } from "../ports/recipients.ts";
import type { ApprovalMail, DecidedMail, Mailer } from "../ports/mailer.ts";
import type { ActionStore, OutboxStore } from "../ports/store.ts";
import type { Deliver } from "./callback.ts";

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
