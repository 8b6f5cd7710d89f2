import { type Action, REQUESTER_TEXTS } from "../core/action.ts";
import { actionJson } from "../receipts/action-json.ts";
import {
  actorText,
  ADDRESS_FACTS,
  type DecisionFactsJson,
  type DecisionHistory,
  type FactName,
  maskedFacts,
  utcMinute,
} from "../approvals/facts.ts";
import {
  MESSAGE_BODY_CHARS_MAX,
  MESSAGE_BODY_LINES_MAX,
  MESSAGE_FACT_CHARS_MAX,
  MESSAGE_FACTS_MAX,
  MESSAGE_LINES_CHARS_MAX,
  SUBJECT_HOST_CHARS_MAX,
  SUBJECT_ID_CHARS,
  SUBJECT_PATH_CHARS_MAX,
  SUBJECT_TITLE_CHARS_MAX,
} from "../core/limits.ts";
import type { Channel, PostedKind } from "../core/channel.ts";
import type { Credential, CredentialRequest } from "../core/credential.ts";
import { bodyLines, shownBody } from "../ui/body-view.tsx";
import { bodyKindText } from "../receipts/mask-body.ts";
import { asSent, maskedActor } from "../receipts/masked-action.ts";
import type { MaskedAction, SeenAction } from "../receipts/seen-action.ts";
import { visibleText, withoutLinks } from "../receipts/visible-text.ts";
import type { AskKind, CredentialAlert } from "../core/notification-events.ts";

/** Asks a channel for approval of an action. */
interface Question {
  readonly ask: AskKind;
  readonly at: Date;
  /** Masked as for the public, since readers of a channel need not be approvers. */
  readonly action: MaskedAction;
  readonly history: DecisionHistory;
  /** The account's name, if it has one. */
  readonly account: string | null;
  /** The address of the pages, without a trailing slash. */
  readonly baseUrl: string;
}

/** A text that somebody chose. No client can turn any part of it into a link. */
export function chosenText(text: string): string {
  return withoutLinks(visibleText(text));
}

/** Tells people who decide for several accounts which one asks. Quotes the name, since its people chose it. */
export function accountSentence(account: string | null): string {
  return account === null ? "" : ` The account is “${chosenText(account)}”.`;
}

/** The page of the action, which needs a sign-in. No message contains a link that decides or that opens without a sign-in. */
export function actionPageUrl(baseUrl: string, actionId: string): string {
  return `${baseUrl}/actions/${actionId}`;
}

/** The page of a credential, which needs a sign-in. */
export function credentialPageUrl(baseUrl: string, name: string): string {
  return `${baseUrl}/settings/credentials/${name}`;
}

/** Says what the end of a credential means for calls. */
export function credentialSentence(name: string, { stage, expiresAt }: CredentialAlert): string {
  const shown = chosenText(name);
  if (stage === "expired") return `The credential ${shown} has expired: calls with it fail, and nothing is sent.`;
  return `The credential ${shown} expires on ${utcMinute(expiresAt)}. From then on calls with it fail.`;
}

/** The facts of a message beside the call and its body, in display order. */
export interface GroupedFacts {
  /** A sentence on how many values are hidden; null if none are. */
  readonly hidden: string | null;
  /** The requester's words, which may be untrue. */
  readonly words: DecisionFactsJson["facts"];
  readonly details: DecisionFactsJson["facts"];
}

export function groupedFacts(facts: DecisionFactsJson["facts"]): GroupedFacts {
  return {
    hidden: facts.find(({ name }) => name === "hidden")?.value ?? null,
    words: facts.filter(({ name }) => WORDS.has(name)),
    details: facts.filter(({ name }) => !WORDS.has(name) && !SHOWN_APART.has(name)),
  };
}

const WORDS: ReadonlySet<FactName> = new Set(REQUESTER_TEXTS);

const SHOWN_APART: ReadonlySet<FactName> = new Set(["hidden", "method", "url", "body", "action"]);

export const WORDS_HEADING = "The requester says";

/** The lines of one fact below that heading. A title and metadata need no label. */
export function linesOfWords({ name, label, value }: DecisionFactsJson["facts"][number]): readonly string[] {
  const text = name === "title" || name === "metadata" ? value : `${label}: ${value}`;
  return text.split(/\r?\n/);
}

/** The body of a POST to an incoming webhook of Slack. Shows texts of others as plain text, without markup, mentions or links. */
function slackQuestion({ ask, action, history, account, baseUrl }: Question): string {
  const { facts, risks } = maskedFacts(action, history, baseUrl);
  const { hidden, words, details } = groupedFacts(facts);
  const sent = asSent(action);
  const { method, host, url } = sent;
  const reminder = ask === "requested" ? "" : "Reminder: ";
  return slackJson(`${reminder}${messageSubject(sent)}`, [
    { type: "header", text: plain(`${method} ${endOfHost(host)}`) },
    section(url),
    quiet(
      `${ask === "requested" ? "Awaiting approval" : "Reminder: still awaiting approval"}.${accountSentence(account)}`,
    ),
    ...risks.map(({ level, text }) => (level === "note" ? quiet(text) : section(`${RISK_SIGNS[level]} ${text}`))),
    bodySection(sent),
    ...(hidden === null ? [] : [quiet(`${hidden}. To see hidden values, open it in Outgate.`)]),
    ...(words.length === 0 ? [] : [linesSection(WORDS_HEADING, words.flatMap(linesOfWords))]),
    ...factSections(details),
    linkSection(actionPageUrl(baseUrl, action.id), "Open it in Outgate to decide"),
    quiet(`Secrets are masked. ${BROKEN_LINKS} To decide, log in.`),
  ]);
}

