import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import type { ActionService } from "../src/actions/service.ts";
import { factsOf } from "../src/approvals/facts-schema.ts";
import { compileArguments, DecideInput, printed, Verdict } from "./schemas.ts";
import type { Action } from "../src/actions/action.ts";
import { authorize, type Caller, mayApproveWhenAsked, mayDo, requireMayChange } from "../src/accounts/roles.ts";
import { approve, isHeldIn, isRefusal, tooLate } from "../src/actions/changes.ts";
import { mayApproveIt } from "../src/approvals/creator.ts";
import { DomainError } from "../src/api/domain-error.ts";
import { ACTION_ID } from "../src/runtime/ids.ts";
import { QUESTIONS_OPEN_MAX, QUESTION_MS } from "../src/config/limits.ts";
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

/** The question to send; the client repeats the call with the answer and this state. */
export interface Question {
  readonly form: Form;
  readonly state: string;
}

/** The action after the question; `undecided` says why there was no decision, null where there was one. */
interface Answered {
  readonly action: Action;
  readonly undecided: NoDecision | null;
}

/** Nobody could be asked, because of the client or the key. The action is still held. */
interface Unavailable {
  readonly action: Action;
  readonly refusal: DomainError;
}

const read = compileArguments(DecideInput);

/**
 * Asks a person where the client can, whatever the role of the key; where it can't, the key's role alone decides. No
 * argument lets the model claim that a person agreed. See "Approval" in mcp/README.md.
 */
export function createApprove(deps: ApproveDeps) {
  const { actionService, baseUrl } = deps;
  const questionAbout = async (action: Action) => {
    const [history, ready] = await Promise.all([actionService.historyOf(action), maskOneAhead(action, "decider")]);
    return formOf(factsOf(ready, history, baseUrl));
  };
  /** Number of open questions by key. */
  const open = new Map<string, number>();

  const askAndWait = async (call: ToolCall, seen: Action, questions: Extract<Questions, { era: "legacy" }>) => {
    const form = await questionAbout(seen);
    const asker = askerOf(call.caller());
    const others = open.get(asker) ?? 0;
    if (others >= QUESTIONS_OPEN_MAX) {
      throw new DomainError("rate_limited", `This key has ${QUESTIONS_OPEN_MAX} questions open already.`);
    }
    open.set(asker, others + 1);
    // No decision where the client failed, left, or took too long.
    const answer = await questions.put(form).catch(() => null);
    const remaining = (open.get(asker) ?? 1) - 1;
    if (remaining === 0) open.delete(asker);
    else open.set(asker, remaining);
    return settle(actionService, call.caller(), { seen, answer });
  };

  return async (call: ToolCall): Promise<Question | Answered | Unavailable> => {
    if (!mayApprove(deps, call)) return refuse(deps, call);
    const { id, reason = null, run } = read(call.arguments);
    const { questions } = call;
    const caller = call.caller();
    const ofRun = run === undefined ? undefined : { run, isHeld: false };
    if (questions === null) return { action: await actionService.approve(caller, id, reason, ofRun), undecided: null };
    const action = await actionService.get(caller, id);
    requireMayChange(caller, action);
    requireRun(action, run);
    if (!mayApproveIt(caller.role, action)) return refuse(deps, call);
    if (questions.era === "legacy") {
      requireHeld(action);
      return askAndWait(call, action, questions);
    }
    const isAnswered = questions.answers !== null || questions.state !== undefined;
    if (isAnswered && !isStateOf(deps, caller, action, questions.state)) throw invalidState();
    if (isAnswered) return settle(actionService, caller, { seen: action, answer: questions.answers?.[QUESTION] });
    requireHeld(action);
    return { form: await questionAbout(action), state: stateOf(deps, caller, action) };
  };
}

/** The name of the question among those of a call. */
export const QUESTION = "approval";

/**
 * Whether this call may approve, or ask a person to. Throws `forbidden` for a role that never may. Checked before the
 * look-up, so that a refusal doesn't reveal what exists.
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

/** A person's answer, and the action that they were asked about. */
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
    // Somebody else may have decided meanwhile, and a later run is another question.
    return { action, undecided: isHeldIn(action, seen.run) ? decision : null };
  }
  const person: Caller = { ...caller, via: "elicitation" };
  const decide = decision.decision === "approve" ? actionService.approve : actionService.cancel;
  return { action: await decide(person, seen.id, decision.reason, { run: seen.run, isHeld: true }), undecided: null };
}

/** The action with the refusal. Throws where there is no such action, or it isn't held. */
async function refuse(deps: ApproveDeps, call: ToolCall): Promise<Unavailable> {
  const refusal = new DomainError("forbidden", whoDecides(deps));
  const { id } = call.arguments;
  if (typeof id !== "string" || !ACTION_ID.test(id)) throw refusal;
  const action = await deps.actionService.get(call.caller(), id).catch((error: unknown) => {
    throw error instanceof DomainError && error.code === "not_found" ? refusal : error;
  });
  requireHeld(action);
  return { action, refusal };
}

