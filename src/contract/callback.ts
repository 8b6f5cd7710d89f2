import type { Action } from "../domain/action.ts";
import type { CallbackEvent } from "../domain/owed.ts";
import { eventJson } from "./events.ts";
import { actionJson } from "./view.ts";

/** The body of a callback (decisions 8): what an agent key would see, without the values of headers. */
export function callbackJson(event: CallbackEvent, action: Action, at: Date, receiptUrl: string): string {
  return eventJson(event, at, actionJson(action, { now: at, receiptUrl, hidesHeaderValues: true }));
}
