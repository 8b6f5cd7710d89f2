import type { Interfaces, MailgunMessageData } from "mailgun.js/definitions";
import type { Outcome } from "../actions/outcome.ts";
import type { OutboundRequest, Sender, SendLimits, Stopped } from "../outbound/deadline.ts";

/** How Mailgun is reached. */
export interface MailgunSettings {
  readonly apiKey: string;
  readonly domain: string;
  readonly from: string;
  /** Without a trailing slash. */
  readonly url: string;
}

/** One message, written. */
export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** With its angle brackets (RFC 5322, 3.6.4). */
  readonly messageId: string;
  /** The message that this one answers. */
  readonly inReplyTo: string | null;
  readonly tag: string;
  readonly actionId: string;
}

/** Gives one message to Mailgun. What became of it is an outcome, never an exception. */
export type GiveToMailgun = (message: Message, limits: SendLimits) => Promise<Outcome | Stopped>;

/**
 * The library knows Mailgun's API: which URL, which fields, what is missing. The call itself is our sender's, because the
 * library's own follows redirects, reads answers of any size (measured: 100 MB), resolves names in the pool that file
 * reads share, and reports a time-out as status 400 (hostile 4).
 */
export async function createMailgun(
  settings: MailgunSettings,
  sender: Sender,
  userAgent: string,
): Promise<GiveToMailgun> {
  // Only where mail is configured: it costs a start 0.17 s and 26 MB.
  const { default: Mailgun } = await import("mailgun.js");
  const mailgun = new Mailgun(FormData);
  const { apiKey, domain, url } = settings;
  const own: readonly Header[] = [
    ["Authorization", `Basic ${Buffer.from(`api:${apiKey}`).toString("base64")}`],
    ["User-Agent", userAgent],
    ["Accept", "application/json"],
  ];
  return async (message, limits) => {
    let outcome: Outcome | Stopped | null = null;
    const client = mailgun.client({ username: "api", key: apiKey, url, useFetch: true });
    callBy(client, async (request) => (outcome = await sender.send(request, limits)), own);
    await client.messages.create(domain, fieldsOf(settings.from, message));
    if (outcome === null) throw new Error("The library answered without a call.");
    return outcome;
  };
}

type Header = readonly [name: string, value: string];

/** Has the client make its calls by ours. */
function callBy(client: object, send: (request: OutboundRequest) => Promise<unknown>, own: readonly Header[]): void {
  const provider: Interfaces.IRequestProvider = {
    async makeRequest(url, _method, data) {
      // Safe: `messages.create` posts the form that it made, and the version of the library is pinned.
      const form = new Response((data as { readonly data: FormData }).data);
      const type: Header = ["Content-Type", form.headers.get("content-type") ?? ""];
      await send({ url, method: "POST", headers: [...own, type], body: await form.text() });
      // Whatever came of it is told by the outcome.
      return { status: 200, body: {} };
    },
    setSubAccountHeader() {},
    resetSubAccountHeader() {},
  };
  // Safe: public in the library's class, and left out of the interface that `client` promises. A test sees every call.
  (client as { request: { requestProvider: Interfaces.IRequestProvider } }).request.requestProvider = provider;
}

function fieldsOf(from: string, message: Message): MailgunMessageData {
  const { to, subject, text, html, messageId, inReplyTo, tag, actionId } = message;
  return {
    from,
    to,
    subject,
    text,
    html,
    // Tracking would lead the links through a host of the provider, which would log them.
    "o:tracking": "no",
    "o:tracking-clicks": "no",
    "o:tracking-opens": "no",
    "o:require-tls": "yes",
    "o:tag": tag,
    "v:action_id": actionId,
    "h:Message-ID": messageId,
    ...(inReplyTo === null ? {} : { "h:In-Reply-To": inReplyTo, "h:References": inReplyTo }),
    // No machine is to answer: not one that is on holiday, nor one that unsubscribes.
    "h:Auto-Submitted": "auto-generated",
    "h:X-Auto-Response-Suppress": "All",
  };
}
