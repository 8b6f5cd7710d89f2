import { actionJson } from "../../contract/view.ts";
import type { Action } from "../../domain/action.ts";
import type { Clock } from "../../ports/clock.ts";

/** An action as JSON text. `differs` is there when a create found it. */
export type Show = (action: Action, differs?: readonly string[]) => string;

export function createShow(clock: Clock, receiptUrl: (actionId: string) => string): Show {
  return (action, differs) => {
    const options = { now: clock.now(), receiptUrl: receiptUrl(action.id) };
    return actionJson(action, differs === undefined ? options : { ...options, differs });
  };
}
