import { asSent, maskedActor } from "../receipts/masked-action.ts";
import { actorText, ADDRESS_FACTS, type DecisionHistory, maskedFacts, utcMinute } from "../approvals/facts.ts";
import { maskText } from "../receipts/masking.ts";
import { visibleText, withoutLinks } from "../receipts/visible-text.ts";
import {
  type Asked,
  buttons,
  call,
  details,
  email,
  type EmailContent,
  footnote,
  opening,
  paragraph,
  question,
  receiptLink,
  type FactRow,
  factTable,
  terms,
} from "./templates.tsx";
import {
  accountSentence,
  actionPageUrl,
  chosenText,
  credentialPageUrl,
  credentialRequestUrl,
  credentialSentence,
  endOfHost,
  groupedFacts,
  messageSubject,
} from "./chat-messages.ts";
import { waitingText } from "../ui/text.ts";
import type { Credential, CredentialRequest } from "../core/credential.ts";
import type { MaskedAction } from "../receipts/seen-action.ts";
import type { Actor } from "../core/roles.ts";
import type { AccountLabel } from "../core/account-store.ts";
import type { Invitation } from "../core/team-store.ts";
import type { AskKind, CredentialAlert } from "../core/notification-events.ts";

/** A mail as it is sent. */
export interface Mail extends EmailContent {
  readonly to: string;
  /** The tag at the provider. */
  readonly event: MailedEvent;
  /** Stays the same when a mail is sent again. Unique together with the event. */
  readonly id: string;
  /** Left out if it is about no action. */
  readonly actionId?: string;
  /** The event of the mail that it replies to, which has the same id. */
  readonly follows?: MailedEvent;
}

type MailedEvent =
  | "approval"
  | "decided"
  | AskKind
  | "invited"
  | "credential"
  | "credential_requested"
  | "tested"
  | "password_link";

interface AboutAction {
  readonly to: string;
  readonly action: MaskedAction;
  /** The run that the mail is about. */
  readonly run: number;
}

function about({ to, action: { id }, run }: AboutAction) {
  return { to, id: `${id}.${run}`, actionId: id };
}

interface AskingMail extends AboutAction {
  readonly history: DecisionHistory;
  /** The account's name, if it has one: a person may decide for several. */
  readonly account: string | null;
  /** The address of the pages, without a trailing slash. */
  readonly baseUrl: string;
}

export interface ApprovalMail extends AskingMail {
  /** Absolute URLs. Whoever has one can decide. */
  readonly links: { readonly approve: string; readonly reject: string; readonly expiresAt: Date };
  readonly receiptUrl: string;
}

/** Asks for a decision by two links. `confirm`: they open a page with a button; `one_click`: opening one decides. */
export function approvalMessage(mail: ApprovalMail, linkKind: keyof typeof TERMS): Mail {
  const { action, run, links, receiptUrl, account, baseUrl } = mail;
  const asked = askedFor(mail);
  const sent = asSent(action);
  const content = email(messageSubject(sent, run), [
    ...question(sent, waitingText(action) + accountSentence(account), asked),
    buttons(
      { label: "Approve", href: links.approve, look: "filled" },
      { label: "Reject", href: links.reject, look: "outline" },
    ),
    terms(`${TERMS[linkKind]} They work until ${utcMinute(links.expiresAt)}, for one decision.`),
    details(asked.details),
    buttons({ ...OPEN, href: actionPageUrl(baseUrl, action.id), look: "quiet" }),
    receiptLink(receiptUrl),
    footnote("Anyone who has this email can decide. Don't forward it."),
  ]);
  return { ...about(mail), ...content, event: "approval" };
}

const TERMS = {
  confirm: "Both links open a page that shows the request and asks you to confirm.",
  one_click: "Opening either link decides immediately.",
} as const;

const OPEN = { label: "Open in Outgate", above: "Open in Outgate, after you log in" } as const;

/** The facts of a request. Except for its URLs, mail clients can't turn any part of them into links. */
function askedFor({ action, history, baseUrl }: AskingMail): Asked {
  const { facts, risks } = maskedFacts(action, history, baseUrl);
  const shown = facts.map((fact) =>
    ADDRESS_FACTS.has(fact.name) ? fact : { ...fact, value: withoutLinks(fact.value) },
  );
  const { hidden, words, details: rest } = groupedFacts(shown);
  return {
    risks,
    words,
    // Only the whole id: the button leads to the action's page, and the subject ends with the end of the id.
    details: [...rest, { name: "action", label: "Action", value: action.id }],
    hidden: hidden === null ? null : `${hidden}. To see hidden values, open it in Outgate.`,
  };
}

