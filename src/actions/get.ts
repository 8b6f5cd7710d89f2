import type { Action } from "../domain/action.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import type { ActionStore } from "../ports/store.ts";

/** Reads one action of the caller's account; another account's does not exist. */
export function createGet(actions: ActionStore) {
  return async (caller: Caller, id: string): Promise<Action> => {
    authorize(caller, "read");
    const action = await actions.find(caller.accountId, id);
    if (action === null) throw new DomainError("not_found", "There is no such action.");
    return action;
  };
}
