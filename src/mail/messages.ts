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
  actionPageUrl,
  credentialPageUrl,
  credentialRequestUrl,
  credentialSentence,
  groupedFacts,
} from "./chat-messages.ts";
import { waitingText } from "../ui/text.ts";
import type { Action } from "../core/action.ts";
import type { Credential, CredentialRequest } from "../core/credential.ts";
import type { MaskedAction } from "../receipts/seen-action.ts";
import type { Actor } from "../core/roles.ts";
import type { AccountLabel } from "../core/account-store.ts";
import type { Invitation } from "../core/team-store.ts";
import { endOfHost, subjectOf } from "../approvals/subject.ts";
import type { AskKind, CredentialAlert } from "../core/notification-events.ts";

/** `confirm`: a link opens a page with a button. `one_click`: opening it decides. */
type LinkKind = "confirm" | "one_click";

/** The approval mail: the masked request and two links. */
export function approvalMessage(mail: ApprovalMail<MaskedAction>, linkKind: LinkKind): EmailContent {
  const { action, run, links, receiptUrl, history, baseUrl } = mail;
  const asked = askedFor(action, history, baseUrl);
  const sent = asSent(action);
  return email(subjectOf(sent, run), [
    ...question(sent, waitingText(action), asked),
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
}

const TERMS: Readonly<Record<LinkKind, string>> = {
  confirm: "Both links open a page that shows the request and asks you to confirm.",
  one_click: "Opening either link decides immediately.",
};

const OPEN = { label: "Open in Outgate", above: "Open in Outgate, after you log in" } as const;

/** The facts without anything that a client could make a link, but for the URLs that are facts themselves. */
function askedFor(action: MaskedAction, history: DecisionHistory, baseUrl: string): Asked {
  const { facts, risks } = maskedFacts(action, history, baseUrl);
  const shown = facts.map((fact) =>
    ADDRESS_FACTS.has(fact.name) ? fact : { ...fact, value: withoutLinks(fact.value) },
  );
  const { hidden, words, details: rest } = groupedFacts(shown);
  return {
    risks,
    words,
    // Its page is behind the button; the subject has the end of the id.
    details: [...rest, { name: "action", label: "Action", value: action.id }],
    hidden: hidden === null ? null : `${hidden}. To see hidden values, open it in Outgate.`,
  };
}

/** The mail of a channel: the masked request, and a link to the page where people decide after a sign-in. */
export function channelMessage(mail: ChannelMail<MaskedAction>): EmailContent {
  const { event, action, run, history, baseUrl, channel } = mail;
  const asked = askedFor(action, history, baseUrl);
  const sent = asSent(action);
  const isReminder = event === "reminded";
  const waiting = `${isReminder ? "Nobody has decided yet. " : ""}${waitingText(action)}`;
  const open = { label: "Open in Outgate to decide", above: "Decide in Outgate, after you log in" };
  return email(`${isReminder ? "Reminder: " : ""}${subjectOf(sent, run)}`, [
    ...question(sent, waiting, asked),
    buttons({ ...open, href: actionPageUrl(baseUrl, action.id), look: "filled" }),
    details(asked.details),
    footnote(`You get this email because your address is in the channel ${visibleText(channel)}. To decide, log in.`),
  ]);
}

/** The mail that says how somebody else decided, or that nobody has to any more. */
export function decisionMessage(mail: DecidedMail<MaskedAction>): EmailContent {
  const { action, run, decision, actor, reason, at, receiptUrl } = mail;
  const sent = asSent(action);
  const sentence = `${DECISION_WORDS[decision]} by ${visibleText(actorText(maskedActor(actor, "mail")))}`;
  return email(`Re: ${subjectOf(sent, run)}`, [
    opening(sentence, DECIDED, `${sentence}. ${DECIDED}`),
    call(sent),
    factTable([
      ["At", utcMinute(at)],
      ...(reason === null ? [] : [["Reason", withoutLinks(visibleText(maskText(reason, "mail")))] as const]),
      ["Action", action.id],
    ]),
    receiptLink(receiptUrl),
  ]);
}

const DECIDED = "You don't need to do anything. The links in the earlier email now open the receipt.";

const DECISION_WORDS = { approved: "Approved", rejected: "Rejected", withdrawn: "Withdrawn" } as const;

/** The mail that shows that a channel, or mail at all, works. */
export function testMessage({ channel }: Pick<TestMail, "channel">): EmailContent {
  const works = `The channel ${visibleText(channel ?? "")} works. Outgate will ask for approvals at this address.`;
  const sentence = channel === null ? "Outgate can send email to this address." : works;
  return email("Test email from Outgate", [paragraph(sentence)]);
}

/** The mail with the link of an invitation. Who invites chose their own name: it is quoted. */
export function invitationMessage({ invitation, link, account }: InvitedMail): EmailContent {
  const { role, expiresAt, createdBy } = invitation;
  const { host } = new URL(link);
  return email(`Invitation to Outgate at ${endOfHost(host)}`, [
    opening(
      "Join an account on Outgate",
      "You are invited to join an account on Outgate, which holds the HTTP calls of agents until a person approves them.",
    ),
    factTable([
      ["Invited by", visibleText(actorText(createdBy))],
      ...accountFacts(account),
      ["Role", ROLE_TERMS[role]],
      ["Service", host],
    ]),
    buttons({ label: "Join", href: link, look: "filled" }),
    terms(`The link works once, until ${utcMinute(expiresAt)}, and only for this address. ${NOT_EXPECTED}`),
  ]);
}

const NOT_EXPECTED = "If you didn't expect this email, ignore it. Don't forward it.";

const ROLE_TERMS: Readonly<Record<Invitation["role"], string>> = {
  owner: "Owner (can do everything)",
  approver: "Approver (can read, approve and reject)",
  reader: "Reader (can read)",
};

/** The mail with a link that sets the first password of somebody who logs in by the identity provider. */
export function passwordMessage({ link, expiresAt }: Pick<PasswordMail, "link" | "expiresAt">): EmailContent {
  const until = `The link works once, until ${utcMinute(expiresAt)}. Using it logs you out everywhere else.`;
  return email(`Set a password for Outgate at ${endOfHost(new URL(link).host)}`, [
    opening("Set a password", "You asked for a link to set a password for your login."),
    buttons({ label: "Set a password", href: link, look: "filled" }),
    terms(`${until} If you didn't ask for it, ignore this email and check your sessions in Outgate. Don't forward it.`),
  ]);
}

/** The mail that tells an owner of what an agent asks for. Its link shows the request and decides nothing: the answer is a secret. */
export function credentialRequestMessage({ request, baseUrl }: CredentialRequestMail): EmailContent {
  const { id, host, reason, name, createdBy, expiresAt } = request;
  const subject = `Credential for ${endOfHost(host)}`;
  const says = (text: string) => `“${withoutLinks(visibleText(maskText(text, "mail").replaceAll(/\s+/g, " ")))}”`;
  return email(subject, [
    opening(subject, "An agent asks for a credential: a secret that its calls are sent with, and that it never sees."),
    factTable([
      ["Host", visibleText(host)],
      ["Asked by", visibleText(actorText(maskedActor(createdBy, "mail")))],
      ["Why", says(reason)],
      ...(name === null ? [] : [["Suggested name", says(name)] as const]),
      ["Expires", utcMinute(expiresAt)],
    ]),
    buttons({ ...OPEN, href: credentialRequestUrl(baseUrl, id), look: "filled" }),
    terms("Only owners can answer, after they log in. Never send a secret by email."),
  ]);
}

/** The mail that says that a credential ends or has ended. Its name and hosts could be made links: they are broken. */
export function credentialMessage({ credential, stage, expiresAt, account, baseUrl }: CredentialMail): EmailContent {
  const { name, hosts } = credential;
  const { host } = new URL(baseUrl);
  const shown = withoutLinks(visibleText(name));
  const isOver = stage === "expired";
  const subject = `Credential ${shown} ${isOver ? "has expired" : "expires soon"} at ${endOfHost(host)}`;
  return email(subject, [
    opening(subject, credentialSentence(credential, { stage, expiresAt })),
    factTable([
      ["Credential", shown],
      ["May go to", withoutLinks(visibleText(hosts.join(", ")))],
      [isOver ? "Expired" : "Expires", utcMinute(expiresAt)],
      ...accountFacts(account),
      ["Service", host],
    ]),
    buttons({ label: "Open the credential", href: credentialPageUrl(baseUrl, name), look: "filled" }),
    terms("Change its time there, or delete it. You get this email because you own the account."),
  ]);
}

function accountFacts({ name, email: address }: AccountLabel): readonly FactRow[] {
  return [
    ...(name === null ? [] : [["Account", `“${withoutLinks(visibleText(name))}”`] as const]),
    ...(address === null ? [] : [["Account of", visibleText(address)] as const]),
  ];
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
interface InvitedMail {
  readonly event: "invited";
  readonly to: string;
  readonly invitation: Invitation;
  /** Absolute URL. Anyone who has it and the address can join. */
  readonly link: string;
  readonly account: AccountLabel;
}

/** Tells an owner that a credential ends. It is about no action. */
interface CredentialMail extends CredentialAlert {
  readonly event: "credential";
  readonly to: string;
  readonly credential: Pick<Credential, "id" | "name" | "hosts">;
  readonly account: AccountLabel;
  /** The address of the pages, without a trailing slash. */
  readonly baseUrl: string;
}

/** Tells an owner of what an agent asks for. */
interface CredentialRequestMail {
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

export type OutgoingMail =
  | ApprovalMail
  | DecidedMail
  | InvitedMail
  | CredentialMail
  | CredentialRequestMail
  | ChannelMail
  | TestMail
  | PasswordMail;
