import Type from "typebox";
import { TEXT_EXTRAS, withoutTexts, withoutUnknown } from "../core/extras.ts";
import type { TimelineEntry } from "../core/timeline.ts";
import { ActionJson } from "../api/action-schemas.ts";
import { cutJson, cutRequestBody } from "./cut-body.ts";
import { RECEIPT_ATTEMPTS_MAX, RECEIPT_BODY_BYTES_MAX } from "../core/limits.ts";
import { receiptHistory } from "./history.ts";
import { constant, plainText, quantity } from "../api/schema-helpers.ts";
import { maskedTimeline } from "./masked-action.ts";
import { type MaskedAction, type SeenAction, seenWith } from "./seen-action.ts";
import { TimelineItemJson } from "../api/list-schemas.ts";
import { actionJson, timelineItem } from "./action-json.ts";

const { body } = ActionJson.properties;

const { properties: members } = Type.Omit(ActionJson, [
  "body",
  "response_truncated",
  "deduplicated",
  "differs",
  "extras",
  ...TEXT_EXTRAS,
]);

const { seq: _place, ...happened } = TimelineItemJson.properties;

export const ReceiptToken = plainText(
  "The part after `/r/` of `receipt_url`. It is the only credential: no key is needed.",
  "4dQm0cJ1s9XwVtYk2hZbLqPnRfGeUaBi",
);

/** A receipt as JSON. `receiptJson` writes it. */
export const ReceiptJson = Type.Object(
  {
    ...members,
    body: Type.Union([...body.anyOf, plainText("The beginning of a long body.", '{"rows":[')], {
      description: "The body sent to the target. Of a long one, its beginning as a text.",
      examples: [{ amount: 7 }],
    }),
    body_truncated: Type.Optional(
      constant(true, `Only the first ${RECEIPT_BODY_BYTES_MAX} bytes of the body are shown.`),
    ),
    response_truncated: Type.Optional(constant(true, "The target's answer was longer than the part that is shown.")),
    timeline: Type.Array(
      Type.Object(happened, { title: "ReceiptItem", description: "One thing that happened to the action." }),
      {
        description: `What happened, oldest first: the newest ${RECEIPT_ATTEMPTS_MAX} attempts and what came with them.`,
      },
    ),
    earlier_attempts: quantity("How many attempts of all runs came before those in the timeline.", 0),
  },
  {
    title: "Receipt",
    description:
      "An action and its timeline, masked, without values of headers and metadata; `callback`, `receipt_url` and the id in `created_by` are null here, and `policy` is absent. `approved_by` and `actor` are a kind (email, user, key, mcp or system) without a name.",
  },
);

/**
 * A receipt as a JSON text: the action as the public sees it, without header values, and its masked `timeline`. Anyone with the
 * link can read it, so callback, metadata, receipt URL, key ids and positions in the event stream are left out.
 */
export function receiptJson(action: MaskedAction, timeline: readonly TimelineEntry[], now: Date): string {
  const { entries, earlierAttempts } = receiptHistory(timeline, 0);
  const extras = withoutTexts(withoutUnknown(action.extras));
  const { action: cut, isCut } = cutBodies(seenWith(action, { callback: null, keyId: "", policy: null, extras }));
  const json = actionJson(cut, { now, receiptUrl: null, hidesHeaderValues: true });
  const items = maskedTimeline(entries, action).map((entry) => {
    const { seq: _position, ...item } = timelineItem(entry);
    return item;
  });
  const truncated = isCut ? `,"body_truncated":true` : "";
  return `${json.slice(0, -1)}${truncated},"timeline":${JSON.stringify(items)},"earlier_attempts":${earlierAttempts}}`;
}

/** The action with the beginning of its bodies. `isCut`: the request's body is cut. */
function cutBodies(action: SeenAction) {
  const { result, lateResult } = action;
  const cut = (json: string | null | undefined) =>
    json === null || json === undefined ? null : cutJson(json, RECEIPT_BODY_BYTES_MAX);
  const sent = cutRequestBody(action, RECEIPT_BODY_BYTES_MAX);
  const answer = cut(result?.responseBody);
  const isTruncated = result?.responseTruncated === true || (answer !== null && answer.bytes !== null);
  return {
    isCut: sent !== null && sent.bytes !== null,
    action: seenWith(action, {
      body: sent?.text ?? null,
      result:
        result === null ? null : { ...result, responseBody: answer?.text ?? null, responseTruncated: isTruncated },
      lateResult:
        lateResult === null ? null : { ...lateResult, responseBody: cut(lateResult.responseBody)?.text ?? null },
    }),
  };
}
