import { maskedAction, maskedActor } from "../contract/masked.ts";
import { maskText } from "../domain/mask.ts";
import { visibleText } from "../domain/visible.ts";
import type { ApprovalMail, DecidedMail } from "../ports/mailer.ts";
import { approvalMailHtml, decidedMailHtml } from "../web/mail.tsx";
import { earlierTexts } from "../web/earlier.tsx";
import { type MailPart, type MailRequest, mailRequest } from "../web/mail-request.ts";
import { waitingWords } from "../web/summary.ts";
import { actorWords } from "../web/words.ts";

/** What a mail says, in both of its parts. */
export interface Letter {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** How the links of a mail work: `confirm` asks once more, `one_click` decides at once (decisions 7). */
export type LinkManner = "confirm" | "one_click";

/** The question: who asks for what, masked, the two links, and until when they work. */
export function approvalLetter({ action, earlier, links, receiptUrl }: ApprovalMail, manner: LinkManner): Letter {
  const request = mailRequest(action);
  const subject = subjectOf(request);
  const waiting = waitingWords(action);
  const facts = [
    ["Asked by", whoOf(maskedAction(action).createdBy)],
    ["At", moment(action.createdAt)],
    ["Attempts", `at most ${action.retries}`],
    ...(request.callback === null ? [] : [["Callback", visibleText(request.callback)] as const]),
    ...earlierTexts(earlier).map((line) => ["Before", visibleText(line)] as const),
    ["Action", action.id],
  ] as const;
  const terms = `${TERMS[manner]} They work until ${moment(links.expiresAt)}, for one decision.`;
  const text = [
    `Send this request? ${waiting}`,
    quoted(request.method, request.url),
    factsText(facts),
    ...(request.headers === null ? [] : [`Headers:\n${quoted("", request.headers)}`]),
    request.body === null ? "No body is sent." : `Body (${request.bodyKind}):\n${quoted("", request.body)}`,
    "Lines behind | are the request, masked: secrets are shown as ••••.",
    `Approve:\n${links.approve}`,
    `Reject:\n${links.reject}`,
    terms,
    `Details and what becomes of it:\n${receiptUrl}`,
    "Whoever has this mail can decide: do not pass it on.",
  ].join("\n\n");
  return { subject, text, html: approvalMailHtml({ subject, waiting, request, facts, links, receiptUrl, terms }) };
}

/** The answer that somebody else gave. */
export function decidedLetter(mail: DecidedMail): Letter {
  const { action, decision, actor, reason, at, receiptUrl } = mail;
  const request = mailRequest(action);
  const subject = `Re: ${subjectOf(request)}`;
  const sentence = `${decision === "approved" ? "Approved" : "Rejected"} by ${whoOf(maskedActor(actor))}`;
  const facts = [
    ["At", moment(at)],
    ...(reason === null ? [] : [["Reason", visibleText(maskText(reason))] as const]),
    ["Action", action.id],
  ] as const;
  const text = [
    `${sentence}. There is nothing left for you to decide; the links of the mail before this one lead to the receipt.`,
    quoted(request.method, request.url),
    factsText(facts),
    `Details and what becomes of it:\n${receiptUrl}`,
  ].join("\n\n");
  return { subject, text, html: decidedMailHtml({ subject, sentence, request, facts, receiptUrl }) };
}

const TERMS: Readonly<Record<LinkManner, string>> = {
  confirm: "Both links open a page that shows the request and asks once more.",
  one_click: "Following one of the two links decides at once.",
};

const SUBJECT_CHARS_MAX = 70;

/** The verb first, then method and host; the query stays out of it. One line whatever the URL holds. */
function subjectOf({ method, host, url }: MailRequest): string {
  const [line = ""] = url.lines;
  const [path = ""] = line.slice(line.indexOf("//") + 2 + host.length).split("?");
  const whole = Array.from(visibleText(`Approve? ${method} ${host}${path}`));
  return whole.length <= SUBJECT_CHARS_MAX ? whole.join("") : `${whole.slice(0, SUBJECT_CHARS_MAX - 1).join("")}…`;
}

function whoOf(actor: string): string {
  const { name, way } = actorWords(actor);
  return visibleText(`${name}, ${way}`);
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

const MOMENT = new Intl.DateTimeFormat("en-GB", {
  timeZone: "UTC",
  day: "numeric",
  month: "short",
  year: "numeric",
  hour: "2-digit",
  minute: "2-digit",
});

/** A mail does not know where it is read. */
function moment(at: Date): string {
  return `${MOMENT.format(at)} UTC`;
}