/** Throws `not_approvable` where the action isn't held, so that nobody is asked in vain. */
function requireHeld(action: Action): void {
  const input = { actor: action.createdBy, reason: null, now: action.createdAt, digest: "" };
  const change = approve(action, input);
  if (isRefusal(change)) throw new DomainError(change.refused, change.message);
}

/** Throws `not_approvable` where the action is in another run than the given one. */
function requireRun(action: Action, run: number | undefined): void {
  const late = run === undefined ? null : tooLate("approve", action, { run, isHeld: false });
  if (late !== null) throw new DomainError(late.refused, late.message);
}

/** The key whose questions are counted together. */
function askerOf({ accountId, keyId, actor }: Caller): string {
  return `${accountId} ${keyId ?? actor}`;
}

/** One error for a state that is missing, altered, expired, or of another account, key, action or run. */
function invalidState(): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, "The state of this question is not valid, or has expired.");
}

const VERDICT = compile(Verdict);

// Safe: an object with two strings, which is a form in the protocol's terms.
const SCHEMA = printed(Verdict) as Form["requestedSchema"];

/** The question about an action: its risks and facts, one per line, safe to show as Markdown, HTML or plain text. */
export function formOf({ facts, risks }: DecisionFacts): Form {
  const lines = [
    "Should Outgate send this HTTP call?",
    ...risks.map(({ text }) => `! ${plain(text)}`),
    ...facts.map(
      ({ name, label, value }) => `${label}: ${ADDRESSES.has(name) ? plainUrl(value) : unlinked(plain(value))}`,
    ),
    "The action's link shows the whole request, after you log in.",
  ];
  return { message: lines.join("\n"), requestedSchema: SCHEMA };
}

const ADDRESSES: ReadonlySet<FactName> = new Set(["url", "callback", "action"]);

/** Characters of links, code and tags, for clients that render Markdown or HTML. */
const MARKUP = /[[\]<>`|\\#]/g;

/** Untrusted text without markup, invisible characters and links. */
function plain(text: string): string {
  const visible = visibleText(text, { mark: (code) => `(${code})` });
  return visible.replaceAll(MARKUP, (character) => encodeURIComponent(character)).replaceAll("://", ":%2F%2F");
}

/** Without host names, which some clients turn into links. */
function unlinked(text: string): string {
  return text.replaceAll(/\.(?=\p{L})/gu, "%2E");
}

/** Characters of a URL that could act as markup; the mask's characters are kept. */
const UNPLAIN = /[^!$%&'()+,\-./0-9:;=?@A-Z_a-z~*\u2022\u2026]/gu;

const HOST_OF_ADDRESS = /^https?:\/\/\[[0-9a-f:.]+\]/;

/** A whole URL, with every other character percent-encoded. */
function plainUrl(url: string): string {
  const [host = ""] = HOST_OF_ADDRESS.exec(url) ?? [];
  const rest = url.slice(host.length).toWellFormed();
  return host + rest.replaceAll(UNPLAIN, (character) => encodeURIComponent(character));
}

interface Decision {
  readonly decision: "approve" | "reject";
  readonly reason: string | null;
}

/** Why a question ended without a decision: the person declined or closed it, or there was no valid answer. */
type NoDecision = "declined" | "unanswered";

/** Reads an answer. A string means that there was no decision, and the action stays held. */
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
 * The state that the client sends back with the answer: its expiry, and a MAC over account, key, action, run and the
 * request itself. It holds no secret, and is valid after a restart.
 */
function stateOf(deps: QuestionDeps, caller: Caller, action: Action): string {
  const endsMs = deps.clock.now().getTime() + QUESTION_MS;
  return `${endsMs}.${deps.secrets.questionToken(macInput(caller, action, endsMs))}`;
}

/** Whether we issued this state to this key for this run of the action, and it hasn't expired. */
function isStateOf({ secrets, clock }: QuestionDeps, caller: Caller, action: Action, state: unknown): boolean {
  const [, ends, token] = typeof state === "string" ? (/^(\d{1,15})\.([\w-]{1,100})$/.exec(state) ?? []) : [];
  if (ends === undefined || token === undefined) return false;
  const endsMs = Number(ends);
  const isUnexpired = clock.now().getTime() < endsMs;
  return secrets.isQuestionToken(macInput(caller, action, endsMs), token) && isUnexpired;
}

function macInput({ accountId, keyId }: Caller, action: Action, endsMs: number): string {
  const { id, run, method, url, headers, body, callback } = action;
  return JSON.stringify([accountId, keyId, id, run, endsMs, method, url, headers, body, callback]);
}
