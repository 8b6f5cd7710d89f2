import type { Action } from "../domain/action.ts";
import { isHeldIn } from "../domain/change.ts";
import { attemptMs } from "../domain/lease.ts";
import { APPROVAL_LINK_MS, MAILS_PER_ACCOUNT_MAX, MAILS_PER_RECIPIENT_MAX } from "../domain/limits.ts";
import type { Delivery, Notification } from "../domain/notification.ts";
import type { EarlierRejection } from "../domain/rejections.ts";
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
  readonly attemptTimeoutMs: number;
  readonly recipients: Pick<Recipients, "mayMail">;
  readonly earlierRejections: (some: readonly Action[]) => Promise<ReadonlyMap<string, readonly EarlierRejection[]>>;
}

const HOUR_MS = 3_600_000;

/**
 * Writes a mail when it is sent, so that no link is ever stored, and sends it only while it still says something: a
 * question that nobody has answered, or an answer to a question that arrived.
 */
export function createMail(deps: MailDeps): Deliver {
  const { actions, outbox, clock, mailer, recipients, attemptTimeoutMs } = deps;
  return async (notification, stop) => {
    if (mailer === null) return notification.owed.event === "approval" ? NOT_CONFIGURED : NEEDLESS;
    const action = await actions.find(notification.accountId, notification.actionId);
    if (action === null) return NEEDLESS;
    const mailOf = notification.owed.event === "approval" ? approvalOf : decidedOf;
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
  { owed, run }: Notification,
  action: Action,
): Promise<ApprovalMail | Delivery> {
  if (!isHeldIn(action, run)) return DECIDED_BEFORE;
  const kept = await deps.linksOf(action, deps.clock.now());
  const links = { ...kept, expiresAt: earlierEnd(kept.expiresAt, deps.approvalTtlHours) };
  const earlier = (await deps.earlierRejections([action])).get(action.id) ?? [];
  return { event: "approval", to: owed.target, action, run, earlier, links, receiptUrl: deps.receiptLink(action.id) };
}

/** Links are made when an action begins to be held; where it is cancelled before they end, they work no longer. */
function earlierEnd(linksEnd: Date, ttlHours: number | null): Date {
  const heldMs = linksEnd.getTime() - APPROVAL_LINK_MS;
  return ttlHours === null ? linksEnd : new Date(Math.min(linksEnd.getTime(), heldMs + ttlHours * HOUR_MS));
}

async function decidedOf(deps: MailDeps, { owed, run }: Notification, action: Action): Promise<DecidedMail | Delivery> {
  const entries = (await deps.actions.timeline(action.accountId, action.id)).filter((entry) => entry.run === run);
  const [said] = entries.flatMap(({ at, happening }) =>
    happening.type === "approved" || happening.type === "rejected" ? [{ ...happening, at }] : [],
  );
  if (said === undefined || !entries.some(isArrivedQuestion)) return NEEDLESS;
  const { type, actor, reason = null, at } = said;
  const decision = type === "approved" ? type : "rejected";
  const receiptUrl = deps.receiptLink(action.id);
  return { event: "decided", to: owed.target, action, run, receiptUrl, decision, actor, reason, at };
}

function isArrivedQuestion({ happening }: TimelineEntry): boolean {
  return happening.type === "mail" && happening.event === "approval" && happening.delivered;
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
