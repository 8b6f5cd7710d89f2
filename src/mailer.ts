import type { Config } from "./config.ts";
import { createMailer } from "./mail/mailer.ts";
import { parsePolicy, type TargetPolicy } from "./outbound/policy.ts";
import { createSender } from "./outbound/send.ts";
import type { Clock } from "./ports/clock.ts";
import type { Mailer } from "./ports/mailer.ts";
import { VERSION } from "./version.ts";

/** What sends mail by these settings; null where no provider is configured (spec "Approval paths"). */
export async function mailerOf({ mail, approvalLinks }: Config, clock: Clock): Promise<Mailer | null> {
  if (mail === null) return null;
  const sender = createSender(providerPolicy(mail.url));
  return createMailer({ settings: mail, sender, clock, linkManner: approvalLinks, userAgent: `Outgate/${VERSION}` });
}

/** The operator named the provider, so that it may be inside the network; nothing else may, and metadata never. */
function providerPolicy(url: string): TargetPolicy {
  const { hostname } = new URL(url);
  const policyWith = (allowedPrivateTargets: readonly string[]) =>
    parsePolicy({ allowedPrivateTargets, loopbackAllowed: true, ownOrigins: [url] });
  const policy = policyWith([hostname]);
  // A public address needs no entry, and one that is never allowed can have none: the call will say so.
  const plain = "problems" in policy ? policyWith([]) : policy;
  if ("problems" in plain) throw new Error(`MAILGUN_URL can't be used: ${plain.problems.join(" ")}`);
  return plain;
}
