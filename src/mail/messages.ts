import { factsOf } from "../approvals/facts-schema.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import { moment, who, type DecisionHistory } from "../approvals/facts.ts";
import { maskText } from "../receipts/masking.ts";
import { visibleText } from "../receipts/visible-text.ts";
import { approvalMailHtml, decidedMailHtml, type MailPart, type MailRequest, mailRequest } from "./templates.tsx";
import { waitingWords } from "../pages/words.ts";
import { retryAfterMs } from "../actions/backoff.ts";
import type { Delivery } from "../delivery/notification.ts";
import type { Stopped, SendLimits } from "../outbound/deadline.ts";
import { type Answered, describe, isPolicyRefusal, type Outcome } from "../actions/outcome.ts";
import type { Action } from "../actions/action.ts";
import type { Actor } from "../accounts/roles.ts";
import { SUBJECT_HOST_CHARS_MAX } from "../config/limits.ts";

/** What a mail says, in both of its parts. */
export interface EmailTemplate {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** How the links of a mail work: `confirm` asks once more, `one_click` decides at once (decisions 7). */
export type LinkKind = "confirm" | "one_click";

/** The question: what is to be known of the request, masked, the two links, and until when they work. */
export function approvalLetter(mail: ApprovalMail, manner: LinkKind): EmailTemplate {
  const { action, links, receiptUrl, history, baseUrl } = mail;
  const request = mailRequest(action);
  const { facts, risks } = factsOf(action, history, baseUrl);
  const subject = approvalSubject(request);
  const waiting = waitingWords(action);
  const terms = `${TERMS[manner]} They work until ${moment(links.expiresAt)}, for one decision.`;
  const text = [
    `Send this request? ${waiting}`,
    ...(risks.length === 0 ? [] : [risks.map((risk) => `! ${visibleText(risk.text)}`).join("\n")]),
    factsText(facts.map(({ label, value }) => [label, visibleText(value)])),
    ...(request.headers === null ? [] : [`Headers:\n${quoted("", request.headers)}`]),
    ...(request.body === null ? [] : [`Body (${request.bodyKind}):\n${quoted("", request.body)}`]),
    "Lines that start with | are quoted from the request. Secrets are masked as ••••.",
    `Approve:\n${links.approve}`,
    `Reject:\n${links.reject}`,
    terms,
    `Details and result:\n${receiptUrl}`,
    "Anyone who has this email can decide. Don't forward it.",
  ].join("\n\n");
  const html = approvalMailHtml({ subject, waiting, request, facts, risks, links, receiptUrl, terms });
  return { subject, text, html };
}

/** The answer that somebody else gave. */
export function decidedLetter(mail: DecidedMail): EmailTemplate {
  const { action, decision, actor, reason, at, receiptUrl } = mail;
  const request = mailRequest(action);
  const subject = `Re: ${approvalSubject(request)}`;
  const actorName = visibleText(who(maskedActor(actor, "decider")));
  const sentence = `${decision === "approved" ? "Approved" : "Rejected"} by ${actorName}`;
  const facts = [
    ["At", moment(at)],
    ...(reason === null ? [] : [["Reason", visibleText(maskText(reason, "decider"))] as const]),
    ["Action", action.id],
  ] as const;
  const text = [
    `${sentence}. You do not need to do anything. The links in the earlier email now open the receipt.`,
    quoted(request.method, { lines: [request.url], note: null }),
    factsText(facts),
    `Details and result:\n${receiptUrl}`,
  ].join("\n\n");
  return { subject, text, html: decidedMailHtml({ subject, sentence, request, facts, receiptUrl }) };
}

const TERMS: Readonly<Record<LinkKind, string>> = {
  confirm: "Both links open a page that shows the request and asks for confirmation.",
  one_click: "Opening either link decides immediately.",
};

const SUBJECT_CHARS_MAX = 70;

/** The query stays out of it. One line whatever the URL holds. */
function approvalSubject({ method, host, url }: MailRequest): string {
  const [path = ""] = url.slice(url.indexOf("//") + 2 + host.length).split("?");
  return subjectOf({ method, host }, visibleText(path), SUBJECT_CHARS_MAX);
}

/** Foreign lines, each marked as such, so that none can pass for ours. */
function quoted(head: string, { lines, note }: MailPart): string {
  const first = head === "" ? "" : `${head} `;
  const marked = lines.map((line, at) => `| ${at === 0 ? first : ""}${visibleText(line)}`);
  return [...marked, ...(note === null ? [] : [note])].join("\n");
}

function factsText(facts: readonly (readonly [name: string, value: string])[]): string {
  return facts.map(([name, value]) => `${name}: ${value}`).join("\n");
}

/**
 * What the provider's answer means for a mail. Only what is said of the mail itself is final: a key, a domain or a region
 * that is wrong is the operator's to mend, while the mail waits. Sentences are ours, and never hold what was answered.
 */
export function deliveryOf(outcome: Outcome | Stopped, now: Date, timeoutMs: number): Delivery {
  if (outcome.kind === "stopped") return { kind: "not_started", why: "stopping" };
  if (outcome.kind !== "answered") {
    const error = describe(outcome, timeoutMs).replaceAll("target", "mail provider");
    if (isPolicyRefusal(outcome)) return { kind: "refused", error };
    return outcome.fault === "interrupted"
      ? { kind: "interrupted", error }
      : { kind: "failed", error, notBeforeMs: null };
  }
  const { code } = outcome;
  if (code >= 200 && code <= 299) return isTaken(outcome) ? { kind: "delivered" } : { ...FAILED, error: NOT_MAILGUN };
  if (code === 400 || code === 413) return { kind: "refused", error: `The mail provider refused the mail (${code}).` };
  return { kind: "failed", error: sentenceOf(code), notBeforeMs: retryAfterMs(outcome.retryAfter, now) };
}

const FAILED = { kind: "failed", notBeforeMs: null } as const;

const NOT_MAILGUN = "The mail provider's answer was not Mailgun's: check MAILGUN_URL.";

/** Mailgun names the message that it has taken; whoever else answers with 200 has taken nothing. */
function isTaken({ body, truncated, brokenBy }: Answered): boolean {
  // The head has decided (decisions 4): what is missing of the body can't be held against it.
  if (truncated || brokenBy !== null) return true;
  const answer: unknown = JSON.parse(body ?? "null");
  return typeof answer === "object" && answer !== null && "id" in answer;
}

function sentenceOf(code: number): string {
  return SENTENCES[code] ?? `The mail provider answered with status ${code}.`;
}

const SENTENCES: Readonly<Record<number, string>> = {
  401: "The mail provider did not accept the key (401): check MAILGUN_API_KEY, and MAILGUN_URL for the region.",
  403: "The mail provider refused to send (403): check MAILGUN_DOMAIN; a sandbox domain sends only to authorised recipients.",
  404: "The mail provider does not know the domain (404): check MAILGUN_DOMAIN, and MAILGUN_URL for the region.",
  429: "The mail provider is rate limiting (429).",
};

interface AboutAction {
  readonly to: string;
  /** As it is now, not masked: whoever writes the mail masks it. */
  readonly action: Action;
  /** The run that the mail is about. */
  readonly run: number;
  /** The whole URL of the receipt. */
  readonly receiptUrl: string;
}

/** Asks for a decision. */
export interface ApprovalMail extends AboutAction {
  readonly event: "approval";
  /** Whole URLs; who has one can decide. */
  readonly links: { readonly approve: string; readonly reject: string; readonly expiresAt: Date };
  readonly history: DecisionHistory;
  /** Where people reach the pages, without a trailing slash. */
  readonly baseUrl: string;
}

/** Answers an approval mail: somebody else has decided. */
export interface DecidedMail extends AboutAction {
  readonly event: "decided";
  readonly decision: "approved" | "rejected";
  readonly actor: Actor;
  readonly reason: string | null;
  readonly at: Date;
}

export type OutgoingMail = ApprovalMail | DecidedMail;

/** Writes a mail and gives it to the provider, once. Whatever the provider does is a delivery. */
export interface Mailer {
  /** The same mail has the same `Message-ID` however often it is sent, so that a repeat can be told. */
  send(mail: OutgoingMail, limits: SendLimits): Promise<Delivery>;
}

/** The end of a host that is too long for a line, cut in front of a name of it: what is registered stands at the end. */
export function endOfHost(host: string): string {
  const labels = host.split(".");
  if (host.length <= SUBJECT_HOST_CHARS_MAX || host.startsWith("[")) return host;
  // As in `example.co.uk`: a short name before a country belongs to the suffix.
  const [name = "", country = ""] = labels.slice(-2);
  let kept = name.length <= 3 && /^[a-z]{2}(?::|$)/.test(country) ? 3 : 2;
  const end = () => labels.slice(-kept).join(".");
  while (kept < labels.length && `${labels.at(-kept - 1)}.${end()}`.length < SUBJECT_HOST_CHARS_MAX) kept += 1;
  return kept >= labels.length ? host : `…${end()}`;
}

/** The verb first, then method and host; the path, without its query, as far as the line goes. */
export function subjectOf({ method, host }: Pick<Action, "method" | "host">, path: string, charsMax: number): string {
  const start = `Approve? ${method} ${endOfHost(host)}`;
  const room = Math.max(charsMax - Array.from(start).length, 0);
  const characters = Array.from(path);
  if (characters.length <= room) return start + path;
  return room === 0 ? start : `${start}${characters.slice(0, room - 1).join("")}…`;
}
