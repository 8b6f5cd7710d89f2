import type { Action } from "../domain/action.ts";
import type { Decision } from "../domain/approval-link.ts";
import type { Caller } from "../domain/caller.ts";
import { isHeldIn } from "../domain/change.ts";
import { DomainError } from "../domain/errors.ts";
import { type DecisionHistory, NO_HISTORY } from "../domain/decision-facts.ts";
import type { Clock } from "../ports/clock.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { LinkStore } from "../ports/links.ts";
import type { ActionStore } from "../ports/store.ts";
import type { Decide } from "./decide.ts";
import type { ContextOf } from "./held.ts";
import type { RecipientCheck } from "./recipients.ts";

export interface FollowLinkDeps {
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

/** Opens approval links and decides by them, with the same approve and cancel as everybody else (decisions 7). */
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
