import type { ApprovalMail, DecidedMail, Mail } from "../../src/mail/messages.ts";
import type { Action } from "../../src/core/action.ts";
import { NO_HISTORY } from "../../src/approvals/facts.ts";
import { anAction, later, NOON } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

/** A message, written. */
export function aMessage(overrides: Partial<Mail> = {}): Mail {
  return {
    to: "boss@example.com",
    subject: "Approve?",
    text: "Line one\nLine two: grüße",
    html: "<p>grüße</p>",
    id: "act_1.1",
    event: "approval",
    actionId: "act_1",
    ...overrides,
  };
}

export const LINKS = {
  approve: "https://gate.example.com/a/approve-token",
  reject: "https://gate.example.com/a/reject-token",
  expiresAt: later(7 * 86_400_000),
};

/** Before its action is masked. */
type Unmasked<Of> = Omit<Of, "action"> & { readonly action: Action };

/** The question about an action. */
export function anApprovalMail(action: Partial<Action> = {}): Unmasked<ApprovalMail> {
  const held = anAction({ approve: true, notifyEmail: "boss@example.com", createdBy: "key:agent", ...action });
  const receiptUrl = "https://gate.example.com/r/receipt-token";
  return {
    to: "boss@example.com",
    action: held,
    run: 1,
    links: LINKS,
    receiptUrl,
    history: NO_HISTORY,
    account: null,
    baseUrl: "https://gate.example.com",
  };
}

/** How it was answered elsewhere. */
export function aDecidedMail(overrides: Partial<Unmasked<DecidedMail>> = {}): Unmasked<DecidedMail> {
  const { links: _, history: _history, account: _account, baseUrl: _baseUrl, ...about } = anApprovalMail();
  return { ...about, decision: "approved", actor: "key:ann", reason: null, at: NOON, ...overrides };
}

/** The same as it is sent. */
export function maskedMail<Unsent extends { readonly action: Action }>(mail: Unsent) {
  return { ...mail, action: maskAction(mail.action, "mail") };
}
