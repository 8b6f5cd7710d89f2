import Type, { type Static } from "typebox";
import type { Action as StoredAction } from "../actions/action.ts";
import { withoutUnknown } from "../actions/extras.ts";
import type { TimelineEntry } from "../actions/timeline.ts";
import { ActionJson } from "../actions/schemas.ts";
import { plainText } from "../api/schema-helpers.ts";
import { maskedAction, maskedEntry } from "./masked-action.ts";
import { TimelineItem } from "../actions/list-schemas.ts";
import { actionJson, timelineItem } from "../actions/serialize.ts";

const {
  deduplicated: _found,
  differs: _differs,
  reason: _reason,
  metadata: _metadata,
  extras: _extras,
  ...shown
} = ActionJson.properties;

const { seq: _place, ...happened } = TimelineItem.properties;

export const ReceiptToken = plainText(
  "The part after `/r/` of `receipt_url`. It is the only credential: no key is needed.",
  "4dQm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi",
);

/** A receipt as JSON. `receiptJson` writes it. */
export const ReceiptJson = Type.Object(
  {
    ...shown,
    timeline: Type.Array(
      Type.Object(happened, { title: "ReceiptItem", description: "One thing that happened to the action." }),
      { description: "What happened, oldest first." },
    ),
  },
  {
    title: "Receipt",
    description:
      "An action and its timeline, masked, without values of headers and metadata; `callback`, `receipt_url` and the id in `created_by` are null here. `approved_by` and `actor` are a kind (email, user, key, mcp or system) without a name.",
  },
);

export type ReceiptJson = Static<typeof ReceiptJson>;

/**
 * A receipt as JSON text: the action and its `timeline`, masked, without header values. Anyone with the link can read it, so it
 * leaves out callback, metadata, receipt URL, key ids and positions in the event stream. Its timeline has the reason.
 */
export function receiptJson(action: StoredAction, timeline: readonly TimelineEntry[], now: Date): string {
  const { reason: _asked, metadata: _noted, ...extras } = withoutUnknown(action.extras);
  const masked = { ...maskedAction(action, "public"), callback: null, keyId: "", extras };
  const json = actionJson(masked, { now, receiptUrl: null, hidesHeaderValues: true });
  return `${json.slice(0, -1)},"timeline":${JSON.stringify(timeline.map((entry) => withoutSeq(timelineItem(maskedEntry(entry, "public")))))}}`;
}

function withoutSeq({ seq: _position, ...told }: ReturnType<typeof timelineItem>) {
  return told;
}