const RISK_SIGNS = { danger: "⛔", warning: "⚠" } as const;

function section(text: string): object {
  return { type: "section", text: plain(text) };
}

function linkSection(url: string, label: string): object {
  return { type: "section", text: { type: "mrkdwn", text: `<${escaped(url)}|${label}>` } };
}

/** A small, grey line. */
function quiet(text: string): object {
  return { type: "context", elements: [plain(text)] };
}

/** The beginning of the body, as the channel's readers may see it. */
function bodySection(action: SeenAction): object {
  const body = shownBody(action, { lines: MESSAGE_BODY_LINES_MAX, chars: MESSAGE_BODY_CHARS_MAX });
  if (body === null) return section(NO_BODY);
  const heading = `Body (${bodyKindText(action)})`;
  if (body.fields === null && body.text === null)
    return section(`${heading}: not shown here. Open it in Outgate to see it.`);
  return linesSection(heading, bodyLines(body).split("\n"), body.rest !== null);
}

export const NO_BODY = "No body is sent.";

/** Our heading, then the requester's lines, each marked so that none can look like ours. */
function linesSection(heading: string, lines: readonly string[], isBeginning = false): object {
  const first = shownText(heading);
  const marked = lines.map((line) => factLine(`| ${withoutLinks(line)}`));
  let chars = first.length;
  const end = marked.findIndex(({ text }) => (chars += text.length + 1) > MESSAGE_LINES_CHARS_MAX);
  const shown = end === -1 ? marked : marked.slice(0, end);
  const isCut = isBeginning || end !== -1 || marked.some((line) => line.isCut);
  const all = [
    first,
    ...shown.map(({ text }) => text),
    ...(isCut ? ["Cut. Open it in Outgate to see all of it."] : []),
  ];
  return { type: "section", text: { type: "plain_text", text: all.join("\n"), emoji: false } };
}

/** Tells readers what `withoutLinks` did. */
export const BROKEN_LINKS = "In the requester's texts, [.] stands for a dot, so that nothing in them becomes a link.";

/** Tells a channel something without asking for a decision. */
interface OwnerNotice {
  /** The event type in webhooks. */
  readonly type: string;
  readonly data: object;
  /** The notice in words, for people. */
  readonly text: string;
  /** The page about it, which needs a sign-in; null if there is none. */
  readonly url: string | null;
}

export function testNotice({ id, name }: Pick<Channel, "id" | "name">): OwnerNotice {
  const text = `Test from Outgate: the channel ${name} works.`;
  return { type: "channel.test", data: { channel: { id, name } }, text, url: null };
}

export function credentialNotice(
  { name, hosts }: Pick<Credential, "name" | "hosts">,
  alert: CredentialAlert,
  baseUrl: string,
): OwnerNotice {
  const credential = { name, hosts, expires_at: alert.expiresAt.toISOString() };
  const url = credentialPageUrl(baseUrl, name);
  return { type: `credential.${alert.stage}`, data: { credential, url }, text: credentialSentence(name, alert), url };
}

/** The notice of a request for a credential, without the reason, which is the agent's text. */
export function requestNotice({ id, host, createdBy, expiresAt }: CredentialRequest, baseUrl: string): OwnerNotice {
  const actor = maskedActor(createdBy, "public");
  const request = { id, host, created_by: actor, expires_at: expiresAt.toISOString() };
  const url = credentialRequestUrl(baseUrl, id);
  const text = `${chosenText(actorText(actor))} asks for a credential for ${chosenText(host)}. Only owners can answer.`;
  return { type: "credential.requested", data: { credential_request: request, url }, text, url };
}

/** What each kind of channel gets by POST. */
export const MESSAGE_FORMATS: Readonly<Record<PostedKind, MessageFormat>> = {
  slack: { isSigned: false, question: slackQuestion, notice: slackNotice },
  webhook: { isSigned: true, question: webhookQuestion, notice: webhookNotice },
};

interface MessageFormat {
  /** Slack checks no signature. */
  readonly isSigned: boolean;
  /** The body that asks for approval. */
  readonly question: (question: Question) => string;
  readonly notice: (notice: OwnerNotice, at: Date) => string;
}

function slackNotice({ text, url }: OwnerNotice): string {
  return slackJson(text, [section(text), ...(url === null ? [] : [linkSection(url, "Open it in Outgate")])]);
}

