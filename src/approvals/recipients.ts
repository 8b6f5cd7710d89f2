import { isListedHost, type CallbackHostStore } from "../accounts/callback-hosts.ts";
import { type Creator, isNamedIn, needsKnownRecipient, needsListedCallback } from "./creator.ts";
import type { Issue } from "../api/domain-error.ts";
import { originOf } from "../outbound/target.ts";
import type { PeopleStore } from "../../db/account-store.ts";

interface RecipientDeps {
  readonly callbackHosts: Pick<CallbackHostStore, "list">;
  readonly people: Pick<PeopleStore, "isIn">;
  /** Addresses and `@domain`s that may be asked for approval; empty: none are set. */
  readonly approvers: readonly string[];
}

/** Where callbacks and mails of an action may go. Checked at its creation, and again before each is sent. */
export type RecipientCheck = ReturnType<typeof createRecipients>;

export function createRecipients({ callbackHosts, people, approvers }: RecipientDeps) {
  const mayCallBack = async (accountId: string, creator: Creator, url: string): Promise<boolean> => {
    if (!needsListedCallback(creator)) return true;
    const listed = await callbackHosts.list(accountId);
    return isListedHost(
      url,
      listed.map(({ host }) => host),
    );
  };
  /** All people of an account are owners, so each may approve. */
  const mayMail = async (accountId: string, creator: Creator, email: string): Promise<boolean> => {
    if (!needsKnownRecipient(creator, approvers) || isNamedIn(approvers, email)) return true;
    return people.isIn(accountId, email);
  };
  return {
    mayCallBack,
    mayMail,
    /** The issues of the recipients that a create names. */
    async issues(accountId: string, creator: Creator, { callback, notifyEmail }: Named): Promise<readonly Issue[]> {
      const [callsBack, mails] = await Promise.all([
        callback === null || mayCallBack(accountId, creator, callback),
        notifyEmail === null || mayMail(accountId, creator, notifyEmail),
      ]);
      return [
        ...(callsBack ? [] : [{ field: "callback", message: notListed(callback ?? "") }]),
        ...(mails ? [] : [{ field: "notify.email", message: NOT_AN_APPROVER }]),
      ];
    },
  };
}

interface Named {
  readonly callback: string | null;
  readonly notifyEmail: string | null;
}

function notListed(callback: string): string {
  const host = originOf(callback).replace(/^https?:\/\//, "");
  return (
    `Callbacks of a key with a hold go only to hosts that an owner has listed, and ${host} is not listed. ` +
    "List it on the page Settings, by `outgate callback-hosts add`, or by POST /v1/callback-hosts with an owner key."
  );
}

const NOT_AN_APPROVER =
  "May name only people of this account and the APPROVERS of this service. To allow an address, add it to APPROVERS " +
  "in the settings of the service; or leave notify out and approve in the inbox.";

/** Checks recipients by the role and hold at creation and by the present lists. */
export interface Recipients {
  mayCallBack(accountId: string, creator: Creator, url: string): Promise<boolean>;
  mayMail(accountId: string, creator: Creator, email: string): Promise<boolean>;
}
