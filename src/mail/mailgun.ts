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

/** A complete message. */
export interface Message {
  readonly to: string;
  readonly subject: string;
  readonly text: string;
  readonly html: string;
  /** With angle brackets (RFC 5322, 3.6.4). */
  readonly messageId: string;
  /** The ID of the message that this one replies to. */
  readonly inReplyTo: string | null;
  readonly tag: string;
  readonly actionId: string;
}

/** Sends one message by Mailgun. Failures are outcomes, not exceptions. */
export type GiveToMailgun = (message: Message, limits: SendLimits) => Promise<Outcome | Stopped>;

/**
 * The library builds the request for Mailgun. We send it ourselves, because the library's client follows redirects, reads
 * responses of any size (measured: 100 MB), resolves names in the thread pool of file reads, and reports a timeout as
 * status 400.
 */
export async function createMailgun(
  settings: MailgunSettings,
  sender: Sender,
  userAgent: string,
): Promise<GiveToMailgun> {
  // Imported only if mail is configured, because it takes 0.17 s and 26 MB.
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

/** Makes the client send with our sender. */
function callBy(client: object, send: (request: OutboundRequest) => Promise<unknown>, own: readonly Header[]): void {
  const provider: Interfaces.IRequestProvider = {
    async makeRequest(url, _method, data) {
      // Safe: `messages.create` posts the form that it made, and the version of the library is pinned.
      const form = new Response((data as { readonly data: FormData }).data);
      const type: Header = ["Content-Type", form.headers.get("content-type") ?? ""];
      await send({ url, method: "POST", headers: [...own, type], body: await form.text() });
      // The library's result is not used; the caller reads the outcome.
      return { status: 200, body: {} };
    },
    setSubAccountHeader() {},
    resetSubAccountHeader() {},
  };
  // Safe: public in the library's class, but missing in the interface of `client`. A test covers it.
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
    // Tracking would route the links through the provider, which would log them.
    "o:tracking": "no",
    "o:tracking-clicks": "no",
    "o:tracking-opens": "no",
    "o:require-tls": "yes",
    "o:tag": tag,
    "v:action_id": actionId,
    "h:Message-ID": messageId,
    ...(inReplyTo === null ? {} : { "h:In-Reply-To": inReplyTo, "h:References": inReplyTo }),
    // Prevents automatic replies.
    "h:Auto-Submitted": "auto-generated",
    "h:X-Auto-Response-Suppress": "All",
  };
}
