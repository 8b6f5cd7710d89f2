import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { authorize, type Caller, mayApproveWhenAsked, mayDo, requireMayChange } from "../src/core/roles.ts";
import { type Action, unknownExtras } from "../src/core/action.ts";
import { approve, isHeldIn, staleDecision } from "../src/core/changes.ts";
import { DomainError } from "../src/core/domain-error.ts";
import { compile, withoutNulls } from "../src/api/check.ts";
import { isJsonObject } from "../src/core/json.ts";
import { mayApproveIt } from "../src/core/policy.ts";
import { ADDRESS_FACTS, type DecisionFactsJson, maskedFacts } from "../src/approvals/facts.ts";
import {
  QUESTION_BODY_CHARS_MAX,
  QUESTION_BODY_LINES_MAX,
  QUESTION_BYTES_MAX,
  QUESTION_LINE_CHARS,
  QUESTION_MS,
} from "../src/core/limits.ts";
import { shownBody } from "../src/ui/body-view.tsx";
import { see } from "../src/receipts/see.ts";
import type { SeenAction } from "../src/receipts/seen-action.ts";
import { visibleText } from "../src/receipts/visible-text.ts";
import { ACTION_ID } from "../src/core/ids.ts";
import type { AgentDeps, QuestionForm, ToolCall } from "./call.ts";
import { describeAction, toolError, type ToolAnswer } from "./results.ts";
import { compileArguments, DecideArguments, ApprovalForm, schemaJson } from "./schemas.ts";
import { type JsonMember, shortenMembers } from "./shorten.ts";

/** The question to send; the client repeats the call with the answer and this state. */
export interface ApprovalQuestion {
  readonly form: QuestionForm;
  readonly state: string;
}

/** The name of the question among a call's questions. */
export const QUESTION = "approval";

const read = compileArguments(DecideArguments);

/** Asks a person if the client can; else the role of the key decides. No argument lets a model claim an approval. */
export async function askForApproval(deps: AgentDeps, call: ToolCall): Promise<ToolAnswer | ApprovalQuestion> {
  if (!mayApprove(deps, call)) return refuse(deps, call);
  const { actionService } = deps;
  const { elicitation, caller } = call;
  const { id, reason = null, run } = read(call.arguments);
  if (elicitation === null) {
    const ofRun = run === undefined ? undefined : { run, isHeld: false };
    return { json: await describeAction(deps, call, await actionService.approve(caller, id, reason, ofRun)) };
  }
  const action = await actionService.get(caller, id);
  requireMayChange(caller, action);
  requireRun(action, run);
  if (!mayApproveIt(caller, action)) return refuse(deps, call);
  // The role alone must not decide: this client's user expects to be asked.
  if (elicitation.era === "unreachable") return refuse(deps, call, notAskable(deps, OTHER_NODE));
  const isAnswered = elicitation.era === "modern" && (elicitation.answers !== null || elicitation.state !== undefined);
  if (isAnswered) {
    if (!isSealedState(deps, caller, action, elicitation.state)) {
      // The same message whether it is missing, altered, expired, or of another account, key, action or run.
      const message = "The state of this question is not valid, or has expired.";
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, message);
    }
    return settle(deps, call, action, elicitation.answers?.[QUESTION]);
  }
  requireHeld(action);
  const [history, seen] = await Promise.all([actionService.readHistory(action), see(action, "mail")]);
  const form = questionForm(seen, maskedFacts(seen, history, deps.config.baseUrl));
  if (Buffer.byteLength(form.message) > QUESTION_BYTES_MAX) return refuse(deps, call, notAskable(deps, TOO_LONG));
  if (elicitation.era === "modern") return { form, state: sealState(deps, caller, action) };
  return settle(deps, call, action, await elicitation.ask(form));
}

/** Whether this call may approve or ask. Throws before any look-up, so that a refusal doesn't reveal what exists. */
function mayApprove({ config }: AgentDeps, { caller, elicitation }: ToolCall): boolean {
  if (mayDo(caller.role, "approve") || !mayApproveWhenAsked(caller.role)) {
    authorize(caller, "approve");
    return true;
  }
  authorize(caller, "read");
  return elicitation !== null && config.agentApproval === "elicit";
}

function notAllowed({ config: { baseUrl } }: AgentDeps): DomainError {
  return new DomainError(
    "forbidden",
    `An agent's key may not approve this. A person decides: in the inbox at ${baseUrl}/approvals, by the link in the approval mail if ` +
      "one was sent, or with the key of an approver or owner.",
  );
}

