import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { ActionDesk } from "../src/actions/desk.ts";
import { compileArguments, DecideInput } from "../src/contract/tool-schemas.ts";
import type { Action } from "../src/domain/action.ts";
import { authorize, type Caller } from "../src/domain/caller.ts";
import { approve, isRefusal } from "../src/domain/change.ts";
import { DomainError } from "../src/domain/errors.ts";
import { QUESTIONS_OPEN_MAX } from "../src/domain/limits.ts";
import { mayApproveWhenAsked, mayDo } from "../src/domain/roles.ts";
import type { Form, Questions, ToolCall } from "./call.ts";
import { formOf, isStateOf, type QuestionDeps, stateOf, decisionIn } from "./question.ts";
import { type Places, whoDecides } from "./words.ts";

export interface ApproveDeps extends QuestionDeps, Places {
  readonly desk: Pick<ActionDesk, "get" | "approve" | "cancel">;
  /** Whether an agent's key may approve what its client has put to a person. */
  readonly agentApproval: "elicit" | "off";
}

/** The question goes out, and the call is to be made again with its answer. */
export interface Asked {
  readonly form: Form;
  readonly state: string;
}

/** The action after the decision; `isOpen`: there was none, and it is still held. */
export interface Decided {
  readonly action: Action;
  readonly isOpen: boolean;
}

const read = compileArguments(DecideInput);

/**
 * Approves by a person's word where the client can ask for it, whatever the role; where it can't, by the role of the key
 * alone (decisions 7, hostile M1 to M9). The model has no word in it: no argument says that a person agreed.
 */
export function createApprove(deps: ApproveDeps) {
  const { desk } = deps;
  const open = new Map<string, number>();

  const settle = async (caller: Caller, seen: Action, answer: unknown): Promise<Decided> => {
    const decision = decisionIn(answer);
    if (decision === null) return { action: await desk.get(caller, seen.id), isOpen: true };
    const person: Caller = { ...caller, via: "elicitation" };
    const decide = decision.decision === "approve" ? desk.approve : desk.cancel;
    return { action: await decide(person, seen.id, decision.reason, seen.run), isOpen: false };
  };

  const putNow = async (call: ToolCall, seen: Action, questions: Extract<Questions, { era: "legacy" }>) => {
    const asker = askerOf(call.caller());
    const others = open.get(asker) ?? 0;
    if (others >= QUESTIONS_OPEN_MAX) {
      throw new DomainError("rate_limited", `${QUESTIONS_OPEN_MAX} questions of this key wait for an answer already.`);
    }
    open.set(asker, others + 1);
    // No answer is no decision: the client failed, left, or took too long.
    const answer = await questions.put(formOf(seen)).catch(() => null);
    const left = (open.get(asker) ?? 1) - 1;
    if (left === 0) open.delete(asker);
    else open.set(asker, left);
    return settle(call.caller(), seen, answer);
  };

  return async (call: ToolCall): Promise<Asked | Decided> => {
    mayApprove(deps, call);
    const { id, reason = null } = read(call.arguments);
    const { questions } = call;
    const caller = call.caller();
    if (questions === null) return { action: await desk.approve(caller, id, reason), isOpen: false };
    const action = await desk.get(caller, id);
    if (questions.era === "legacy") {
      mustAwait(action);
      return putNow(call, action, questions);
    }
    const isAnswered = questions.answers !== null || questions.state !== undefined;
    if (isAnswered && !isStateOf(deps, caller, action, questions.state)) throw invalidState();
    mustAwait(action);
    if (!isAnswered) return { form: formOf(action), state: stateOf(deps, caller, action) };
    return settle(caller, action, questions.answers?.[QUESTION]);
  };
}

/** The name of the question among those of a call. */
export const QUESTION = "approval";

/** Role and setting come before the look-up, so that a refusal tells nothing about what exists. */
function mayApprove({ agentApproval, baseUrl }: ApproveDeps, { caller, questions }: ToolCall): void {
  const now = caller();
  if (mayDo(now.role, "approve") || !mayApproveWhenAsked(now.role)) return authorize(now, "approve");
  authorize(now, "read");
  if (questions !== null && agentApproval === "elicit") return;
  throw new DomainError("forbidden", whoDecides({ baseUrl }));
}

/** Throws `not_approvable` before a person is asked for nothing. */
function mustAwait(action: Action): void {
  const input = { actor: action.createdBy, reason: null, now: action.createdAt, digest: "" };
  const change = approve(action, input);
  if (isRefusal(change)) throw new DomainError(change.refused, change.message);
}

/** Whose questions are counted together. */
function askerOf({ accountId, keyId, actor }: Caller): string {
  return `${accountId} ${keyId ?? actor}`;
}

/** One refusal for a state that is missing, altered, late, or of another account, key, action or run (hostile M1, M2). */
function invalidState(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "The state of this question is not valid, or has expired.");
}
