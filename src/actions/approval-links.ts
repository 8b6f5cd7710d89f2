import type { Action } from "../domain/action.ts";
import { type ApprovalLink, DECISIONS } from "../domain/approval-link.ts";
import { APPROVAL_LINK_MS } from "../domain/limits.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { LinkStore } from "../ports/links.ts";

/** The two links of an approval mail, whole URLs, and until when they decide. */
export interface ApprovalLinks {
  readonly approve: string;
  readonly reject: string;
  readonly expiresAt: Date;
}

/**
 * The links of the action's present run. Made again, after a crash between making and mailing, they are the same and
 * end at the same time. Durable when it resolves; only their hashes are kept.
 */
export type LinksOf = (action: Action, now: Date) => Promise<ApprovalLinks>;

export interface ApprovalLinkDeps {
  readonly links: LinkStore;
  readonly secrets: Pick<Secrets, "approvalToken" | "hash">;
  /** Where people reach us, without a trailing slash: never what a request's `Host` says (hostile 7). */
  readonly baseUrl: string;
}

export function createLinksOf({ links, secrets, baseUrl }: ApprovalLinkDeps): LinksOf {
  return async ({ id: actionId, run }, now) => {
    const tokenOf = (decision: ApprovalLink["decision"]) => secrets.approvalToken({ actionId, run, decision });
    const kept = DECISIONS.map((decision) => ({ actionId, run, decision, hash: secrets.hash(tokenOf(decision)) }));
    const expiresAt = await links.keep(kept, new Date(now.getTime() + APPROVAL_LINK_MS));
    return { approve: `${baseUrl}/a/${tokenOf("approve")}`, reject: `${baseUrl}/a/${tokenOf("reject")}`, expiresAt };
  };
}
