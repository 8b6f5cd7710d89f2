import type { Action } from "../domain/action.ts";
import type { TimelineEntry } from "../domain/timeline.ts";
import { maskedAction, maskedEntry } from "./masked.ts";
import { itemOf } from "./timeline.ts";
import { actionJson } from "./view.ts";

/**
 * A receipt for programs (decisions 12): the action, masked, without values of headers, and its `timeline`. Whoever has
 * the link reads it, so there is nothing in it that leads on: no URL of the service or of a callback, and no position in
 * the stream of events.
 */
export function receiptJson(action: Action, timeline: readonly TimelineEntry[], now: Date): string {
  const shown = { ...maskedAction(action), callback: null };
  const json = actionJson(shown, { now, receiptUrl: null, hidesHeaderValues: true });
  return `${json.slice(0, -1)},"timeline":${JSON.stringify(timeline.map((entry) => withoutSeq(itemOf(maskedEntry(entry)))))}}`;
}

function withoutSeq({ seq: _position, ...told }: ReturnType<typeof itemOf>) {
  return told;
}
