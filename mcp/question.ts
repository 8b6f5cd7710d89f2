import { compile, withoutNulls } from "../src/contract/check.ts";
import { printed, Verdict } from "../src/contract/tool-schemas.ts";
import type { Action } from "../src/domain/action.ts";
import type { Caller } from "../src/domain/caller.ts";
import type { DecisionFacts, FactName } from "../src/domain/decision-facts.ts";
import { QUESTION_MS } from "../src/domain/limits.ts";
import { visibleText } from "../src/domain/visible.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Secrets } from "../src/ports/secrets.ts";
import type { Form } from "./call.ts";

const VERDICT = compile(Verdict);
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

export interface Decision {
  readonly decision: "approve" | "reject";
  readonly reason: string | null;
}

/** How a question ended without a decision: the person declined or closed it, or what came is no answer to it. */
export type NoDecision = "declined" | "unanswered";

/** What was answered. A text: it is no decision, and the action stays held. */
export function decisionIn(answer: unknown): Decision | NoDecision {
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

export interface QuestionDeps {
  readonly secrets: Pick<Secrets, "questionToken" | "isQuestionToken">;
  readonly clock: Clock;
}

/**
 * The state that goes out with a question and comes back with its answer (hostile M1, M2): when it ends, and a MAC that
 * binds it to account, key, action, run and the request itself. Nothing in it is a secret, and it survives a restart.
 */
export function stateOf(deps: QuestionDeps, caller: Caller, action: Action): string {
  const endsMs = deps.clock.now().getTime() + QUESTION_MS;
  return `${endsMs}.${deps.secrets.questionToken(aboutOf(caller, action, endsMs))}`;
}

/** Whether this is the state of a question that we asked this key about this run of this action, and not long ago. */
export function isStateOf({ secrets, clock }: QuestionDeps, caller: Caller, action: Action, state: unknown): boolean {
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
