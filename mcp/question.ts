import { compile, withoutNulls } from "../src/contract/check.ts";
import { printed, Verdict } from "../src/contract/tool-schemas.ts";
import type { Action } from "../src/domain/action.ts";
import type { Caller } from "../src/domain/caller.ts";
import { QUESTION_CHARS_MAX, QUESTION_MS } from "../src/domain/limits.ts";
import { maskedEarlier } from "../src/contract/masked.ts";
import { maskUrl } from "../src/domain/mask.ts";
import { MASK } from "../src/domain/mask-secret.ts";
import { normalTarget } from "../src/domain/normal-target.ts";
import { earlierLines, type EarlierRejection } from "../src/domain/rejections.ts";
import type { Clock } from "../src/ports/clock.ts";
import type { Secrets } from "../src/ports/secrets.ts";
import type { Form } from "./call.ts";

const VERDICT = compile(Verdict);
// Safe: flat, of two texts, as the protocol wants a form.
const SCHEMA = printed(Verdict) as Form["requestedSchema"];

/**
 * What a person is asked about an action: host, method and path as plain text, and what was said about the request before,
 * without what a client could take for a link or a line.
 */
export function formOf({ id, method, host, url, callback }: Action, earlier: readonly EarlierRejection[] = []): Form {
  const path = maskUrl(URL.parse(url)?.pathname ?? "/").replaceAll(MASK, PLAIN_MASK);
  const lines = [
    "Shall Outgate make this HTTP call?",
    `Host: ${plain(host)}`,
    `Method: ${method}`,
    `Path: ${plain(path)}`,
    ...callbackLines(callback),
    ...earlierLines(maskedEarlier(earlier).map(plainEntry), (by) => plain(by.replaceAll(MASK, PLAIN_MASK))),
    `Action: ${id}`,
  ];
  return { message: lines.join("\n"), requestedSchema: SCHEMA };
}

/** The mask in characters that stand in a question as they are. */
const PLAIN_MASK = "****";

/** Who hears of the call beside its target. */
function callbackLines(callback: string | null): readonly string[] {
  if (callback === null) return [];
  const { host, pathname } = normalTarget(callback) ?? { host: "?", pathname: "" };
  return [`Callback host: ${plain(host)}`, `Callback path: ${plain(maskUrl(pathname).replaceAll(MASK, PLAIN_MASK))}`];
}

/** What makes a link, a line or another direction of text where a client shows a question as more than text. */
const UNPLAIN = /[^!$%&'()+,\-./0-9:;=@A-Z_a-z~*]/gu;

const ADDRESS = /^\[[0-9a-f:.]+\](:\d+)?$/;

/** Anything else is shown as the code that a URL has for it; cut where a person stops reading (hostile M11). */
function plain(text: string): string {
  if (ADDRESS.test(text)) return text;
  const coded = text.toWellFormed().replaceAll(UNPLAIN, (character) => encodeURIComponent(character));
  if (coded.length <= QUESTION_CHARS_MAX) return coded;
  return `${coded.slice(0, QUESTION_CHARS_MAX)}… (${coded.length} characters)`;
}

function plainEntry(entry: EarlierRejection): EarlierRejection {
  return entry.reason === null ? entry : { ...entry, reason: plainWords(entry.reason) };
}

/** What somebody wrote, as words alone: nothing in it is a link, another line, or mark-up. Cut as the rest is. */
function plainWords(text: string): string {
  const words = text.toWellFormed().replaceAll(MASK, PLAIN_MASK).replaceAll(NO_WORD, " ").replaceAll(/ {2,}/g, " ");
  if (words.length <= QUESTION_CHARS_MAX) return words;
  return `${words.slice(0, QUESTION_CHARS_MAX).toWellFormed()}… (${words.length} characters)`;
}

/** Dots and colons stay where white space follows them, or nothing. */
const NO_WORD = /[^\p{L}\p{M}\p{N} .,:;!?'()%*+-]|[.:](?=\S)/gu;

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
