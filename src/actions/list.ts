import { authorize, type Caller } from "../domain/caller.ts";
import type { ActionPage, ActionQuery, ActionStore } from "../ports/store.ts";

export type ListQuery = Omit<ActionQuery, "accountId">;

/** One page of the account's actions, newest first (decisions 1). */
export function createList(actions: ActionStore) {
  return async (caller: Caller, query: ListQuery): Promise<ActionPage> => {
    authorize(caller, "read");
    return actions.list({ ...query, accountId: caller.accountId });
  };
}
