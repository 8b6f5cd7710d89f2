import type { Action } from "../actions/action.ts";
import { type ApprovalLink, DECISIONS, type Decision } from "../actions/status.ts";
import { APPROVAL_LINK_MS } from "../config/limits.ts";
import type { Secrets } from "../crypto/types.ts";
import type { LinkStore, ActionStore } from "../../db/store.ts";
import type { Caller } from "../accounts/roles.ts";
import { isHeldIn } from "../actions/changes.ts";
import { DomainError } from "../api/domain-error.ts";
import { type DecisionHistory, NO_HISTORY } from "./facts.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Decide } from "./decide.ts";
import type { ContextOf } from "./held.ts";
import type { RecipientCheck } from "./recipients.ts";

/** The two links of an approval mail, whole URLs, and until when they decide. */
interface ApprovalLinks {
  readonly approve: string;
  readonly reject: string;
  readonly expiresAt: Date;
}

/**
 * The links of the action's present run. Made again, after a crash between making and mailing, they are the same and
 * end at the same time. Durable when it resolves; only their hashes are kept.
 */
type LinksOf = (action: Action, now: Date) => Promise<ApprovalLinks>;

interface ApprovalLinkDeps {
  readonly links: LinkStore;
  readonly secrets: Pick<Secrets, "approvalToken" | "hash">;
  /** Where people reach us, without a trailing slash: never what a request's `Host` says. */
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

interface FollowLinkDeps {
  readonly links: Pick<LinkStore, "find">;
  readonly actions: Pick<ActionStore, "findById">;
  readonly secrets: Pick<Secrets, "readApprovalToken" | "isOfHash">;
  readonly clock: Clock;
  readonly actionService: { readonly approve: Decide; readonly cancel: Decide };
  readonly recipients: Pick<RecipientCheck, "mayMail">;
  readonly historyOf: ContextOf;
}

/** What a link opens. */
export interface OpenedLink {
  readonly action: Action;
  /** Which of the two links of the mail it is. */
  readonly decision: Decision;
  readonly expiresAt: Date;
  /**
   * False: it was decided, cancelled or begun again, its days are over, or whoever was sent it may not approve any more.
   * Then the receipt is all there is to see.
   */
  readonly isLive: boolean;
  /** What is to be known of it; nothing where there is nothing to decide any more. */
  readonly history: DecisionHistory;
}

/** The token is the whole authority: whoever has it was sent the mail, and decides under the address it went to. */
export interface FollowLink {
  /** Looks and changes nothing. Null: no such link. */
  open(token: string): Promise<OpenedLink | null>;
  /**
   * Decides, if nobody else has: one decision, whatever came first. What it opens afterwards tells what holds by then; a
   * link that was late changes nothing. `client`: where the request comes from. Null: no such link.
   */
  decide(token: string, decision: Decision, reason: string | null, client: string): Promise<OpenedLink | null>;
}

/** Opens approval links and decides by them, with the same approve and cancel as everybody else. */
export function createFollowLink(deps: FollowLinkDeps): FollowLink {
  const { links, actions, secrets, clock, actionService, recipients, historyOf } = deps;
  const open = async (token: string): Promise<OpenedLink | null> => {
    const claimed = secrets.readApprovalToken(token);
    const link = claimed === null ? null : await links.find(claimed);
    if (link === null || !secrets.isOfHash(token, link.hash)) return null;
    const action = await actions.findById(link.actionId);
    if (action === null) return null;
    const { decision, expiresAt } = link;
    const isOpen = isHeldIn(action, link.run) && clock.now() < expiresAt;
    // Whoever was sent it may have left the account, or the APPROVERS, since.
    const isLive = isOpen && (await recipients.mayMail(action.accountId, action.creator, action.notifyEmail ?? ""));
    if (!isLive) return { action, decision, expiresAt, isLive, history: NO_HISTORY };
    return { action, decision, expiresAt, isLive, history: await historyOf(action) };
  };
  return {
    open,
    async decide(token, decision, reason, client) {
      const opened = await open(token);
      if (opened === null || !opened.isLive) return opened;
      const { action } = opened;
      const verb = decision === "approve" ? actionService.approve : actionService.cancel;
      await verb({ ...holderOf(action), client }, action.id, reason, { run: action.run, isHeld: true }).catch(
        unlessTooLate,
      );
      return open(token);
    },
  };
}

/** Whoever holds a link of the mail. It may say yes and no, and nothing else. */
function holderOf({ accountId, notifyEmail }: Action): Caller {
  const email = notifyEmail ?? "";
  return { accountId, keyId: null, keyName: email, role: "approver", hold: "none", actor: `email:${email}` };
}

/** Another decision came first: that is no error of whoever follows a link. */
function unlessTooLate(error: unknown): void {
  const isLate = error instanceof DomainError && (error.code === "not_approvable" || error.code === "not_cancellable");
  if (!isLate) throw error;
}
