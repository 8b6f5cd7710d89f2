import type { Clock } from "../ports/clock.ts";
import { maskOneAhead } from "../masking/ahead.ts";
import type { Mailer, OutgoingMail } from "../ports/mailer.ts";
import type { Sender } from "../ports/sender.ts";
import { deliveryOf } from "./delivery.ts";
import { approvalLetter, decidedLetter, type LinkKind } from "./letter.ts";
import { createMailgun, type MailgunSettings } from "./mailgun.ts";

export interface MailerDeps {
  readonly settings: MailgunSettings;
  /** Reaches the provider, under its own policy. */
  readonly sender: Sender;
  readonly clock: Clock;
  readonly linkManner: LinkKind;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
}

/** Writes mails, and has Mailgun send them. */
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

/** Of action, run and event alone: a mail that is sent again, after a crash too, can be told for the same. */
function messageId({ action, run }: OutgoingMail, event: OutgoingMail["event"], domain: string): string {
  return `<${action.id}.${run}.${event}@${domain}>`;
}
