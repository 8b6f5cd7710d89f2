import { authorize, type Caller } from "../domain/caller.ts";
import { HELD_LISTED_MAX } from "../domain/limits.ts";
import type { ActionStore, HeldPage } from "../ports/store.ts";

/**
 * What waits for a person, oldest first: whoever has waited longest is on top, and what comes meanwhile moves nothing
 * under the reader's hand.
 */
export function createHeld(actions: Pick<ActionStore, "held">) {
  return async (caller: Caller, after: string | null): Promise<HeldPage> => {
    authorize(caller, "read");
    return actions.held(caller.accountId, after, HELD_LISTED_MAX);
  };
}