interface ChannelMail extends AskingMail {
  readonly event: AskKind;
  /** The channel's name. */
  readonly channel: string;
}

/** Asks for a decision by a link to the page where people decide after a sign-in. */
export function channelMessage(mail: ChannelMail): Mail {
  const { event, action, run, account, baseUrl, channel } = mail;
  const asked = askedFor(mail);
  const sent = asSent(action);
  const isReminder = event === "reminded";
  const waiting = `${isReminder ? "No one has decided yet. " : ""}${waitingText(action)}${accountSentence(account)}`;
  const open = { label: "Open in Outgate to decide", above: "Decide in Outgate, after you log in" };
  const content = email(`${isReminder ? "Reminder: " : ""}${messageSubject(sent, run)}`, [
    ...question(sent, waiting, asked),
    buttons({ ...open, href: actionPageUrl(baseUrl, action.id), look: "filled" }),
    details(asked.details),
    footnote(`You get this email because your address is in the channel ${chosenText(channel)}. To decide, log in.`),
  ]);
  return { ...about(mail), ...content, event, ...(isReminder && { follows: "requested" }) };
}

/** Who did something. Names of keys are chosen texts. */
function whoText(actor: Actor): string {
  const text = actorText(maskedActor(actor, "mail"));
  return /^(?:user|email):/.test(actor) ? addressText(text) : chosenText(text);
}

/** An address, or what begins with one, as it is. One with a slash could begin like a URL. */
function addressText(text: string): string {
  return text.includes("/") ? chosenText(text) : visibleText(text);
}

export interface DecidedMail extends AboutAction {
  readonly receiptUrl: string;
  readonly decision: keyof typeof DECISION_WORDS;
  readonly actor: Actor;
  readonly reason: string | null;
  readonly at: Date;
}

/** Replies to the mail that asked: how somebody else decided, or that no decision is needed any more. */
export function decisionMessage(mail: DecidedMail): Mail {
  const { action, run, decision, actor, reason, at, receiptUrl } = mail;
  const sent = asSent(action);
  const sentence = `${DECISION_WORDS[decision]} by ${whoText(actor)}`;
  const content = email(`Re: ${messageSubject(sent, run)}`, [
    opening(sentence, DECIDED, `${sentence}. ${DECIDED}`),
    call(sent),
    factTable([
      ["At", utcMinute(at)],
      ...(reason === null ? [] : [["Reason", chosenText(maskText(reason, "mail"))] as const]),
      ["Action", action.id],
    ]),
    receiptLink(receiptUrl),
  ]);
  return { ...about(mail), ...content, event: "decided", follows: "approval" };
}

const DECIDED = "You don't need to do anything. The links in the earlier email now open the receipt.";

const DECISION_WORDS = { approved: "Approved", rejected: "Rejected", withdrawn: "Withdrawn" } as const;

/** Shows that a channel works, or that mail does if `channel` is null. `id`: of this test. */
export function testMessage(to: string, id: string, channel: string | null): Mail {
  const works = `The channel ${chosenText(channel ?? "")} works. Outgate will ask for approvals at this address.`;
  const sentence = channel === null ? "Outgate can send email to this address." : works;
  return { ...email("Test email from Outgate", [paragraph(sentence)]), to, id: `${id}.1`, event: "tested" };
}

interface InvitedMail {
  readonly to: string;
  readonly invitation: Invitation;
  /** Absolute URL. Whoever has it and knows the address can join. */
  readonly link: string;
  readonly account: AccountLabel;
}

/** Sends the link of an invitation. Quotes the account's name, since its people chose it. */
export function invitationMessage({ to, invitation, link, account }: InvitedMail): Mail {
  const { id, role, expiresAt, createdBy } = invitation;
  const { host } = new URL(link);
  const content = email(`Invitation to Outgate at ${endOfHost(host)}`, [
    opening(
      "Join an account on Outgate",
      "You are invited to join an account on Outgate, which holds the HTTP calls of agents until a person approves them.",
    ),
    factTable([
      ["Invited by", whoText(createdBy)],
      ...accountFacts(account),
      ["Role", ROLE_TERMS[role]],
      ["Service", host],
    ]),
    buttons({ label: "Join", href: link, look: "filled" }),
    terms(`The link works once, until ${utcMinute(expiresAt)}, and only for this address. ${NOT_EXPECTED}`),
  ]);
  return { ...content, to, id: `${id}.1`, event: "invited" };
}

