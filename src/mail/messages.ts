import { maskedActor } from "../receipts/masked-action.ts";
import { actorText, ADDRESS_FACTS, type DecisionHistory, maskedFacts, utcMinute } from "../approvals/facts.ts";
import { maskText } from "../receipts/masking.ts";
import { visibleText, withoutLinks } from "../receipts/visible-text.ts";
import {
  approvalMailHtml,
  type Asked,
  channelMailHtml,
  decisionMailHtml,
  linkMailHtml,
  type MailPart,
  type MailRequest,
  mailRequest,
  testMailHtml,
} from "./templates.tsx";
import {
  actionPageUrl,
  BROKEN_LINKS,
  credentialPageUrl,
  credentialRequestUrl,
  credentialSentence,
  groupedFacts,
  NO_BODY,
  WORDS_HEADING,
  wordsText,
} from "./chat-messages.ts";
import type { AskKind } from "../core/channel.ts";
import { waitingText } from "../ui/text.ts";
import type { Action } from "../core/action.ts";
import type { Credential } from "../core/credential.ts";
import type { CredentialAlert } from "../core/credential-alert.ts";
import type { MaskedAction } from "../receipts/seen-action.ts";
import type { Actor } from "../core/roles.ts";
import type { AccountLabel } from "../core/account-store.ts";
import type { CredentialRequest } from "../core/credential-request.ts";
import type { Invitation } from "../core/team-store.ts";
import { endOfHost, subjectOf } from "../approvals/subject.ts";

