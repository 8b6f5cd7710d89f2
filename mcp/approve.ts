import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { ActionService } from "../src/actions/service.ts";
import { factsOf } from "../src/approvals/facts-schema.ts";
import { compileArguments, DecideInput, printed, Verdict } from "./schemas.ts";
import type { Action } from "../src/actions/action.ts";
import { authorize, type Caller, mayApproveWhenAsked, mayDo } from "../src/accounts/roles.ts";
import { approve, isHeldIn, isRefusal, tooLate } from "../src/actions/changes.ts";
import { mayApproveIt } from "../src/approvals/creator.ts";
import { DomainError } from "../src/api/domain-error.ts";
import { ACTION_ID } from "../src/runtime/ids.ts";
import { QUESTIONS_OPEN_MAX, QUESTION_MS } from "../src/config/limits.ts";
import { requireMayChange } from "../src/accounts/scope.ts";
import { maskOneAhead } from "../src/receipts/masked-action.ts";
import type { Form, Questions, ToolCall } from "./call.ts";
import { type Places, whoDecides } from "./results.ts";
import { compile, withoutNulls } from "../src/api/schema-helpers.ts";
import type { DecisionFacts, FactName } from "../src/approvals/facts.ts";
import { visibleText } from "../src/receipts/visible-text.ts";
import type { Clock } from "../src/runtime/clock.ts";
import type { Secrets } from "../src/crypto/types.ts";

export interface ApproveDeps extends QuestionDeps, Places {
  readonly actionService: Pick<ActionService, "get" | "historyOf" | "approve" | "cancel">;
}

/** The question goes out, and the call is to be made again with its answer. */
export interface Asked {
  readonly form: Form;
  readonly state: string;
}

/** The action after its question was answered; `asked`: that brought no decision. */
interface Answered {
  readonly action: Action;
  readonly asked: NoDecision | null;
}

/** Nobody was asked: the client can't, or this key may not. The action is held as before. */
interface Unavailable {
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

const VERDICT = compile(Verdict);

// Safe: flat, of two texts, as the protocol wants a form.

// Safe: flat, of two texts, as the protocol wants a form.
const SCHEMA = printed(Verdict) as Form["requestedSchema"];

/** What a person is asked about an action: its risks and facts, a line each, as plain text wherever it is shown. */
export function formOf({ facts, risks }: DecisionFacts): Form {
  const lines = [
    "Shall Outgate make this HTTP call?",
    ...risks.map(({ text }) => `! ${plain(text)}`),
    ...facts.map(
      ({ name, label, value }) => `${label}: ${ADDRESSES.has(name) ? plainUrl(value) : unlinked(plain(value))}`,
    ),
    "The link of the action shows the whole request, and asks who you are.",
  ];
  return { message: lines.join("\n"), requestedSchema: SCHEMA };
}

const ADDRESSES: ReadonlySet<FactName> = new Set(["url", "callback", "action"]);

/** What makes a link, code or a tag where a client shows a question as more than text. */
const MARKUP = /[[\]<>`|\\#]/g;

/** Words, which may be anybody's: without what acts as markup, is no letter, or leads somewhere. */
function plain(text: string): string {
  const seen = visibleText(text, { mark: (code) => `(${code})` });
  return seen.replaceAll(MARKUP, (character) => encodeURIComponent(character)).replaceAll("://", ":%2F%2F");
}

/** Without the names of hosts that a client may make a link of, whoever wrote them. */
function unlinked(text: string): string {
  return text.replaceAll(/\.(?=\p{L})/gu, "%2E");
}

/** What of an address would act as markup; a mask is left as it is. */
const UNPLAIN = /[^!$%&'()+,\-./0-9:;=?@A-Z_a-z~*\u2022\u2026]/gu;

const HOST_OF_ADDRESS = /^https?:\/\/\[[0-9a-f:.]+\]/;

/** An address, whole: anything that is no plain character is shown as the code that a URL has for it. */
function plainUrl(url: string): string {
  const [host = ""] = HOST_OF_ADDRESS.exec(url) ?? [];
  const rest = url.slice(host.length).toWellFormed();
  return host + rest.replaceAll(UNPLAIN, (character) => encodeURIComponent(character));
}

interface Decision {
  readonly decision: "approve" | "reject";
  readonly reason: string | null;
}

/** How a question ended without a decision: the person declined or closed it, or what came is no answer to it. */
type NoDecision = "declined" | "unanswered";

/** What was answered. A text: it is no decision, and the action stays held. */
function decisionIn(answer: unknown): Decision | NoDecision {
  if (!isAccepted(answer)) return isDeclined(answer) ? "declined" : "unanswered";
  const content = withoutNulls(answer.content, Verdict.properties);
  if (!VERDICT.accepts(content)) return "unanswered";
  return {
    decision: content.decision,
    reason: content.reason === undefined || content.reason === "" ? null : content.reason,
  };
}

function isAccepted(answer: unknown): answer is { readonly content: unknown } {
  return (
    typeof answer === "object" &&
    answer !== null &&
    "action" in answer &&
    answer.action === "accept" &&
    "content" in answer
  );
}

function isDeclined(answer: unknown): boolean {
  const action = typeof answer === "object" && answer !== null && "action" in answer ? answer.action : null;
  return action === "decline" || action === "cancel";
}

interface QuestionDeps {
  readonly secrets: Pick<Secrets, "questionToken" | "isQuestionToken">;
  readonly clock: Clock;
}

/**
 * The state that goes out with a question and comes back with its answer (hostile M1, M2): when it ends, and a MAC that
 * binds it to account, key, action, run and the request itself. Nothing in it is a secret, and it survives a restart.
 */
function stateOf(deps: QuestionDeps, caller: Caller, action: Action): string {
  const endsMs = deps.clock.now().getTime() + QUESTION_MS;
  return `${endsMs}.${deps.secrets.questionToken(aboutOf(caller, action, endsMs))}`;
}

/** Whether this is the state of a question that we asked this key about this run of this action, and not long ago. */
function isStateOf({ secrets, clock }: QuestionDeps, caller: Caller, action: Action, state: unknown): boolean {
  const [, ends, token] = typeof state === "string" ? (/^(\d{1,15})\.([\w-]{1,100})$/.exec(state) ?? []) : [];
  if (ends === undefined || token === undefined) return false;
  const endsMs = Number(ends);
  const isOpen = clock.now().getTime() < endsMs;
  return secrets.isQuestionToken(aboutOf(caller, action, endsMs), token) && isOpen;
}

function aboutOf({ accountId, keyId }: Caller, action: Action, endsMs: number): string {
  const { id, run, method, url, headers, body, callback } = action;
  return JSON.stringify([accountId, keyId, id, run, endsMs, method, url, headers, body, callback]);
}
