import { hiddenValues, maskedAction, maskedEntry, maskedPause } from "../receipts/masked-action.ts";
import { timelineJson } from "./list-schemas.ts";
import { actionJson } from "./serialize.ts";
import type { Action } from "./action.ts";
import { type Caller, viewerOf } from "../accounts/roles.ts";
import type { PauseOf } from "../pauses/pause.ts";
import { seesWhole } from "../accounts/scope.ts";
import type { TimelineEntry } from "./timeline.ts";
import type { Clock } from "../runtime/clock.ts";
import { DomainError } from "../api/domain-error.ts";
import { ACTION_ID } from "../runtime/ids.ts";
import type { Params } from "../http/router.ts";
import type { RequestContext } from "../http/context.ts";

/** Serializes an action to JSON text, masked as far as the caller requires. `differs`: a create found this older action. */
export type Show = (caller: Caller, action: Action, differs?: readonly string[]) => string;

export function createShow(clock: Clock, receiptUrl: (actionId: string) => string, pauseOf: PauseOf): Show {
  return (caller, action, differs) => {
    const isWhole = seesWhole(caller, action);
    const viewer = viewerOf(caller.role);
    const pause = isWhole ? pauseOf(action) : maskedPause(pauseOf(action), viewer);
    const visible = isWhole ? action : maskedAction(action, viewer);
    const options = { now: clock.now(), receiptUrl: receiptUrl(action.id), pause, hiddenValues: hiddenValues(visible) };
    return actionJson(visible, differs === undefined ? options : { ...options, differs });
  };
}

/** Serializes the timeline of an action to JSON text, masked as far as the caller requires. */
export function showTimeline(caller: Caller, action: Action, entries: readonly TimelineEntry[]): string {
  const viewer = viewerOf(caller.role);
  return timelineJson(seesWhole(caller, action) ? entries : entries.map((entry) => maskedEntry(entry, viewer)));
}

/** The action id of the path. A malformed id gets the same `not_found` as an unknown one. */
export function actionIdOf(context: RequestContext, params: Params): string {
  const id = params["id"] ?? "";
  if (!ACTION_ID.test(id)) throw new DomainError("not_found", "There is no such action.");
  context.actionId = id;
  return id;
}