/** A mail as it is sent. */
export interface EmailContent {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** `confirm`: a link opens a page with a button. `one_click`: opening it decides. */
type LinkKind = "confirm" | "one_click";

/** The approval mail: the masked request and two links. */
export function approvalMessage(mail: ApprovalMail<MaskedAction>, linkKind: LinkKind): EmailContent {
  const { action, run, links, receiptUrl, history, baseUrl } = mail;
  const request = mailRequest(action);
  const asked = askedFor(action, history, baseUrl);
  const subject = subjectOf({ ...request, run });
  const waiting = waitingText(action);
  const url = actionPageUrl(baseUrl, action.id);
  const terms = `${TERMS[linkKind]} They work until ${utcMinute(links.expiresAt)}, for one decision.`;
  const text = [
    `Send this request? ${waiting}`,
    ...askedText(request, asked),
    `Approve:\n${links.approve}`,
    `Reject:\n${links.reject}`,
    terms,
    `Details:\n${detailsText(asked)}`,
    `Open in Outgate, after you log in:\n${url}`,
    `Receipt:\n${receiptUrl}`,
    QUOTED,
    "Anyone who has this email can decide. Don't forward it.",
  ].join("\n\n");
  const html = approvalMailHtml({ subject, waiting, request, ...asked, links, url, receiptUrl, terms });
  return { subject, text, html };
}

/** How the text part separates what others wrote from what we write. */
const QUOTED = `Lines that start with | are quoted from the request. Secrets are masked as ••••. ${BROKEN_LINKS}`;

/** The parts of a request that come before the decision, in the order in which every place of decision shows them. */
function askedText(request: MailRequest, { risks, words, hidden }: Asked): readonly string[] {
  const { method, url, headers, body, bodyKind } = request;
  return [
    `${method} ${visibleText(url)}`,
    ...(risks.length === 0
      ? []
      : [risks.map(({ level, text }) => `${level === "note" ? "" : "! "}${visibleText(text)}`).join("\n")]),
    body === null ? NO_BODY : `Body (${bodyKind}):\n${quoted(body)}`,
    ...(headers === null ? [] : [`Headers:\n${quoted(headers)}`]),
    ...(hidden === null ? [] : [hidden]),
    ...(words.length === 0 ? [] : [`${WORDS_HEADING}:\n${quoted({ lines: words.map(wordsText), note: null })}`]),
  ];
}

function detailsText({ details }: Asked): string {
  return rowsText(details.map(({ label, value }) => [label, visibleText(value)]));
}

const DECIDED = "You don't need to do anything. The links in the earlier email now open the receipt.";

const DECISION_WORDS = { approved: "Approved", rejected: "Rejected", withdrawn: "Withdrawn" } as const;

/** The mail that says how somebody else decided, or that nobody has to any more. */
export function decisionMessage(mail: DecidedMail<MaskedAction>): EmailContent {
  const { action, run, decision, actor, reason, at, receiptUrl } = mail;
  const request = mailRequest(action);
  const subject = `Re: ${subjectOf({ ...request, run })}`;
  const actorName = visibleText(actorText(maskedActor(actor, "mail")));
  const sentence = `${DECISION_WORDS[decision]} by ${actorName}`;
  const facts = [
    ["At", utcMinute(at)],
    ...(reason === null ? [] : [["Reason", withoutLinks(visibleText(maskText(reason, "mail")))] as const]),
    ["Action", action.id],
  ] as const;
  const text = [
    `${sentence}. ${DECIDED}`,
    `${request.method} ${visibleText(request.url)}`,
    rowsText(facts),
    `Receipt:\n${receiptUrl}`,
  ].join("\n\n");
  return { subject, text, html: decisionMailHtml({ subject, sentence, terms: DECIDED, request, facts, receiptUrl }) };
}

/** The facts without anything that a client could make a link, but for the URLs that are facts themselves. */
function askedFor(action: MaskedAction, history: DecisionHistory, baseUrl: string): Asked {
  const { facts, risks } = maskedFacts(action, history, baseUrl);
  const shown = facts.map((fact) =>
    ADDRESS_FACTS.has(fact.name) ? fact : { ...fact, value: withoutLinks(fact.value) },
  );
  const { hidden, words, details: rest } = groupedFacts(shown);
  // Its page is behind the button; the subject has the end of the id.
  const details = [...rest, { name: "action", label: "Action", value: action.id } as const];
  return {
    risks,
    words,
    details,
    hidden: hidden === null ? null : `${hidden}. To see hidden values, open it in Outgate.`,
  };
}

/** The mail of a channel: the masked request, and a link to the page where people decide after a sign-in. */
export function channelMessage({
  event,
  action,
  run,
  history,
  baseUrl,
  channel,
}: ChannelMail<MaskedAction>): EmailContent {
  const request = mailRequest(action);
  const asked = askedFor(action, history, baseUrl);
  const isReminder = event === "reminded";
  const subject = `${isReminder ? "Reminder: " : ""}${subjectOf({ ...request, run })}`;
  const waiting = isReminder ? `Nobody has decided yet. ${waitingText(action)}` : waitingText(action);
  const url = actionPageUrl(baseUrl, action.id);
  const terms = `You get this email because your address is in the channel ${visibleText(channel)}. To decide, log in.`;
  const text = [
    `Send this request? ${waiting}`,
    ...askedText(request, asked),
    `Decide in Outgate, after you log in:\n${url}`,
    `Details:\n${detailsText(asked)}`,
    QUOTED,
    terms,
  ].join("\n\n");
  return { subject, text, html: channelMailHtml({ subject, waiting, request, ...asked, url, terms }) };
}

/** The mail that shows that a channel, or mail at all, works. */
export function testMessage({ channel }: Pick<TestMail, "channel">): EmailContent {
  const subject = "Test email from Outgate";
  const sentence =
    channel === null
      ? "Outgate can send email to this address."
      : `The channel ${visibleText(channel)} works. Outgate will ask for approvals at this address.`;
  return { subject, text: sentence, html: testMailHtml({ subject, sentence }) };
}

/** The mail with the link of an invitation. Who invites chose their own name: it is quoted. */
export function invitationMessage({ invitation, link, account }: InvitedMail): EmailContent {
  const { role, expiresAt, createdBy } = invitation;
  const { host } = new URL(link);
  const subject = `Invitation to Outgate at ${endOfHost(host)}`;
  const facts = [
    ["Invited by", visibleText(actorText(createdBy))],
    ...accountFacts(account),
    ["Role", ROLE_TERMS[role]],
    ["Service", host],
  ] as const;
  const sentence =
    "You are invited to join an account on Outgate, which holds the HTTP calls of agents until a person approves them.";
  const terms = `The link works once, until ${utcMinute(expiresAt)}, and only for this address. ${NOT_EXPECTED}`;
  const title = "Join an account on Outgate";
  const text = [sentence, rowsText(facts), `Join:\n${link}`, terms].join("\n\n");
  return { subject, text, html: linkMailHtml({ subject, title, sentence, facts, link, label: "Join", terms }) };
}

/** The mail with a link that sets the first password of somebody who logs in by the identity provider. */
export function passwordMessage({ link, expiresAt }: Pick<PasswordMail, "link" | "expiresAt">): EmailContent {
  const subject = `Set a password for Outgate at ${endOfHost(new URL(link).host)}`;
  const sentence = "You asked for a link to set a password for your login.";
  const terms = `The link works once, until ${utcMinute(expiresAt)}. Using it logs you out everywhere else. ${NOT_ASKED}`;
  const title = "Set a password";
  const text = [sentence, `${title}:\n${link}`, terms].join("\n\n");
  return { subject, text, html: linkMailHtml({ subject, title, sentence, facts: [], link, label: title, terms }) };
}

/** The mail that tells an owner of what an agent asks for. Its link shows the request and decides nothing: the answer is a secret. */
export function credentialRequestMessage({ request, baseUrl }: CredentialRequestMail): EmailContent {
  const { id, host, reason, name, createdBy, expiresAt } = request;
  const subject = `Credential for ${endOfHost(host)}`;
  const says = (text: string) => `“${withoutLinks(visibleText(maskText(text, "mail").replaceAll(/\s+/g, " ")))}”`;
  const facts = [
    ["Host", visibleText(host)],
    ["Asked by", visibleText(actorText(maskedActor(createdBy, "mail")))],
    ["Why", says(reason)],
    ...(name === null ? [] : [["Suggested name", says(name)] as const]),
    ["Expires", utcMinute(expiresAt)],
  ] as const;
  const sentence = "An agent asks for a credential: a secret that its calls are sent with, and that it never sees.";
  const link = credentialRequestUrl(baseUrl, id);
  const terms = "Only owners can answer, after they log in. Never send a secret by email.";
  const text = [sentence, rowsText(facts), `Open in Outgate, after you log in:\n${link}`, terms].join("\n\n");
  const html = linkMailHtml({ subject, title: subject, sentence, facts, link, label: "Open in Outgate", terms });
  return { subject, text, html };
}

/** The mail that says that a credential ends or has ended. Its name and hosts could be made links: they are broken. */
export function credentialMessage({ credential, stage, expiresAt, account, baseUrl }: CredentialMail): EmailContent {
  const { name, hosts } = credential;
  const { host } = new URL(baseUrl);
  const link = credentialPageUrl(baseUrl, name);
  const shown = withoutLinks(visibleText(name));
  const isOver = stage === "expired";
  const subject = `Credential ${shown} ${isOver ? "has expired" : "expires soon"} at ${endOfHost(host)}`;
  const sentence = credentialSentence(credential, { stage, expiresAt });
  const facts = [
    ["Credential", shown],
    ["May go to", withoutLinks(visibleText(hosts.join(", ")))],
    [isOver ? "Expired" : "Expires", utcMinute(expiresAt)],
    ...accountFacts(account),
    ["Service", host],
  ] as const;
  const terms = "Change its time there, or delete it. You get this email because you own the account.";
  const label = "Open the credential";
  const text = [sentence, rowsText(facts), `${label}:\n${link}`, terms].join("\n\n");
  const html = linkMailHtml({ subject, title: subject, sentence, facts, link, label, terms });
  return { subject, text, html };
}

function accountFacts({ name, email }: AccountLabel): readonly (readonly [name: string, value: string])[] {
  return [
    ...(name === null ? [] : [["Account", `“${withoutLinks(visibleText(name))}”`] as const]),
    ...(email === null ? [] : [["Account of", visibleText(email)] as const]),
  ];
}

const NOT_EXPECTED = "If you didn't expect this email, ignore it. Don't forward it.";

const NOT_ASKED = "If you didn't ask for it, ignore this email and check your sessions in Outgate. Don't forward it.";

const ROLE_TERMS: Readonly<Record<Invitation["role"], string>> = {
  owner: "Owner (can do everything)",
  approver: "Approver (can read, approve and reject)",
  reader: "Reader (can read)",
};

const TERMS: Readonly<Record<LinkKind, string>> = {
  confirm: "Both links open a page that shows the request and asks you to confirm.",
  one_click: "Opening either link decides immediately.",
};

/** Marks each untrusted line, so that none can look like ours. */
function quoted({ lines, note }: MailPart): string {
  const marked = lines.map((line) => `| ${visibleText(line)}`);
  return [...marked, ...(note === null ? [] : [note])].join("\n");
}

function rowsText(rows: readonly (readonly [name: string, value: string])[]): string {
  return rows.map(([name, value]) => `${name}: ${value}`).join("\n");
}

interface AboutAction<Shown> {
  readonly to: string;
  /** The current action: as it is stored until the mailer masks it. */
  readonly action: Shown;
  /** The run that the mail is about. */
  readonly run: number;
  /** The absolute URL of the receipt. */
  readonly receiptUrl: string;
}

export interface ApprovalMail<Shown = Action> extends AboutAction<Shown> {
  readonly event: "approval";
  /** Absolute URLs. Anyone who has one can decide. */
  readonly links: { readonly approve: string; readonly reject: string; readonly expiresAt: Date };
  readonly history: DecisionHistory;
  /** The address of the pages, without a trailing slash. */
  readonly baseUrl: string;
}

/** A reply to an approval mail: somebody else has decided. */
export interface DecidedMail<Shown = Action> extends AboutAction<Shown> {
  readonly event: "decided";
  readonly decision: "approved" | "rejected" | "withdrawn";
  readonly actor: Actor;
  readonly reason: string | null;
  readonly at: Date;
}

/** Invites somebody to an account. It is about no action. */
export interface InvitedMail {
  readonly event: "invited";
  readonly to: string;
  readonly invitation: Invitation;
  /** Absolute URL. Anyone who has it and the address can join. */
  readonly link: string;
  readonly account: AccountLabel;
}

/** Tells an owner that a credential ends. It is about no action. */
export interface CredentialMail extends CredentialAlert {
  readonly event: "credential";
  readonly to: string;
  readonly credential: Pick<Credential, "id" | "name" | "hosts">;
  readonly account: AccountLabel;
  /** The address of the pages, without a trailing slash. */
  readonly baseUrl: string;
}

/** Tells an owner of what an agent asks for. */
export interface CredentialRequestMail {
  readonly event: "credential_requested";
  readonly to: string;
  readonly request: CredentialRequest;
  readonly baseUrl: string;
}

/** Asks for a decision, which needs a sign-in: of a channel. */
interface ChannelMail<Shown = Action> extends Omit<AboutAction<Shown>, "receiptUrl"> {
  readonly event: AskKind;
  readonly history: DecisionHistory;
  /** The address of the pages, without a trailing slash. */
  readonly baseUrl: string;
  /** The name of the channel. */
  readonly channel: string;
}

/** Shows that mails arrive, of a channel or at all. It is about no action. */
interface TestMail {
  readonly event: "tested";
  readonly to: string;
  /** Of this test. */
  readonly id: string;
  /** Null: somebody tests the mail of the service. */
  readonly channel: string | null;
}

/** Lets somebody without a password set one. It is about no action. */
interface PasswordMail {
  readonly event: "password_link";
  readonly to: string;
  /** Of this link. */
  readonly id: string;
  /** Absolute URL. Anyone who has it can log in as this person. */
  readonly link: string;
  readonly expiresAt: Date;
}

/** Mails that are about no action and no invitation. */
type OwnMailMessage = TestMail | PasswordMail;

export type OutgoingMail =
  | ApprovalMail
  | DecidedMail
  | InvitedMail
  | CredentialMail
  | CredentialRequestMail
  | ChannelMail
  | OwnMailMessage;