/** The error if nobody can be asked here; people may decide elsewhere. */
function notAskable({ config: { baseUrl } }: AgentDeps, why: string): DomainError {
  const where = `in the inbox at ${baseUrl}/approvals, or by the link in the approval mail if one was sent`;
  return new DomainError("forbidden", `${why} A person decides: ${where}.`);
}

const OTHER_NODE =
  "This service runs on several nodes, where only clients of MCP revision 2026-07-28 can ask their person.";

/** Asks nobody unless the question can show in full where the call goes. */
const TOO_LONG = "The URL and the callback of this action are too long for a question.";

/** The action with the refusal. Throws if there is no such action, or it isn't held. */
async function refuse(deps: AgentDeps, call: ToolCall, refusal = notAllowed(deps)): Promise<ToolAnswer> {
  const { id } = call.arguments;
  if (typeof id !== "string" || !ACTION_ID.test(id)) throw refusal;
  const action = await deps.actionService.get(call.caller, id).catch((error: unknown) => {
    throw error instanceof DomainError && error.code === "not_found" ? refusal : error;
  });
  requireHeld(action);
  const outcome = { undecided: "unavailable", error: toolError(refusal) } as const;
  return { json: await describeAction(deps, call, action, outcome), refused: refusal.code };
}

/** Throws `not_approvable` if the action isn't held, so that nobody is asked in vain. */
function requireHeld(action: Action): void {
  const change = approve(action, { actor: action.createdBy, reason: null, now: action.createdAt, digest: "" });
  if (change instanceof DomainError) throw change;
}

/** Throws `not_approvable` if the action is in another run than the given one. */
function requireRun(action: Action, run: number | undefined): void {
  const late = run === undefined ? null : staleDecision("approve", action, { run, isHeld: false });
  if (late !== null) throw late;
}

/** Carries out the person's answer. */
async function settle(deps: AgentDeps, call: ToolCall, asked: Action, answer: unknown): Promise<ToolAnswer> {
  const { actionService } = deps;
  const { caller } = call;
  const decision = decisionIn(answer);
  if (typeof decision === "string") {
    const action = await actionService.get(caller, asked.id);
    // Somebody else may have decided meanwhile, and a later run would be another question.
    const undecided = isHeldIn(action, asked.run) ? decision : null;
    return { json: await describeAction(deps, call, action, { undecided }) };
  }
  const decide = decision.decision === "approve" ? actionService.approve : actionService.cancel;
  const ofRun = { run: asked.run, isHeld: true };
  const action = await decide({ ...caller, via: "elicitation" }, asked.id, decision.reason, ofRun);
  return { json: await describeAction(deps, call, action) };
}

const APPROVAL_FORM = compile(ApprovalForm);

// Safe: an object with two strings, which is a form in the protocol's terms.
const FORM_SCHEMA = schemaJson(ApprovalForm) as QuestionForm["requestedSchema"];

/** The question: one fact per line, risks below the URL, body and headers indented. Safe as Markdown, HTML and plain text. */
export function questionForm(action: SeenAction, { facts, risks }: DecisionFactsJson): QuestionForm {
  const warnings = risks.map(({ level, text }) => `${level === "note" ? "" : "! "}${plain(text)}`);
  const lines = [
    "Should Outgate send this HTTP call?",
    ...facts.flatMap(({ name, label, value }) => [
      `${label}: ${ADDRESS_FACTS.has(name) ? plainUrl(value) : unlinked(plain(value))}`,
      ...(name === "url" ? warnings : []),
      ...(name === "body" ? [...linesOfBody(action), ...linesOfHeaders(action)] : []),
    ]),
    "The action's link shows the whole request, after you log in.",
  ];
  return { message: shortLines(lines, facts).join(LINE_END), requestedSchema: FORM_SCHEMA };
}

/** A line break in Markdown, too. There, lines would else flow together, and a text look like the next facts. */
const LINE_END = "  \n";

