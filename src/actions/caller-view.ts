import { hiddenValues, maskedAction, maskedEntry, maskedPause } from "../receipts/masked-action.ts";
import { timelineJson } from "./list-schemas.ts";
import { actionJson } from "./serialize.ts";
import type { Action } from "./action.ts";
import { type Caller, viewerOf, seesWhole } from "../accounts/roles.ts";
import type { PauseOf } from "../pauses/pause.ts";
import type { TimelineEntry } from "./timeline.ts";
import type { Clock } from "../runtime/clock.ts";
import Type from "typebox";
import { ActionId } from "./schemas.ts";
import { pathParams } from "../http/operation.ts";
import type { RequestContext } from "../http/context.ts";

/** Serializes an action to JSON text, masked as far as the caller requires. `differs`: a create found this older action. */
export type ActionSerializer = (caller: Caller, action: Action, differs?: readonly string[]) => string;

export function createActionSerializer(
  clock: Clock,
  receiptUrl: (actionId: string) => string,
  pauseOf: PauseOf,
): ActionSerializer {
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
export function serializeTimeline(caller: Caller, action: Action, entries: readonly TimelineEntry[]): string {
  const viewer = viewerOf(caller.role);
  return timelineJson(seesWhole(caller, action) ? entries : entries.map((entry) => maskedEntry(entry, viewer)));
}

/** The action in the path of a route. */
export const ActionParams = pathParams(Type.Object({ id: ActionId }), "There is no such action.");

/** The action's id, noted for the log line. */
export function actionIdOf(context: RequestContext, { id }: { readonly id: string }): string {
  context.actionId = id;
  return id;
}
