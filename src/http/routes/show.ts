import { hiddenValues, maskedAction, maskedEntry, maskedPause } from "../../contract/masked.ts";
import { timelineJson } from "../../contract/timeline.ts";
import { actionJson } from "../../contract/view.ts";
import type { Action } from "../../domain/action.ts";
import type { Caller } from "../../domain/caller.ts";
import type { PauseOf } from "../../domain/pause.ts";
import { viewerOf } from "../../domain/roles.ts";
import { seesWhole } from "../../domain/scope.ts";
import type { TimelineEntry } from "../../domain/timeline.ts";
import type { Clock } from "../../ports/clock.ts";

/** An action as JSON text, with as much of it as the caller may see. `differs` is there when a create found it. */
export type Show = (caller: Caller, action: Action, differs?: readonly string[]) => string;

export function createShow(clock: Clock, receiptUrl: (actionId: string) => string, pauseOf: PauseOf): Show {
  return (caller, action, differs) => {
    const isWhole = seesWhole(caller, action);
    const viewer = viewerOf(caller.role);
    const pause = isWhole ? pauseOf(action) : maskedPause(pauseOf(action), viewer);
    const seen = isWhole ? action : maskedAction(action, viewer);
    const options = { now: clock.now(), receiptUrl: receiptUrl(action.id), pause, hiddenValues: hiddenValues(seen) };
    return actionJson(seen, differs === undefined ? options : { ...options, differs });
  };
}

/** The timeline of an action as JSON text, with as much of it as the caller may see. */
export function showTimeline(caller: Caller, action: Action, entries: readonly TimelineEntry[]): string {
  const viewer = viewerOf(caller.role);
  return timelineJson(seesWhole(caller, action) ? entries : entries.map((entry) => maskedEntry(entry, viewer)));
}
