import type { Texts } from "./read-settings.ts";
import type { Settings } from "./settings.ts";

/** How Mailgun is reached. */
export interface MailSettings {
  readonly apiKey: string;
  readonly domain: string;
  readonly from: string;
  /** Without a trailing slash. */
  readonly url: string;
}

/** null when no key is set: then no mail is sent (spec "Approval paths"). */
export function mailOf(settings: Settings): MailSettings | null {
  const { MAILGUN_API_KEY: apiKey, MAILGUN_DOMAIN: domain, MAILGUN_FROM: from, MAILGUN_URL: url } = settings;
  if (apiKey === undefined || domain === undefined) return null;
  return { apiKey, domain, from: from ?? `Outgate <outgate@${domain}>`, url: new URL(url).origin };
}

/** A key alone can't send: whoever set it believes that mail works. */
export function mailProblems(texts: Texts): readonly string[] {
  const isHalf = texts.MAILGUN_API_KEY !== undefined && texts.MAILGUN_DOMAIN === undefined;
  return isHalf ? ["MAILGUN_DOMAIN is not set, and MAILGUN_API_KEY needs it. Set both or neither."] : [];
}

export function mailWarnings(texts: Texts): readonly string[] {
  const isIdle = texts.MAILGUN_API_KEY === undefined && (texts.MAILGUN_DOMAIN ?? texts.MAILGUN_FROM) !== undefined;
  return isIdle ? ["MAILGUN_API_KEY is not set: no mail is sent, whatever the other MAILGUN settings say."] : [];
}
