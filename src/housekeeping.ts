import type { Store } from "./ports/store.ts";
import type { Bell } from "./schedule/bells.ts";

/** The bells of the service, and what each of them rings. */
export function housekeeping(store: Store): readonly Bell[] {
  return [
    bell("keys whose 24 h are over", "17 * * * *", (now) => store.actions.pruneKeys(now)),
    bell("sessions and links that ran out", "37 * * * *", (now) => store.people.prune(now)),
  ];
}

/** A bell of a step that is done again as long as it says that there is more. */
function bell(name: string, pattern: string, step: (now: Date) => Promise<boolean>): Bell {
  return {
    name,
    pattern,
    async ring(now, stop) {
      while (!stop.aborted && (await step(now)));
    },
  };
}
