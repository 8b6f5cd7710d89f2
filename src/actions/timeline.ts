import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import type { ActionStore } from "../ports/store.ts";

/** Everything that happened to one action, oldest first (decisions 12). */
export function createTimeline(actions: ActionStore) {
  return async (caller: Caller, id: string): Promise<readonly TimelineEntry[]> => {
    authorize(caller, "read");
    const entries = await actions.timeline(caller.accountId, id);
    // Every action has the row of its creation.
    if (entries.length === 0) throw new DomainError("not_found", "There is no such action.");
    return entries;
  };
}
