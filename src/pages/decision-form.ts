import { DecisionBody } from "../actions/schemas.ts";
import { DECISIONS } from "../actions/status.ts";
import { DomainError } from "../api/domain-error.ts";
import { bodyCheck } from "../api/schema-helpers.ts";

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
