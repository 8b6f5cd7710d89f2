import { factsOf } from "../contract/decision-facts.ts";
import { maskedActor } from "../contract/masked.ts";
import { moment, who } from "../domain/decision-facts.ts";
import { subjectOf } from "../domain/mail-subject.ts";
import { maskText } from "../domain/mask.ts";
import { visibleText } from "../domain/visible.ts";
import type { ApprovalMail, DecidedMail } from "../ports/mailer.ts";
import { approvalMailHtml, decidedMailHtml } from "../web/mail.tsx";
import { type MailPart, type MailRequest, mailRequest } from "../web/mail-request.ts";
import { waitingWords } from "../web/summary.ts";

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
    "Lines behind | are the request, masked: secrets are shown as ••••.",
    `Approve:\n${links.approve}`,
    `Reject:\n${links.reject}`,
    terms,
    `Details and result:\n${receiptUrl}`,
    "Whoever has this mail can decide: do not pass it on.",
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
    `${sentence}. There is nothing left for you to decide; the links of the mail before this one lead to the receipt.`,
    quoted(request.method, { lines: [request.url], note: null }),
    factsText(facts),
    `Details and result:\n${receiptUrl}`,
  ].join("\n\n");
  return { subject, text, html: decidedMailHtml({ subject, sentence, request, facts, receiptUrl }) };
}

const TERMS: Readonly<Record<LinkKind, string>> = {
  confirm: "Both links open a page that shows the request and asks once more.",
  one_click: "Following one of the two links decides at once.",
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
