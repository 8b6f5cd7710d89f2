import type { Action } from "../domain/action.ts";
import type { Actor } from "../domain/actor.ts";
import type { DecisionHistory } from "../domain/decision-facts.ts";
import type { Delivery } from "../domain/notification.ts";
import type { SendLimits } from "./sender.ts";

interface AboutAction {
  readonly to: string;
  /** As it is now, not masked: whoever writes the mail masks it. */
  readonly action: Action;
  /** The run that the mail is about. */
  readonly run: number;
  /** The whole URL of the receipt. */
  readonly receiptUrl: string;
}

/** Asks for a decision. */
export interface ApprovalMail extends AboutAction {
  readonly event: "approval";
  /** Whole URLs; who has one can decide. */
  readonly links: { readonly approve: string; readonly reject: string; readonly expiresAt: Date };
  readonly history: DecisionHistory;
  /** Where people reach the pages, without a trailing slash. */
  readonly baseUrl: string;
}

/** Answers an approval mail: somebody else has decided. */
export interface DecidedMail extends AboutAction {
  readonly event: "decided";
  readonly decision: "approved" | "rejected";
  readonly actor: Actor;
  readonly reason: string | null;
  readonly at: Date;
}

export type OutgoingMail = ApprovalMail | DecidedMail;

/** Writes a mail and gives it to the provider, once. Whatever the provider does is a delivery. */
export interface Mailer {
  /** The same mail has the same `Message-ID` however often it is sent, so that a repeat can be told. */
  send(mail: OutgoingMail, limits: SendLimits): Promise<Delivery>;
}
