import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import { withPauses } from "../domain/pause.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import type { PauseStore } from "../ports/pauses.ts";
import type { ActionStore } from "../ports/store.ts";

export interface TimelineDeps {
  readonly actions: Pick<ActionStore, "timeline">;
  readonly pauses: Pick<PauseStore, "ofAction">;
}

/** Everything that happened to one action, oldest first, and the pauses that kept it from being sent. */
export function createTimeline({ actions, pauses }: TimelineDeps) {
  return async (caller: Caller, id: string): Promise<readonly TimelineEntry[]> => {
    authorize(caller, "read");
    const [entries, covering] = await Promise.all([
      actions.timeline(caller.accountId, id),
      pauses.ofAction(caller.accountId, id),
    ]);
    // Every action has the row of its creation.
    if (entries.length === 0) throw new DomainError("not_found", "There is no such action.");
    return withPauses(entries, covering);
  };
}