const NOT_EXPECTED = "If you didn't expect this email, ignore it. Don't forward it.";

const ROLE_TERMS: Readonly<Record<Invitation["role"], string>> = {
  owner: "Owner (can do everything)",
  approver: "Approver (can read, approve and reject)",
  reader: "Reader (can read)",
};

interface PasswordMail {
  readonly to: string;
  /** The link's id. */
  readonly id: string;
  /** Absolute URL. Whoever has it can log in as this person. */
  readonly link: string;
  readonly expiresAt: Date;
}

/** Sends a link for setting a first password, for people who log in with the identity provider. */
export function passwordMessage({ to, id, link, expiresAt }: PasswordMail): Mail {
  const until = `The link works once, until ${utcMinute(expiresAt)}. Using it logs you out everywhere else.`;
  const content = email(`Set a password for Outgate at ${endOfHost(new URL(link).host)}`, [
    opening("Set a password", "You asked for a link to set a password for your login."),
    buttons({ label: "Set a password", href: link, look: "filled" }),
    terms(`${until} If you didn't ask for it, ignore this email and check your sessions in Outgate. Don't forward it.`),
  ]);
  return { ...content, to, id: `${id}.1`, event: "password_link" };
}

/** Tells an owner which credential an agent asks for. Opening its link decides nothing, because the answer is a secret. */
export function credentialRequestMessage(to: string, request: CredentialRequest, baseUrl: string): Mail {
  const { id, host, reason, name, createdBy, expiresAt } = request;
  const subject = `Credential for ${endOfHost(host)}`;
  const says = (text: string) => `“${chosenText(maskText(text, "mail").replaceAll(/\s+/g, " "))}”`;
  const content = email(subject, [
    opening(
      withoutLinks(subject),
      "An agent asks for a credential: a secret that its calls are sent with, and that it never sees.",
    ),
    factTable([
      ["Host", chosenText(host)],
      ["Asked by", whoText(createdBy)],
      ["Reason", says(reason)],
      ...(name === null ? [] : [["Suggested name", says(name)] as const]),
      ["Expires", utcMinute(expiresAt)],
    ]),
    buttons({ ...OPEN, href: credentialRequestUrl(baseUrl, id), look: "filled" }),
    terms("Only owners can answer, after they log in. Never send a secret by email."),
  ]);
  return { ...content, to, id: `${id}.1`, event: "credential_requested" };
}

interface CredentialMail {
  readonly to: string;
  readonly credential: Pick<Credential, "id" | "name" | "hosts">;
  readonly alert: CredentialAlert;
  readonly account: AccountLabel;
  readonly baseUrl: string;
}

/** Tells an owner that a credential ends or has ended. Writes its name and hosts so that mail clients can't turn them into links. */
export function credentialMessage({ to, credential, alert, account, baseUrl }: CredentialMail): Mail {
  const { id, name, hosts } = credential;
  const { stage, expiresAt } = alert;
  const { host } = new URL(baseUrl);
  const shown = chosenText(name);
  const isOver = stage === "expired";
  const subject = `Credential ${shown} ${isOver ? "has expired" : "expires soon"} at ${endOfHost(host)}`;
  const content = email(subject, [
    opening(subject, credentialSentence(name, alert)),
    factTable([
      ["Credential", shown],
      ["May go to", chosenText(hosts.join(", "))],
      [isOver ? "Expired" : "Expires", utcMinute(expiresAt)],
      ...accountFacts(account),
      ["Service", host],
    ]),
    buttons({ label: "Open the credential", href: credentialPageUrl(baseUrl, name), look: "filled" }),
    terms("Change its time there, or delete it. You get this email because you own the account."),
  ]);
  return { ...content, to, id: `${id}.${stage}.${expiresAt.getTime()}.1`, event: "credential" };
}

function accountFacts({ name, email: address }: AccountLabel): readonly FactRow[] {
  return [
    ...(name === null ? [] : [["Account", `“${chosenText(name)}”`] as const]),
    ...(address === null ? [] : [["Account of", addressText(address)] as const]),
  ];
}
