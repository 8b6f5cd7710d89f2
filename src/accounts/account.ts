import { authorize, type Caller } from "../domain/caller.ts";
import type { Account, AccountStore } from "../ports/store.ts";

/** Reads the caller's own account; every role may. */
export function createReadAccount(accounts: Pick<AccountStore, "find">) {
  return async (caller: Caller): Promise<Account> => {
    authorize(caller, "read");
    const account = await accounts.find(caller.accountId);
    if (account === null) throw new Error(`Account ${caller.accountId} has no row.`);
    return account;
  };
}
