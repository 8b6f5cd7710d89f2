import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { ActionService } from "../src/actions/desk.ts";
import { factsOf } from "../src/contract/decision-facts.ts";
import { compileArguments, DecideInput } from "../src/contract/tool-schemas.ts";
import type { Action } from "../src/domain/action.ts";
import { authorize, type Caller } from "../src/domain/caller.ts";
import { approve, isHeldIn, isRefusal, tooLate } from "../src/domain/change.ts";
import { mayApproveIt } from "../src/domain/creator.ts";
import { DomainError } from "../src/domain/errors.ts";
import { ACTION_ID } from "../src/domain/id.ts";
import { QUESTIONS_OPEN_MAX } from "../src/domain/limits.ts";
import { mayApproveWhenAsked, mayDo } from "../src/domain/roles.ts";
import { requireMayChange } from "../src/domain/scope.ts";
import { maskOneAhead } from "../src/masking/ahead.ts";
import type { Form, Questions, ToolCall } from "./call.ts";
import { formOf, isStateOf, type NoDecision, type QuestionDeps, stateOf, decisionIn } from "./question.ts";
import { type Places, whoDecides } from "./words.ts";

export interface ApproveDeps extends QuestionDeps, Places {
  readonly actionService: Pick<ActionService, "get" | "historyOf" | "approve" | "cancel">;
}

/** The question goes out, and the call is to be made again with its answer. */
export interface Asked {
  readonly form: Form;
  readonly state: string;
}

/** The action after its question was answered; `asked`: that brought no decision. */
export interface Answered {
  readonly action: Action;
  readonly asked: NoDecision | null;
}

/** Nobody was asked: the client can't, or this key may not. The action is held as before. */
export interface Unavailable {
  readonly action: Action;
  readonly refusal: DomainError;
}

const read = compileArguments(DecideInput);

/**
 * Approves by a person's word where the client can ask for it, whatever the role; where it can't, by the role of the key
 * alone (decisions 7, hostile M1 to M9). The model has no word in it: no argument says that a person agreed.
 */
export function createApprove(deps: ApproveDeps) {
  const { actionService, baseUrl } = deps;
  const ask = async (action: Action) => {
    const [history, ready] = await Promise.all([actionService.historyOf(action), maskOneAhead(action, "decider")]);
    return formOf(factsOf(ready, history, baseUrl));
  };
  const open = new Map<string, number>();

  const putNow = async (call: ToolCall, seen: Action, questions: Extract<Questions, { era: "legacy" }>) => {
    const form = await ask(seen);
    const asker = askerOf(call.caller());
    const others = open.get(asker) ?? 0;
    if (others >= QUESTIONS_OPEN_MAX) {
      throw new DomainError("rate_limited", `${QUESTIONS_OPEN_MAX} questions of this key wait for an answer already.`);
    }
    open.set(asker, others + 1);
    // No answer is no decision: the client failed, left, or took too long.
    const answer = await questions.put(form).catch(() => null);
    const left = (open.get(asker) ?? 1) - 1;
    if (left === 0) open.delete(asker);
    else open.set(asker, left);
    return settle(actionService, call.caller(), { seen, answer });
  };

  return async (call: ToolCall): Promise<Asked | Answered | Unavailable> => {
    if (!mayApprove(deps, call)) return refuse(deps, call);
    const { id, reason = null, run } = read(call.arguments);
    const { questions } = call;
    const caller = call.caller();
    const ofRun = run === undefined ? undefined : { run, isHeld: false };
    if (questions === null) return { action: await actionService.approve(caller, id, reason, ofRun), asked: null };
    const action = await actionService.get(caller, id);
    requireMayChange(caller, action);
    mustBeOf(action, run);
    if (!mayApproveIt(caller.role, action)) return refuse(deps, call);
    if (questions.era === "legacy") {
      mustAwait(action);
      return putNow(call, action, questions);
    }
    const isAnswered = questions.answers !== null || questions.state !== undefined;
    if (isAnswered && !isStateOf(deps, caller, action, questions.state)) throw invalidState();
    if (isAnswered) return settle(actionService, caller, { seen: action, answer: questions.answers?.[QUESTION] });
    mustAwait(action);
    return { form: await ask(action), state: stateOf(deps, caller, action) };
  };
}

/** The name of the question among those of a call. */
export const QUESTION = "approval";

/**
 * Whether this call may approve, or ask a person to. Throws `forbidden` for a role that never may: role and setting come before
 * the look-up, so that a refusal tells nothing about what exists.
 */
function mayApprove({ agentApproval }: ApproveDeps, { caller, questions }: ToolCall): boolean {
  const now = caller();
  if (mayDo(now.role, "approve") || !mayApproveWhenAsked(now.role)) {
    authorize(now, "approve");
    return true;
  }
  authorize(now, "read");
  return questions !== null && agentApproval === "elicit";
}

/** What a person answered about an action as it was when they were asked. */
interface Answer {
  readonly seen: Action;
  readonly answer: unknown;
}

async function settle(
  actionService: ApproveDeps["actionService"],
  caller: Caller,
  { seen, answer }: Answer,
): Promise<Answered> {
  const decision = decisionIn(answer);
  if (typeof decision === "string") {
    const action = await actionService.get(caller, seen.id);
    // Somebody else may have decided meanwhile, and of a later run nobody was asked.
    return { action, asked: isHeldIn(action, seen.run) ? decision : null };
  }
  const person: Caller = { ...caller, via: "elicitation" };
  const decide = decision.decision === "approve" ? actionService.approve : actionService.cancel;
  return { action: await decide(person, seen.id, decision.reason, { run: seen.run, isHeld: true }), asked: null };
}

/** Throws the refusal itself where there is no held action to show with it. */
async function refuse(deps: ApproveDeps, call: ToolCall): Promise<Unavailable> {
  const refusal = new DomainError("forbidden", whoDecides(deps));
  const { id } = call.arguments;
  if (typeof id !== "string" || !ACTION_ID.test(id)) throw refusal;
  const action = await deps.actionService.get(call.caller(), id).catch((error: unknown) => {
    throw error instanceof DomainError && error.code === "not_found" ? refusal : error;
  });
  mustAwait(action);
  return { action, refusal };
}

/** Throws `not_approvable` before a person is asked for nothing. */
function mustAwait(action: Action): void {
  const input = { actor: action.createdBy, reason: null, now: action.createdAt, digest: "" };
  const change = approve(action, input);
  if (isRefusal(change)) throw new DomainError(change.refused, change.message);
}

/** Throws `not_approvable` before a person is asked about another run than the one that was named. */
function mustBeOf(action: Action, run: number | undefined): void {
  const late = run === undefined ? null : tooLate("approve", action, { run, isHeld: false });
  if (late !== null) throw new DomainError(late.refused, late.message);
}

/** Whose questions are counted together. */
function askerOf({ accountId, keyId, actor }: Caller): string {
  return `${accountId} ${keyId ?? actor}`;
}

/** One refusal for a state that is missing, altered, late, or of another account, key, action or run (hostile M1, M2). */
function invalidState(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "The state of this question is not valid, or has expired.");
}
