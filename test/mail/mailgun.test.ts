import { describe, expect, test } from "bun:test";
import { USER_AGENT } from "../../src/config/config.ts";
import type { DeliveryResult } from "../../src/core/notification.ts";
import { createMailgun, messageError } from "../../src/mail/mailer.ts";
import { passwordMessage } from "../../src/mail/messages.ts";
import { createSender } from "../../src/outbound/send.ts";
import type { OutboundRequest, Sender } from "../../src/outbound/sender.ts";
import { LOCAL } from "../outbound/policies.ts";
import { answered, NOON } from "../support/factory.ts";
import { Mailbox, MAILGUN_KEY } from "../support/mailbox.ts";
import { answers, type Behaviour, floods, openRawTarget } from "../support/raw-target.ts";
import { until } from "../support/until.ts";
import { aMessage } from "./message.ts";

const DEADLINE_MS = 1_000;

const settingsOf = (url: string, apiKey = MAILGUN_KEY) => ({
  apiKey,
  domain: "mg.example.com",
  from: "Outgate <outgate@mg.example.com>",
  url,
});

const CLOCK = { now: () => NOON };

const plain: Sender = createSender(LOCAL);

/** One message given to whoever is at the URL, and what that means for the mail. */
async function give(url: string, { apiKey = MAILGUN_KEY, sender = plain } = {}): Promise<DeliveryResult> {
  const mailer = await createMailgun(settingsOf(url, apiKey), sender, CLOCK);
  return mailer.send(aMessage(), { timeoutMs: DEADLINE_MS });
}

test("a message reaches Mailgun as it was written, without tracking, and asks no machine to answer", async () => {
  await using mailbox = new Mailbox();
  const mailer = await createMailgun(settingsOf(mailbox.url), createSender(LOCAL), CLOCK);
  const message = aMessage({ event: "decided", follows: "approval" });
  expect(await mailer.send(message, { timeoutMs: DEADLINE_MS })).toEqual({ kind: "delivered" });
  expect(mailbox.mails).toEqual([
    {
      domain: "mg.example.com",
      fields: {
        from: "Outgate <outgate@mg.example.com>",
        to: message.to,
        subject: message.subject,
        text: message.text,
        html: message.html,
        "o:tracking": "no",
        "o:tracking-clicks": "no",
        "o:tracking-opens": "no",
        "o:require-tls": "yes",
        "o:tag": "decided",
        "v:action_id": "act_1",
        "h:Message-ID": "<act_1.1.decided@mg.example.com>",
        "h:In-Reply-To": "<act_1.1.approval@mg.example.com>",
        "h:References": "<act_1.1.approval@mg.example.com>",
        "h:Auto-Submitted": "auto-generated",
        "h:X-Auto-Response-Suppress": "All",
      },
    },
  ]);
});

test("Mailgun finds no variable of its own in the text of a requester", async () => {
  await using mailbox = new Mailbox();
  const mailer = await createMailgun(settingsOf(mailbox.url), createSender(LOCAL), CLOCK);
  const text = "https://a.example/caf%c3%a9s%20?%unsubscribe_url%&%Recipient.name%";
  await mailer.send(aMessage({ subject: text, text, html: `<a href="/%41%42">${text}</a>` }), {
    timeoutMs: DEADLINE_MS,
  });
  const shown = text.replace("%unsub", "[%]unsub").replace("%Rec", "[%]Rec");
  expect(mailbox.mails[0]?.fields).toMatchObject({
    subject: shown,
    text: shown,
    html: `<a href="/%41%42">${shown.replaceAll("[%]", "&#37;")}</a>`,
  });
});

test("a mail that is about no action names none", async () => {
  await using mailbox = new Mailbox();
  const mailer = await createMailgun(settingsOf(mailbox.url), createSender(LOCAL), CLOCK);
  const mail = passwordMessage({
    to: "ann@example.com",
    id: "password_1",
    link: "https://a.example/w/t",
    expiresAt: NOON,
  });
  await mailer.send(mail, { timeoutMs: DEADLINE_MS });
  const [kept] = mailbox.mails;
  expect(kept?.fields).toMatchObject({ "o:tag": "password_link" });
  expect(Object.keys(kept?.fields ?? {})).not.toContain("v:action_id");
});

test("every call is our sender's: the library makes none of its own", async () => {
  const sent: OutboundRequest[] = [];
  const sender: Sender = {
    send: async (request) => {
      sent.push(request);
      return answered(200, '{"id":"<1>","message":"Queued. Thank you."}');
    },
  };
  // Nobody listens there: a call of the library's own would fail.
  expect(await give("http://127.0.0.1:1", { sender })).toEqual({ kind: "delivered" });
  expect(sent).toHaveLength(1);
  expect(sent[0]).toMatchObject({ url: "http://127.0.0.1:1/v3/mg.example.com/messages", method: "POST" });
  const headers = new Headers(sent[0]?.headers.map(([name, value]) => [name, value]));
  expect(headers.get("authorization")).toBe(`Basic ${btoa(`api:${MAILGUN_KEY}`)}`);
  expect(headers.get("user-agent")).toBe(USER_AGENT);
});

