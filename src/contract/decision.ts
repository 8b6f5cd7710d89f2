import Type, { type Static } from "typebox";
import { type Decision as Said, DECISIONS } from "../domain/approval-link.ts";
import { DomainError } from "../domain/errors.ts";
import { compile, withoutNulls } from "./check.ts";
import { reason, run } from "./kinds.ts";

/** What may come with approve and cancel. */
export const Decision = Type.Object(
  {
    reason: Type.Optional(reason("Why; shown in the timeline.")),
    run: Type.Optional(
      run("Which run of the action is meant: in another one the decision is refused. Without it, whichever it is in."),
    ),
  },
  { title: "Decision", additionalProperties: false, description: "What may be said with a decision." },
);
export type Decision = Static<typeof Decision>;

/** What may come with retry. */
export const Retry = Type.Object(
  {
    reason: Type.Optional(
      reason(
        "Why; shown in the timeline. Required of an agent's key where a person has rejected the request within 24 hours.",
      ),
    ),
  },
  { title: "Retry", additionalProperties: false, description: "What may be said with a retry." },
);
export type Retry = Static<typeof Retry>;

const DECISION = compile(Decision);
const RETRY = compile(Retry);

/** What a decision says, if anything; no body at all is fine. Throws `validation_error`. */
export function checkDecision(value: unknown): { readonly reason: string | null; readonly run: number | null } {
  if (value === undefined) return { reason: null, run: null };
  const given = withoutNulls(value, Decision.properties);
  if (DECISION.accepts(given)) return { reason: given.reason ?? null, run: given.run ?? null };
  throw new DomainError("validation_error", "The request has fields that are not valid.", DECISION.issues(given));
}

/** The reason that a retry gives, if any. Throws `validation_error`. */
export function checkRetry(value: unknown): string | null {
  if (value === undefined) return null;
  const given = withoutNulls(value, Retry.properties);
  if (RETRY.accepts(given)) return given.reason ?? null;
  throw new DomainError("validation_error", "The request has fields that are not valid.", RETRY.issues(given));
}

/** What a person says on a page: yes or no, and a reason if there is one. */
export interface DecisionForm {
  readonly decision: Said;
  readonly reason: string | null;
}

/** The same from the fields of a form, in which a browser ends lines its own way. Throws `validation_error`. */
export function checkDecisionForm(fields: ReadonlyMap<string, string>): DecisionForm {
  const decision = DECISIONS.find((said) => said === fields.get("decision"));
  if (decision === undefined) {
    const issue = { field: "decision", message: "Must be approve or reject." };
    throw new DomainError("validation_error", "Choose Approve or Reject.", [issue]);
  }
  return { decision, reason: checkReasonField(fields) };
}

/** The reason in a form, if one was typed. Throws `validation_error`. */
export function checkReasonField(fields: ReadonlyMap<string, string>): string | null {
  const why = (fields.get("reason") ?? "").replaceAll("\r\n", "\n").trim();
  return checkDecision(why === "" ? undefined : { reason: why }).reason;
}

/** Everything that the page of an action offers to do with it; the last is a new run, released in the same breath. */
export const ACTION_DECISIONS = [...DECISIONS, "cancel", "retry", "retry_and_approve"] as const;
export type ActionDecision = (typeof ACTION_DECISIONS)[number];

/** What a person does on the page of an action. Throws `validation_error`. */
export function checkActionForm(fields: ReadonlyMap<string, string>) {
  const decision = ACTION_DECISIONS.find((said) => said === fields.get("decision"));
  if (decision !== undefined) return { decision, reason: checkReasonField(fields) };
  const issue = { field: "decision", message: `Must be one of ${ACTION_DECISIONS.join(", ")}.` };
  throw new DomainError("validation_error", "Choose what to do.", [issue]);
}