function webhookNotice({ type, data }: OwnerNotice, at: Date): string {
  return JSON.stringify({ type, timestamp: at.toISOString(), data });
}

/** The page of a request for a credential. It needs a sign-in, and opening it decides nothing. */
export function credentialRequestUrl(baseUrl: string, id: string): string {
  return `${baseUrl}/approvals/credentials/${id}`;
}

/** A message for Slack, which shows `text` in notifications and reads it as markup. */
function slackJson(text: string, blocks: readonly object[]): string {
  return JSON.stringify({ text: shownText(text), mrkdwn: false, unfurl_links: false, unfurl_media: false, blocks });
}

/** Slack's limit of fields in a section. */
const SECTION_FIELDS_MAX = 10;

function factSections(facts: DecisionFactsJson["facts"]): readonly object[] {
  const fields = facts.slice(0, MESSAGE_FACTS_MAX).map(({ name, label, value }) => {
    return plain(`${label}: ${ADDRESS_FACTS.has(name) ? value : withoutLinks(value)}`);
  });
  const rest = facts.length - fields.length;
  if (rest > 0) fields.push(plain(`${rest} more in Outgate`));
  const starts = Array.from({ length: Math.ceil(fields.length / SECTION_FIELDS_MAX) }, (_, at) => at);
  return starts.map((at) => {
    const start = at * SECTION_FIELDS_MAX;
    return { type: "section", fields: fields.slice(start, start + SECTION_FIELDS_MAX) };
  });
}

function plain(text: string) {
  return { type: "plain_text", text: shownText(text), emoji: false };
}

/** A text as one line, cut, without anything that Slack reads as a mention or a link. */
function shownText(text: string): string {
  return factLine(text).text;
}

function factLine(text: string): { readonly text: string; readonly isCut: boolean } {
  const characters = Array.from(visibleText(text));
  const isCut = characters.length > MESSAGE_FACT_CHARS_MAX;
  const shown = isCut ? `${characters.slice(0, MESSAGE_FACT_CHARS_MAX).join("")}…` : characters.join("");
  return { text: escaped(shown), isCut };
}

/** Escapes the three characters that Slack's markup is made of. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The body of a POST to a webhook. Leaves out the receipt, whose link would open without a sign-in. */
function webhookQuestion({ ask, at, action, history, baseUrl }: Question): string {
  const shown = actionJson(action, { now: at, receiptUrl: null, hidesHeaderValues: true });
  const { facts, risks } = maskedFacts(action, history, baseUrl);
  const rest = JSON.stringify({ facts, risks, url: actionPageUrl(baseUrl, action.id) }).slice(1);
  return `{"type":"approval.${ask}","timestamp":"${at.toISOString()}","data":{"action":${shown},${rest}}`;
}

/**
 * `Approve? api.stripe.com · POST /v1/refunds · "Refund order 5999" · qqpjmk`, for a run of a masked action. Ends with the end
 * of the id, because clients put mails with one subject into one conversation: a decision could meet the wrong one of two equal
 * requests.
 */
export function messageSubject(
  { id, run: latest, method, host, url, title }: Pick<Action, "id" | "run" | "method" | "host" | "url" | "title">,
  run = latest,
): string {
  // Drops the query.
  const [path = ""] = url.slice(url.indexOf("//") + 2 + host.length).split(/[?#]/, 1);
  const quoted =
    title === null || title.trim() === "" ? [] : [`"${beginning(inQuotes(title), SUBJECT_TITLE_CHARS_MAX)}"`];
  const parts = [
    endOfHost(host),
    `${method} ${beginning(visibleText(path), SUBJECT_PATH_CHARS_MAX)}`,
    ...quoted,
    `${id.slice(-SUBJECT_ID_CHARS)}${run === 1 ? "" : `, run ${run}`}`,
  ];
  return `Approve? ${parts.join(" · ")}`;
}

/** Quotes a requester's text so that it can't end the quotation or the line, or become a link. */
function inQuotes(title: string): string {
  return chosenText(title).replaceAll(/\p{Quotation_Mark}/gu, "'");
}

function beginning(text: string, charsMax: number): string {
  const characters = Array.from(text);
  return characters.length <= charsMax ? text : `${characters.slice(0, charsMax - 1).join("")}…`;
}

/** Cuts a long host to its last labels, because the registered name is at the end. */
export function endOfHost(host: string): string {
  const labels = host.split(".");
  if (host.length <= SUBJECT_HOST_CHARS_MAX || host.startsWith("[")) return host;
  // `example.co.uk`: a short label before a country code belongs to the suffix.
  const [name = "", country = ""] = labels.slice(-2);
  let kept = name.length <= 3 && /^[a-z]{2}(?::|$)/.test(country) ? 3 : 2;
  const end = () => labels.slice(-kept).join(".");
  while (kept < labels.length && `${labels.at(-kept - 1)}.${end()}`.length < SUBJECT_HOST_CHARS_MAX) kept += 1;
  return kept >= labels.length ? host : `…${end()}`;
}
