import type { Interfaces } from "mailgun.js/definitions";
import { type Answered, describeOutcome, isPolicyRefusal, isWithoutFile, type Outcome } from "../core/outcome.ts";
import { type Config, USER_AGENT } from "../config/config.ts";
import type { DeliveryResult } from "../core/notification.ts";
import type { OutboundRequest, Sender, SendLimits, Stopped } from "../outbound/sender.ts";
import { providerPolicy } from "../config/target-policy.ts";
import { createSender } from "../outbound/send.ts";
import { describeNotStarted } from "../core/settle.ts";
import type { Clock } from "../core/clock.ts";
import type { Mail } from "./messages.ts";
import { retryAfterMs } from "../core/retry.ts";

/** Sends a mail once. Returns failures as results and never throws. */
export interface Mailer {
  /** Gives the same mail the same `Message-ID` each time, so that repeats can be detected. */
  send(mail: Mail, limits: SendLimits): Promise<DeliveryResult>;
}

/** Creates the mailer of the settings; null if they name no provider. */
export async function createMailer({ mail }: Config, clock: Clock): Promise<Mailer | null> {
  return mail === null ? null : createMailgun(mail, createSender(providerPolicy(mail.url, "MAILGUN_URL")), clock);
}

/** The result of a message that somebody waits for while no mail is configured. */
export const NO_MAILER = {
  kind: "withheld",
  error: "No mail was sent: no mail provider is configured (see MAILGUN_API_KEY).",
} as const satisfies DeliveryResult;

/** Why a message that somebody waits for was not delivered; null if it was. */
export function messageError(delivery: DeliveryResult): string | null {
  if (delivery.kind === "delivered") return null;
  if (delivery.kind === "not_started" && delivery.why === "no_file") return describeNotStarted(delivery.why);
  return "error" in delivery ? delivery.error : "Nothing was sent: the service is stopping.";
}

/**
 * Sends mail by Mailgun. Its library builds the request, but we send it: the library's client follows redirects, reads
 * responses of any size (measured: 100 MB), resolves names in the thread pool of file reads, and reports a timeout as status 400.
 */
export async function createMailgun(
  { apiKey, domain, from, url }: NonNullable<Config["mail"]>,
  sender: Sender,
  clock: Pick<Clock, "now">,
): Promise<Mailer> {
  // Imported only if mail is configured: it takes 0.17 s and 26 MB.
  const { default: Mailgun } = await import("mailgun.js");
  const mailgun = new Mailgun(FormData);
  const own: readonly Header[] = [
    ["Authorization", `Basic ${Buffer.from(`api:${apiKey}`).toString("base64")}`],
    ["User-Agent", USER_AGENT],
    ["Accept", "application/json"],
  ];
  return {
    async send(mail, limits) {
      let outcome: Outcome | Stopped | null = null;
      const client = mailgun.client({ username: "api", key: apiKey, url, useFetch: true });
      callBy(client, async (request) => (outcome = await sender.send(request, limits)), own);
      await client.messages.create(domain, { from, ...mailFields(mail, domain) });
      if (outcome === null) throw new Error("The library answered without a call.");
      return deliveryFrom(outcome, clock.now(), limits.timeoutMs);
    },
  };
}

type Header = readonly [name: string, value: string];

/** Makes Mailgun's client send with our sender. */
function callBy(client: object, send: (request: OutboundRequest) => Promise<unknown>, own: readonly Header[]): void {
  const provider: Interfaces.IRequestProvider = {
    async makeRequest(url, _method, data) {
      // Safe: `messages.create` posts the form that it made, and the version of the library is pinned.
      const form = new Response((data as { readonly data: FormData }).data);
      const type: Header = ["Content-Type", form.headers.get("content-type") ?? ""];
      await send({ url, method: "POST", headers: [...own, type], body: await form.text() });
      // Nobody uses the library's result: the caller reads the outcome.
      return { status: 200, body: {} };
    },
    setSubAccountHeader() {},
    resetSubAccountHeader() {},
  };
  // Safe: the library's class has this public member, though its interface doesn't. A test covers it.
  (client as { request: { requestProvider: Interfaces.IRequestProvider } }).request.requestProvider = provider;
}

