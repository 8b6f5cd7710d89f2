import { authorize, type Caller } from "../domain/caller.ts";
import { KEYS_LISTED_MAX } from "../domain/limits.ts";
import type { AccountStore, ApiKey } from "../ports/accounts.ts";

/** The account's keys, live ones first (decisions 1). The keys themselves are nowhere to be read. */
export function createListKeys(accounts: Pick<AccountStore, "keys">) {
  return async (caller: Caller): Promise<readonly ApiKey[]> => {
    authorize(caller, "manage");
    return accounts.keys(caller.accountId, KEYS_LISTED_MAX);
  };
}