/** Shortens a question by cutting its longest lines, but never those about where the call goes or its risks. */
function shortLines(lines: readonly string[], facts: DecisionFactsJson["facts"]): readonly string[] {
  const said = facts.filter(({ name }) => !ADDRESS_FACTS.has(name));
  const cuttable = new Set(said.map(({ label, value }) => `${label}: ${unlinked(plain(value))}`));
  const isWhole = (line = "") =>
    line.length <= QUESTION_LINE_CHARS || !(cuttable.has(line) || line.startsWith(BODY_INDENT));
  const written = lines.map((line, at): JsonMember => [String(at), JSON.stringify(line)]);
  const { members, cut } = shortenMembers(written, QUESTION_BYTES_MAX, (at) => isWhole(lines[Number(at)]));
  if (cut.length === 0) return lines;
  return [...members.map(([, json]) => String(JSON.parse(json))), "Lines that end with … are cut."];
}

/** The beginning of the body below an empty line, indented so that no line can pass for one of ours. */
function linesOfBody(action: SeenAction): readonly string[] {
  const body = shownBody(action, {
    lines: QUESTION_BODY_LINES_MAX,
    chars: QUESTION_BODY_CHARS_MAX,
  });
  if (body === null) return [];
  const shown = body.fields?.map((pair) => pair.join(": ")) ?? body.text?.split("\n") ?? ["Bytes that are not text."];
  const rest = body.rest === null ? [] : [`(${body.rest}: the action's link shows all of it.)`];
  return ["", ...[...shown, ...rest].map((line) => BODY_INDENT + unlinked(plain(line)))];
}

/** The headers, most values hidden: a name alone may say that the target does something else, such as `X-Amz-Copy-Source`. */
function linesOfHeaders({ headers }: SeenAction): readonly string[] {
  const shown = Object.entries(headers ?? {}).map((pair) => BODY_INDENT + unlinked(plain(pair.join(": "))));
  return shown.length === 0 ? [] : ["Headers:", "", ...shown];
}

/** Code in Markdown, if an empty line is before it. */
const BODY_INDENT = "    ";

/** Characters of links, code, tags, emphasis and entities, for clients that render Markdown or HTML. In a word, `_` is none. */
const MARKUP = /[[\]<>`|\\#*~]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])|&(?=#?\w{1,31};)/gu;

/** Untrusted text without markup, invisible characters and links. */
function plain(text: string): string {
  const visible = visibleText(text, { mark: (code) => `(${code})` });
  return visible.replaceAll(MARKUP, percentCode).replaceAll("://", ":%2F%2F");
}

/** Also of characters that need no encoding in a URL. */
function percentCode(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** The text without host names, which some clients turn into links. */
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
  return host + rest.replaceAll(UNPLAIN, (character) => encodeURIComponent(character)).replaceAll(MARKUP, percentCode);
}

/** What the person decided. A string says why there was no decision, and the action stays held. */
function decisionIn(answer: unknown): Decision | "declined" | "unanswered" {
  if (!isJsonObject(answer)) return "unanswered";
  const action = answer["action"];
  if (action === "decline" || action === "cancel") return "declined";
  const content = withoutNulls(answer["content"], ApprovalForm.properties);
  if (action !== "accept" || !APPROVAL_FORM.accepts(content)) return "unanswered";
  const { decision, reason = "" } = content;
  return { decision, reason: reason === "" ? null : reason };
}

interface Decision {
  readonly decision: "approve" | "reject";
  readonly reason: string | null;
}

/** What the client sends back with the answer: its expiry, and a MAC over who asks about what. It holds no secret. */
function sealState(deps: AgentDeps, caller: Caller, action: Action): string {
  const endsMs = deps.clock.now().getTime() + QUESTION_MS;
  return `${endsMs}.${deps.secrets.questionToken(macInput(caller, action, endsMs))}`;
}

/** Whether we issued this state to this key for this run of the action, and it hasn't expired. */
function isSealedState({ secrets, clock }: AgentDeps, caller: Caller, action: Action, state: unknown): boolean {
  const [, ends, token] = typeof state === "string" ? (/^(\d{1,15})\.([\w-]{1,100})$/.exec(state) ?? []) : [];
  if (ends === undefined || token === undefined) return false;
  const endsMs = Number(ends);
  const isUnexpired = clock.now().getTime() < endsMs;
  return secrets.isQuestionToken(macInput(caller, action, endsMs), token) && isUnexpired;
}

function macInput({ accountId, keyId }: Caller, action: Action, endsMs: number): string {
  const { id, run, method, url, headers, body, callback, extras } = action;
  const unknown = unknownExtras(extras);
  const request = [method, url, headers, body, callback, extras.bodyKind, ...(unknown === null ? [] : [unknown])];
  return JSON.stringify([accountId, keyId, id, run, endsMs, ...request]);
}
