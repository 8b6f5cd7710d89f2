import { DecisionBody } from "../api/action-schemas.ts";
import { DECISIONS } from "../core/action.ts";
import { DomainError } from "../core/domain-error.ts";
import { bodyCheck } from "../api/schema-helpers.ts";
import type { ShownRequest } from "../approvals/decide.ts";
import { DECISIONS_AT_ONCE_MAX, DIGEST_CHARS_MAX } from "../core/limits.ts";
import { ACTION_ID } from "../core/ids.ts";

const checkDecision = bodyCheck(DecisionBody);

/** The reason in a form; null: empty. Browsers send line ends as CR LF. Throws `validation_error`. */
export function checkReasonField(fields: ReadonlyMap<string, string>): string | null {
  const why = (fields.get("reason") ?? "").replaceAll("\r\n", "\n").trim();
  return checkDecision(why === "" ? {} : { reason: why }).reason ?? null;
}

/** The decision in the fields of a form. Throws `validation_error`. */
export function checkDecisionForm(fields: ReadonlyMap<string, string>) {
  return checkForm(fields, DECISIONS, ["Choose Approve or Reject.", "Must be approve or reject."]);
}

/**
 * The requests in a form that decides on several, as the page named them: "id,run,digest", with a space between two. Throws
 * `validation_error`.
 */
export function requestsInForm(fields: ReadonlyMap<string, string>): readonly ShownRequest[] {
  const named = (fields.get("requests") ?? "").split(" ").map((text): ShownRequest | null => {
    const [id = "", run = "", digest = "", ...more] = text.split(",");
    const isOurs = ACTION_ID.test(id) && /^\d{1,9}$/.test(run) && digest !== "" && digest.length <= DIGEST_CHARS_MAX;
    return isOurs && more.length === 0 ? { id, run: Number(run), digest } : null;
  });
  const requests = named.filter((request) => request !== null);
  if (requests.length === named.length && requests.length <= DECISIONS_AT_ONCE_MAX) return requests;
  throw new DomainError("validation_error", `Select 1 to ${DECISIONS_AT_ONCE_MAX} requests in the list.`);
}

/** What the page of an action offers. `retry_and_approve` starts a new run and approves it at once. */
const ACTION_DECISIONS = [...DECISIONS, "cancel", "send_now", "retry", "retry_and_approve"] as const;

/** The decision in the form of the page of an action. Throws `validation_error`. */
export function checkActionForm(fields: ReadonlyMap<string, string>) {
  return checkForm(fields, ACTION_DECISIONS, ["Choose what to do.", `Must be one of ${ACTION_DECISIONS.join(", ")}.`]);
}

function checkForm<Choice extends string>(
  fields: ReadonlyMap<string, string>,
  choices: readonly Choice[],
  [message, issue]: readonly [message: string, issue: string],
) {
  const decision = choices.find((choice) => choice === fields.get("decision"));
  if (decision !== undefined) return { decision, reason: checkReasonField(fields) };
  throw new DomainError("validation_error", message, [{ field: "decision", message: issue }]);
}
