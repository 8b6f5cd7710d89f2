import type { Clock } from "../runtime/clock.ts";
import { maskOneAhead } from "../receipts/masked-action.ts";
import {
  type Mailer,
  type OutgoingMail,
  deliveryOf,
  approvalLetter,
  decidedLetter,
  type LinkKind,
} from "./messages.ts";
import type { Sender } from "../outbound/deadline.ts";
import { createMailgun, type MailgunSettings } from "./mailgun.ts";
import { type Config, VERSION } from "../config/config.ts";
import { parsePolicy, type TargetPolicy } from "../outbound/policy.ts";
import { createSender } from "../outbound/send.ts";

export interface MailerDeps {
  readonly settings: MailgunSettings;
  /** Sends to the provider, with its own target policy. */
  readonly sender: Sender;
  readonly clock: Clock;
  readonly linkManner: LinkKind;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
}

/** A mailer that sends by Mailgun. */
export async function createMailer(deps: MailerDeps): Promise<Mailer> {
  const { settings, sender, clock, linkManner, userAgent } = deps;
  const give = await createMailgun(settings, sender, userAgent);
  return {
    async send(asked, limits) {
      const mail = { ...asked, action: await maskOneAhead(asked.action, "decider") };
      const email = mail.event === "approval" ? approvalLetter(mail, linkManner) : decidedLetter(mail);
      const message = {
        ...email,
        to: mail.to,
        messageId: messageId(mail, mail.event, settings.domain),
        inReplyTo: mail.event === "decided" ? messageId(mail, "approval", settings.domain) : null,
        tag: mail.event,
        actionId: mail.action.id,
      };
      const outcome = await give(message, limits);
      return deliveryOf(outcome, clock.now(), limits.timeoutMs);
    },
  };
}

/** Depends only on action, run and event, so that a mail that is sent again has the same ID. */
function messageId({ action, run }: OutgoingMail, event: OutgoingMail["event"], domain: string): string {
  return `<${action.id}.${run}.${event}@${domain}>`;
}

/** The mailer for these settings; null if no provider is configured. */
export async function mailerOf({ mail, approvalLinks }: Config, clock: Clock): Promise<Mailer | null> {
  if (mail === null) return null;
  const sender = createSender(providerPolicy(mail.url));
  return createMailer({ settings: mail, sender, clock, linkManner: approvalLinks, userAgent: `Outgate/${VERSION}` });
}

/** The operator sets the provider's address, so it may be private. Metadata addresses are still refused. */
function providerPolicy(url: string): TargetPolicy {
  const { hostname } = new URL(url);
  const policyWith = (allowedPrivateTargets: readonly string[]) =>
    parsePolicy({ allowedPrivateTargets, loopbackAllowed: true, ownOrigins: [url] });
  const policy = policyWith([hostname]);
  // Only a private host can be listed. A forbidden one is refused at the call.
  const plain = "problems" in policy ? policyWith([]) : policy;
  if ("problems" in plain) throw new Error(`MAILGUN_URL can't be used: ${plain.problems.join(" ")}`);
  return plain;
}
