import type { Action, ActionRequest, Creator, LimitedCreator } from "../core/action.ts";
import type { Judge } from "../core/judge.ts";
import { mayCallBack, mayMail, needsListedCallback, needsMember, type RecipientFacts } from "../core/policy.ts";
import { isLimited } from "../core/roles.ts";
import type { AppContext } from "../runtime/app-context.ts";

/**
 * Where callbacks and mails of an action may go, by the role, hold and limits of its creator and by the present lists and
 * rules. The policy checks this at the create, and the sender checks it again.
 */
export type Recipients = ReturnType<typeof createRecipients>;

export function createRecipients({ config: { approvers }, store }: AppContext, rules: Pick<Judge, "isRuled">) {
  const { accounts, callbackHosts, people } = store;
  /** Rules judge calls, not callbacks. If an account has rules, callbacks of its agents may go only to listed hosts. */
  const boundByRules = (accountId: string, creator: LimitedCreator): LimitedCreator =>
    creator.role === "agent" && rules.isRuled(accountId) ? { ...creator, isLimited: true } : creator;
  /** Reads only what the policy needs for this request, which is mostly nothing. */
  const factsFor = async (
    accountId: string,
    creator: LimitedCreator,
    { callback, notifyEmail }: Pick<ActionRequest, "callback" | "notifyEmail">,
  ): Promise<RecipientFacts> => {
    const [listed, isMember] = await Promise.all([
      callback !== null && needsListedCallback(creator) ? callbackHosts.list(accountId) : [],
      notifyEmail !== null && needsMember(creator, notifyEmail, approvers)
        ? people.mayApprove(accountId, notifyEmail)
        : false,
    ]);
    return { callbackHosts: listed.map(({ host }) => host), approvers, isMember };
  };
  return {
    boundByRules,
    factsFor,
    /** Who created an action. A key that is not found counts as one with limits. */
    async findCreator({ accountId, keyId, creator }: Action): Promise<LimitedCreator> {
      const key = keyId === "" ? null : await accounts.findKey(accountId, keyId);
      return { ...creator, isLimited: keyId !== "" && (key === null || isLimited(key)) };
    },
    async mayCallBack(accountId: string, givenCreator: LimitedCreator, url: string): Promise<boolean> {
      const creator = boundByRules(accountId, givenCreator);
      const facts = await factsFor(accountId, creator, { callback: url, notifyEmail: null });
      return mayCallBack(creator, url, facts.callbackHosts);
    },
    async mayMail(accountId: string, creator: Creator, email: string): Promise<boolean> {
      const facts = await factsFor(accountId, { ...creator, isLimited: false }, { callback: null, notifyEmail: email });
      return mayMail(creator, email, facts);
    },
  };
}