describe("what the provider answers", () => {
  const waits = (error: string, notBeforeMs: number | null = null): DeliveryResult => ({
    kind: "failed",
    error,
    notBeforeMs,
  });

  test.each([
    [400, { kind: "refused", error: "The mail provider refused the mail (400)." }],
    [413, { kind: "refused", error: "The mail provider refused the mail (413)." }],
    [
      403,
      waits(
        "The mail provider refused to send (403): check MAILGUN_DOMAIN; a sandbox domain sends only to authorised recipients.",
      ),
    ],
    [
      404,
      waits("The mail provider does not know the domain (404): check MAILGUN_DOMAIN, and MAILGUN_URL for the region."),
    ],
    [429, waits("The mail provider is rate limiting (429).")],
    [500, waits("The mail provider answered with status 500.")],
    [503, waits("The mail provider answered with status 503.")],
  ] as const)("%d: only what is said of the mail itself is final", async (status, expected) => {
    await using mailbox = new Mailbox();
    mailbox.script = status;
    expect(await give(mailbox.url)).toEqual(expected);
    expect(mailbox.posted).toHaveLength(1);
  });

  test("a key that it does not know: the mail waits while the operator mends it", async () => {
    await using mailbox = new Mailbox();
    expect(await give(mailbox.url, { apiKey: "key-wrong" })).toEqual(
      waits("The mail provider did not accept the key (401): check MAILGUN_API_KEY, and MAILGUN_URL for the region."),
    );
  });

  test("Retry-After is heard", async () => {
    await using mailbox = new Mailbox();
    mailbox.script = () => new Response(null, { status: 429, headers: { "Retry-After": "90" } });
    expect(await give(mailbox.url)).toEqual(waits("The mail provider is rate limiting (429).", 90_000));
  });

  test("200 of somebody who is no Mailgun delivers nothing", async () => {
    for (const body of ["Mailgun Magnificent API", "{}", "[1]", ""]) {
      await using target = await openRawTarget(answers(200, body));
      expect(await give(target.url(""))).toEqual(
        waits("The mail provider's answer was not Mailgun's: check MAILGUN_URL."),
      );
    }
  });
});

describe("a provider that misbehaves", () => {
  const failure = (error: string): DeliveryResult => ({ kind: "failed", error, notBeforeMs: null });
  const SILENT: Behaviour = () => {};

  test.each([
    ["is silent", SILENT, failure("The mail provider did not answer within 1 second.")],
    [
      "drops the connection",
      (socket) => socket.destroy(),
      failure("The mail provider closed the connection before the whole answer came."),
    ],
    [
      "redirects to itself",
      answers(302, "", ["Location: /v3/mg.example.com/messages"]),
      failure("The mail provider answered with status 302."),
    ],
    ["answers garbage", answers(999), failure("The mail provider's answer was not valid HTTP.")],
    [
      "answers without end, after it has taken the mail",
      floods("HTTP/1.1 200 OK\r\n\r\n", "x".repeat(65_536)),
      { kind: "delivered" },
    ],
  ] as readonly (readonly [string, Behaviour, DeliveryResult])[])(
    "%s: one call, within the deadline, no socket left",
    async (_what, behaviour, expected) => {
      await using target = await openRawTarget(behaviour);
      expect(await give(target.url(""))).toEqual(expected);
      await target.abandoned();
      expect([target.connections, target.requests.length]).toEqual([1, 1]);
    },
  );

  test("refuses the connection", async () => {
    const target = await openRawTarget(SILENT);
    const url = target.url("");
    await target[Symbol.asyncDispose]();
    expect(await give(url)).toEqual(failure("The mail provider refused the connection."));
  });

  test("is out of reach because no file is free: the mail waits, and who waits for it reads why", async () => {
    const sender: Sender = { send: async () => ({ kind: "not_sent", fault: "no_file" }) };
    const delivery = await give("http://127.0.0.1:9", { sender });
    expect(delivery).toEqual({ kind: "not_started", why: "no_file" });
    expect(messageError(delivery)).toBe("Nothing was sent yet: the service had too many files and connections open.");
  });

  test("is one that hangs when the service stops: interrupted, and due again", async () => {
    await using target = await openRawTarget(SILENT);
    const stop = new AbortController();
    const mailer = await createMailgun(settingsOf(target.url("")), createSender(LOCAL), CLOCK);
    const given = mailer.send(aMessage(), { timeoutMs: 60_000, stop: stop.signal });
    await until(() => target.requests.length > 0);
    stop.abort();
    expect(await given).toEqual({
      kind: "interrupted",
      error: "The attempt was interrupted; the mail provider may have received it.",
    });
  });
});
