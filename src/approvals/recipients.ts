import type { ActionRequest, Creator } from "../actions/action.ts";
import type { CallbackHostStore } from "../accounts/callback-hosts.ts";
import type { PeopleStore } from "../../db/account-store.ts";
import { type AccountFacts, mayCallBack, mayMail, needsListedCallback, needsMember } from "./policy.ts";

interface RecipientDeps {
  readonly callbackHosts: Pick<CallbackHostStore, "list">;
  readonly people: Pick<PeopleStore, "mayApprove">;
  /** Addresses and `@domain`s that may be asked for approval; empty: none are set. */
  readonly approvers: readonly string[];
}

/**
 * Where callbacks and mails of an action may go, by the role and hold of its creator and by the present lists. The policy
 * checks it at the creation, and whoever sends checks it again.
 */
export type Recipients = ReturnType<typeof createRecipients>;

export function createRecipients({ callbackHosts, people, approvers }: RecipientDeps) {
  /** Reads only what the rules need for this request: mostly nothing. */
  const factsFor = async (
    accountId: string,
    creator: Creator,
    { callback, notifyEmail }: Pick<ActionRequest, "callback" | "notifyEmail">,
  ): Promise<AccountFacts> => {
    const [listed, isMember] = await Promise.all([
      callback !== null && needsListedCallback(creator) ? callbackHosts.list(accountId) : [],
      notifyEmail !== null && needsMember(creator, notifyEmail, approvers)
        ? people.mayApprove(accountId, notifyEmail)
        : false,
    ]);
    return { callbackHosts: listed.map(({ host }) => host), approvers, isMember };
  };
  return {
    factsFor,
    async mayCallBack(accountId: string, creator: Creator, url: string): Promise<boolean> {
      const facts = await factsFor(accountId, creator, { callback: url, notifyEmail: null });
      return mayCallBack(creator, url, facts.callbackHosts);
    },
    async mayMail(accountId: string, creator: Creator, email: string): Promise<boolean> {
      return mayMail(creator, email, await factsFor(accountId, creator, { callback: null, notifyEmail: email }));
    },
  };
}