function mailFields({ to, subject, text, html, id, event, actionId, follows }: Mail, domain: string) {
  /** The `Message-ID` of a mail, in angle brackets (RFC 5322, 3.6.4). */
  const messageId = (of: Mail["event"]) => `<${id}.${of}@${domain}>`;
  return {
    to,
    subject: subject.replaceAll(VARIABLE, "[%]"),
    text: text.replaceAll(VARIABLE, "[%]"),
    html: html.replaceAll(VARIABLE, "&#37;"),
    // No tracking: it would route the links through the provider, which would log them.
    "o:tracking": "no",
    "o:tracking-clicks": "no",
    "o:tracking-opens": "no",
    "o:require-tls": "yes",
    "o:tag": event,
    ...(actionId !== undefined && { "v:action_id": actionId }),
    "h:Message-ID": messageId(event),
    ...(follows !== undefined && { "h:In-Reply-To": messageId(follows), "h:References": messageId(follows) }),
    // Asks for no automatic replies.
    "h:Auto-Submitted": "auto-generated",
    "h:X-Auto-Response-Suppress": "All",
  } as const;
}

/**
 * Where a variable of Mailgun begins, but no percent-encoding. Mailgun would replace `%unsubscribe_url%` in a requester's text by a
 * link that ends all mails to whoever opens it, also a scanner.
 */
const VARIABLE = /%(?![\da-f]{2})(?=[a-z][\w.-]*%)/gi;

/**
 * What the provider's response means for a mail. Only errors of the mail itself are final: a wrong key, domain or region can
 * be fixed while the mail waits. Messages never quote the response.
 */
function deliveryFrom(outcome: Outcome | Stopped, now: Date, timeoutMs: number): DeliveryResult {
  if (outcome.kind === "stopped") return { kind: "not_started", why: "stopping" };
  if (isWithoutFile(outcome)) return { kind: "not_started", why: "no_file" };
  if (outcome.kind !== "answered") {
    const error = describeOutcome(outcome, timeoutMs).replaceAll("target", "mail provider");
    if (isPolicyRefusal(outcome)) return { kind: "refused", error };
    return outcome.fault === "interrupted"
      ? { kind: "interrupted", error }
      : { kind: "failed", error, notBeforeMs: null };
  }
  const { code } = outcome;
  if (code >= 200 && code <= 299) return isTaken(outcome) ? { kind: "delivered" } : { ...FAILED, error: NOT_MAILGUN };
  if (code === 400 || code === 413) return { kind: "refused", error: `The mail provider refused the mail (${code}).` };
  return {
    kind: "failed",
    error: SENTENCES[code] ?? `The mail provider answered with status ${code}.`,
    notBeforeMs: retryAfterMs(outcome.retryAfter, now),
  };
}

const FAILED = { kind: "failed", notBeforeMs: null } as const;

const NOT_MAILGUN = "The mail provider's answer was not Mailgun's: check MAILGUN_URL.";

/** Whether Mailgun accepted the message: then it returns an id. A 200 without one is not from Mailgun. */
function isTaken({ body, truncated, brokenBy }: Answered): boolean {
  // The status counts, even if the body is incomplete.
  if (truncated || brokenBy !== null) return true;
  const answer: unknown = JSON.parse(body ?? "null");
  return typeof answer === "object" && answer !== null && "id" in answer;
}

const SENTENCES: Readonly<Record<number, string>> = {
  401: "The mail provider did not accept the key (401): check MAILGUN_API_KEY, and MAILGUN_URL for the region.",
  403: "The mail provider refused to send (403): check MAILGUN_DOMAIN; a sandbox domain sends only to authorised recipients.",
  404: "The mail provider does not know the domain (404): check MAILGUN_DOMAIN, and MAILGUN_URL for the region.",
  429: "The mail provider is rate limiting (429).",
};
