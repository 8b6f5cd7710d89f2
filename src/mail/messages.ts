import { maskedActor } from "../receipts/masked-action.ts";
import { actorText, type DecisionHistory, maskedFacts, utcMinute } from "../approvals/facts.ts";
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

/** The subject and both parts of a mail. */
export interface EmailTemplate {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** `confirm`: a link opens a page with a button. `one_click`: opening it decides. */
export type LinkKind = "confirm" | "one_click";

/** The approval mail: the masked request and two links. */
export function approvalLetter(mail: ApprovalMail, manner: LinkKind): EmailTemplate {
  const { action, links, receiptUrl, history, baseUrl } = mail;
  const request = mailRequest(action);
  const { facts, risks } = maskedFacts(action, history, baseUrl);
  const subject = approvalSubject(request);
  const waiting = waitingWords(action);
  const terms = `${TERMS[manner]} They work until ${utcMinute(links.expiresAt)}, for one decision.`;
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

/** The mail that says how somebody else decided. */
export function decidedLetter(mail: DecidedMail): EmailTemplate {
  const { action, decision, actor, reason, at, receiptUrl } = mail;
  const request = mailRequest(action);
  const subject = `Re: ${approvalSubject(request)}`;
  const actorName = visibleText(actorText(maskedActor(actor, "decider")));
  const sentence = `${decision === "approved" ? "Approved" : "Rejected"} by ${actorName}`;
  const facts = [
    ["At", utcMinute(at)],
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

/** Without the query, and always one line. */
function approvalSubject({ method, host, url }: MailRequest): string {
  const [path = ""] = url.slice(url.indexOf("//") + 2 + host.length).split("?");
  return subjectOf({ method, host }, visibleText(path), SUBJECT_CHARS_MAX);
}

/** Marks each untrusted line, so that none can look like ours. */
function quoted(head: string, { lines, note }: MailPart): string {
  const first = head === "" ? "" : `${head} `;
  const marked = lines.map((line, at) => `| ${at === 0 ? first : ""}${visibleText(line)}`);
  return [...marked, ...(note === null ? [] : [note])].join("\n");
}

function factsText(facts: readonly (readonly [name: string, value: string])[]): string {
  return facts.map(([name, value]) => `${name}: ${value}`).join("\n");
}

/**
 * What the provider's response means for a mail. Only errors of the mail itself are final. A wrong key, domain or region can
 * be fixed while the mail waits. The sentences are fixed and never contain text of the response.
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

/** Mailgun returns an ID for an accepted message. Any other 200 is not Mailgun's. */
function isTaken({ body, truncated, brokenBy }: Answered): boolean {
  // The status counts, even if the body is incomplete.
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
  /** The current action, not masked. The mailer masks it. */
  readonly action: Action;
  /** The run that the mail is about. */
  readonly run: number;
  /** The absolute URL of the receipt. */
  readonly receiptUrl: string;
}

export interface ApprovalMail extends AboutAction {
  readonly event: "approval";
  /** Absolute URLs. Anyone who has one can decide. */
  readonly links: { readonly approve: string; readonly reject: string; readonly expiresAt: Date };
  readonly history: DecisionHistory;
  /** The address of the pages, without a trailing slash. */
  readonly baseUrl: string;
}

/** A reply to an approval mail: somebody else has decided. */
export interface DecidedMail extends AboutAction {
  readonly event: "decided";
  readonly decision: "approved" | "rejected";
  readonly actor: Actor;
  readonly reason: string | null;
  readonly at: Date;
}

export type OutgoingMail = ApprovalMail | DecidedMail;

/** Sends a mail once. Failures are deliveries, not exceptions. */
export interface Mailer {
  /** The same mail always has the same `Message-ID`, so that repeats can be detected. */
  send(mail: OutgoingMail, limits: SendLimits): Promise<Delivery>;
}

/** The end of a long host, cut before a label: the registered name is at the end. */
export function endOfHost(host: string): string {
  const labels = host.split(".");
  if (host.length <= SUBJECT_HOST_CHARS_MAX || host.startsWith("[")) return host;
  // As in `example.co.uk`: a short label before a country code belongs to the suffix.
  const [name = "", country = ""] = labels.slice(-2);
  let kept = name.length <= 3 && /^[a-z]{2}(?::|$)/.test(country) ? 3 : 2;
  const end = () => labels.slice(-kept).join(".");
  while (kept < labels.length && `${labels.at(-kept - 1)}.${end()}`.length < SUBJECT_HOST_CHARS_MAX) kept += 1;
  return kept >= labels.length ? host : `…${end()}`;
}

/** "Approve?", method and host, then as much of the path as fits. */
export function subjectOf({ method, host }: Pick<Action, "method" | "host">, path: string, charsMax: number): string {
  const start = `Approve? ${method} ${endOfHost(host)}`;
  const room = Math.max(charsMax - Array.from(start).length, 0);
  const characters = Array.from(path);
  if (characters.length <= room) return start + path;
  return room === 0 ? start : `${start}${characters.slice(0, room - 1).join("")}…`;
}
