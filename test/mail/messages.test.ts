import { describe, expect, test } from "bun:test";
import {
  approvalMessage,
  channelMessage,
  credentialRequestMessage,
  decisionMessage,
  invitationMessage,
  testMessage,
} from "../../src/mail/messages.ts";
import { NO_EXTRAS } from "../../src/core/action.ts";
import { NO_HISTORY } from "../../src/approvals/facts.ts";
import { aDecidedMail, anApprovalMail, LINKS, maskedMail } from "./message.ts";
import { quickestMs } from "../support/core.ts";
import { aCredentialRequest, anInvitation } from "../support/factory.ts";
import { GROWTH_MAX, growthOf } from "../support/growth.ts";

const letterOf = (...action: Parameters<typeof anApprovalMail>) =>
  approvalMessage(maskedMail(anApprovalMail(...action)), "confirm");

const hrefsOf = (html: string) => [...html.matchAll(/href="([^"]*)"/g)].map(([, href]) => href);

describe("the subject", () => {
  test("names host and method, the verb first, and never the query", () => {
    const { subject } = letterOf({ method: "DELETE", url: "https://api.example.com/v1/customers/7?token=canary#top" });
    expect(subject).toMatch(/^Approve\? api\.example\.com · DELETE \/v1\/customers\/7 · \w{6}$/);
  });

  test("masks secrets in the path and the title", () => {
    const { subject } = letterOf({
      url: "https://api.example.com/sk_live_canaryCanary1x9Kq/x",
      title: "With sk_live_canaryCanary1x9Kq",
    });
    expect(subject).toContain("· POST /••••(Stripe-key,25-chars,…x9Kq)/x ·");
    expect(subject).toContain('"With ••••(Stripe-key,25-chars,…x9Kq)"');
    expect(subject).not.toContain("canary");
  });

  test("of a question, its reminder and the answer has the same end, so that they are found together", () => {
    const mail = anApprovalMail({ title: "Refund order 5999" });
    const { subject } = approvalMessage(maskedMail(mail), "confirm");
    expect(subject).toContain('"Refund order 5999"');
    expect(channelMessage(maskedMail({ ...mail, event: "reminded", channel: "ops" })).subject).toBe(
      `Reminder: ${subject}`,
    );
    expect(decisionMessage(maskedMail({ ...aDecidedMail(), action: mail.action })).subject).toBe(`Re: ${subject}`);
  });

  test("shows a host in its ASCII form", () => {
    const email = letterOf({ url: "https://аpple.com/x", host: "xn--pple-43d.com", hostname: "xn--pple-43d.com" });
    expect(email.subject).toStartWith("Approve? xn--pple-43d.com · POST /x · ");
    expect(email.text).toContain("\nPOST https://xn--pple-43d.com/x\n");
    expect(email.text + email.html).not.toContain("аpple");
  });

  test("is one line of at most 160 characters, whatever the request is", () => {
    const evil = "%E2%80%AE%0d%0aBcc:\r\n".repeat(30);
    const { subject } = letterOf({ url: `https://api.example.com/${evil}`, title: evil });
    expect(Array.from(subject).length).toBeLessThanOrEqual(160);
    expect(subject).not.toMatch(/[\r\n\u202e]/);
  });
});

describe("an approval mail", () => {
  test("says who asks for what, until when, and what the links do", () => {
    const { text, html } = letterOf({ method: "PUT", body: '{"amount":12345678901234567890}' });
    for (const part of [text, html.replaceAll(/<[^>]+>/g, " ")]) {
      expect(part).toContain("agent, over the API");
      expect(part).toContain("4 Mar 2026, 12:00 UTC");
      expect(part).toContain("Up to 3, until one succeeds");
      expect(part).toContain("They work until 11 Mar 2026, 12:00 UTC, for one decision.");
      expect(part).toContain("asks you to confirm");
      expect(part).toMatch(/("|&quot;)amount("|&quot;): 12345678901234567890/);
    }
    expect(text).toContain("\nPUT https://api.example.com/orders\n");
  });

  test("shows the call, the risks, what is sent, the requester's words, the buttons and then the details", () => {
    const mail = anApprovalMail({
      method: "DELETE",
      body: '{"amount":1200}',
      headers: { Accept: "text/plain" },
      title: "Refund order 5999",
      extras: { ...NO_EXTRAS, metadata: { order: "5999" } },
    });
    const history = { ...NO_HISTORY, isNewHost: true, reason: "The customer asked." };
    const ofAcme = { ...mail, history, account: "Acme.com" };
    const asked = approvalMessage(maskedMail(ofAcme), "confirm");
    const told = channelMessage(maskedMail({ ...ofAcme, event: "requested", channel: "ops" }));
    const begin = [
      "The account is “Acme[.]com”.",
      "DELETE",
      "https://api.example.com/orders",
      "It deletes: the method is DELETE.",
      "New host",
      "Body (JSON, 15 bytes)",
      "1200",
      "Accept: text/plain",
      "The requester says",
      "Refund order 5999",
      "Reason: The customer asked.",
      "order: 5999",
    ];
    const details = ["Requested by", "Requested at", "Attempts"];
    const open = `https://gate.example.com/actions/${mail.action.id}`;
    for (const [part, decide] of [
      [asked.text, [LINKS.approve, LINKS.reject]],
      [asked.html, [LINKS.approve, LINKS.reject]],
      [told.text, [open]],
      [told.html, [open]],
    ] as const) {
      const shown = part.replaceAll(/<head>.*<\/head>|<(?!a )[^>]+>/gs, "");
      const places = [...begin, ...decide, ...details].map((words) => shown.indexOf(words));
      expect(places, shown).toEqual(places.toSorted((a, b) => a - b));
      expect(places).not.toContain(-1);
    }
  });

  test("warns of risks, and tells of a new host quietly", () => {
    const { text, html } = approvalMessage(
      maskedMail({ ...anApprovalMail({ method: "DELETE" }), history: { ...NO_HISTORY, isNewHost: true } }),
      "confirm",
    );
    expect(text).toContain("! It deletes: the method is DELETE.\n");
    expect(text).toMatch(/^New host: /m);
    expect(html).toMatch(/<div class="risk"[^>]*>(?:(?!<\/div>).)*It deletes/);
    expect(html).not.toMatch(/<div class="risk"[^>]*>(?:(?!<\/div>).)*New host/);
  });

  test("has the action's page behind a button, and its address nowhere in the text that people see", () => {
    const mail = anApprovalMail();
    const url = `https://gate.example.com/actions/${mail.action.id}`;
    const { html } = approvalMessage(maskedMail(mail), "confirm");
    expect(html).toContain(`<a class="quiet-button" href="${url}"`);
    expect(html.replaceAll(/<[^>]+>/g, "")).not.toContain(url);
  });

  test("has four links: the two that decide, the action's page and the receipt, each bare on a line of its text", () => {
    const { text, html } = letterOf();
    const links = hrefsOf(html);
    expect(links).toEqual([
      LINKS.approve,
      LINKS.reject,
      expect.stringMatching(/^https:\/\/gate\.example\.com\/actions\/act_\w+$/),
      "https://gate.example.com/r/receipt-token",
    ]);
    for (const link of links) expect(text.split("\n")).toContain(link ?? "none");
  });

  test("shows a reason line by line, each marked as quoted", () => {
    const history = { ...NO_HISTORY, reason: "- Asked twice.\r\nRequested by: Ann" };
    const { text, html } = approvalMessage(maskedMail({ ...anApprovalMail(), history }), "confirm");
    expect(text).toContain("The requester says:\n| Reason: - Asked twice.\n| Requested by: Ann\n\n");
    expect(html).not.toContain("U+000A");
  });

  test("has no address in the requester's texts that a client could make a link", () => {
    const evil = "https://evil.example/login?a=www.evil.example or ann@evil.example or evil。example";
    const mail = anApprovalMail({
      title: evil,
      headers: { "X-Note": evil },
      body: JSON.stringify({ note: evil }),
      extras: { metadata: { note: evil } },
    });
    const history = { ...NO_HISTORY, reason: evil };
    const channel = { ...mail, history, event: "requested", channel: "ops" } as const;
    const mails = [
      approvalMessage(maskedMail({ ...mail, history }), "confirm"),
      channelMessage(maskedMail(channel)),
      decisionMessage(maskedMail(aDecidedMail({ reason: evil }))),
    ];
    for (const { text, html } of mails) {
      for (const part of [text, html]) {
        expect(part).toContain("evil[.]example");
        expect(part).not.toMatch(/evil[.。]example|https:\/\/evil/);
      }
    }
    // What the call does is shown as it is.
    expect(mails[0]?.text).toContain("\nPOST https://api.example.com/orders\n");
  });

  test("has its buttons within what a large provider shows of a mail, whatever the requester's words are", () => {
    const metadata = Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`n${n}`, '"\u200b'.repeat(250)]));
    const { text, html } = letterOf({ url: `https://api.example.com/${"&".repeat(8_000)}`, extras: { metadata } });
    expect(html.slice(0, 100_000)).toContain(LINKS.reject);
    for (const part of [text, html]) expect(part).toContain("Cut after 2 kB. Not shown: ");
  });

  test("loads nothing and runs nothing", () => {
    const { html } = letterOf();
    expect(html).not.toMatch(/<(img|script|link|iframe|form|svg)|url\(|@import|\bon\w+=/i);
  });

  test("says where one click decides", () => {
    const { text, html } = approvalMessage(maskedMail(anApprovalMail()), "one_click");
    expect(text).toContain("Opening either link decides immediately.");
    expect(html).toContain("Opening either link decides immediately.");
    expect(html).not.toContain("asks you to confirm");
  });

  test("hides and counts the values of headers, however little they look like secrets, in every kind of it", () => {
    const mail = anApprovalMail({
      headers: { Authorization: "Bearer canary-canary", "X-Note": "canary", Cookie: "a=canary", Accept: "text/plain" },
    });
    const channel = (event: "requested" | "reminded") => channelMessage(maskedMail({ ...mail, event, channel: "ops" }));
    for (const { subject, text, html } of [
      approvalMessage(maskedMail(mail), "confirm"),
      approvalMessage(maskedMail(mail), "one_click"),
      channel("requested"),
      channel("reminded"),
    ]) {
      expect(subject + text + html).not.toContain("canary");
      for (const part of [text, html]) {
        expect(part).toContain("3 values hidden");
        expect(part).toContain("Authorization: ••••");
        expect(part).toContain("Accept: text/plain");
      }
    }
  });

  test("shows what was written by others as text: no markup, no link, nothing unseen", () => {
    const evil = `</pre><script>alert(1)</script><a href=\\"https://evil.example\\">Approve</a>\\u202e\u202e`;
    const { text, html } = letterOf({
      body: `{"note":"${evil}"}`,
      headers: { "X-A": '"><img src=x onerror=alert(1)>', Accept: '"><img src=x onerror=alert(1)>' },
      createdBy: 'key:<b onclick="x">ann</b>',
    });
    expect(html).not.toMatch(/<script|<img|<b onclick|\u202e/);
    expect(hrefsOf(html)).toHaveLength(4);
    expect(text).not.toContain("\u202e");
    expect(text).toContain("<U+202E>");
  });

  test("cuts headers and body of a large request at 2 kB, and says so; its URL is whole", () => {
    const rows = Array.from({ length: 500 }, (_, n) => ({ id: n, name: "grüße" }));
    const { text, html } = letterOf({
      url: `https://api.example.com/${"x".repeat(8_000)}`,
      headers: Object.fromEntries(Array.from({ length: 60 }, (_, n) => [`X-${"n".repeat(100)}-${n}`, "v"])),
      body: JSON.stringify({ rows }),
    });
    expect(text.match(/Cut after 2 kB/g)).toHaveLength(2);
    expect(html.match(/Cut after 2 kB/g)).toHaveLength(2);
    for (const part of [text, html]) expect(part).toContain("x".repeat(8_000));
    expect(text).toContain("Body (JSON, ");
    expect(text).not.toContain("\ufffd");
    // Above 102 kB a large provider cuts a mail by itself, and the buttons with it.
    expect(html.length).toBeLessThan(60_000);
  });

  test("has no body to show where none is sent, and no headers where there are none", () => {
    const { text, html } = letterOf({ method: "GET", body: null, headers: null });
    for (const part of [text, html]) expect(part).toContain("No body is sent.");
    expect(text).not.toContain("Body (");
    expect(text + html).not.toContain("Headers");
  });

  test("is written in time linear in its body, and of a megabyte without holding the event loop", () => {
    const write = (chars: number) => {
      const body = JSON.stringify({ rows: "&<".repeat(chars / 4), token: "x".repeat(chars / 4) });
      return () => expect(letterOf({ body }).html.length).toBeLessThan(60_000);
    };
    expect(growthOf(write, 100_000)).toBeLessThanOrEqual(GROWTH_MAX);
    // It takes a tenth of that.
    expect(quickestMs(100, write(1_000_000))).toBeLessThan(100);
  });
});

test("a mail that tells of another's decision says who decided, how, when and why", () => {
  const { text, html } = decisionMessage(
    maskedMail(aDecidedMail({ actor: "user:ann@example.com", reason: "Too\nmuch." })),
  );
  for (const part of [text, html]) {
    expect(part).toContain("Approved by ann@example.com, in the console");
    expect(part).toContain("need to do anything");
    expect(part).toContain("4 Mar 2026, 12:00 UTC");
    expect(part).toContain("https://gate.example.com/r/receipt-token");
    expect(part).not.toContain("/a/");
  }
  expect(text).toContain("Reason: Too<U+000A>much.");
  const secret = "ghp_canary0Name1x9Kq2Lm8Vb3Zt7Rw4Yp5Ab6C";
  const masked = decisionMessage(maskedMail(aDecidedMail({ actor: `key:${secret}`, reason: secret })));
  expect(masked.text + masked.html).not.toContain("canary");
});

test("no mail has a name that somebody chose as an address that a client could make a link", () => {
  const evil = "Log in at https://evil.example/www.evil.example";
  const key = `key:${evil}` as const;
  const about = { to: "boss@example.com", account: { name: evil, email: "www.evil.example/ann@example.com" } };
  const host = "www.evil.example";
  const request = aCredentialRequest({ host, reason: evil, name: evil, createdBy: key });
  const mails = [
    decisionMessage(maskedMail(aDecidedMail({ actor: key }))),
    invitationMessage({ ...about, invitation: anInvitation({ createdBy: key }), link: "https://outgate.example/j" }),
    testMessage(about.to, "test", evil),
    channelMessage(maskedMail({ ...anApprovalMail(), event: "requested", channel: evil })),
    credentialRequestMessage(about.to, request, "https://outgate.example"),
  ];
  for (const { text, html } of mails) {
    for (const part of [text, html.replace(/<title>.*?<\/title>/, "")]) {
      expect(part).toContain("evil[.]example");
      expect(part).not.toMatch(/evil\.example|https:\/\/evil/);
    }
  }
});

const invitationFor = (name: string | null, email: string | null) =>
  invitationMessage({
    to: "bob@example.com",
    invitation: anInvitation(),
    link: "https://outgate.example/join/0123",
    account: { name, email },
  });

describe("the mail of an invitation", () => {
  test("quotes the name of the account beside the address of its first person", () => {
    const { subject, text, html } = invitationFor("Acme\u202e <b>Payments</b>", "ann@example.com");
    expect(text).toContain("Account of: ann@example.com");
    expect(text).toMatch(/Account: “Acme.* <b>Payments<\/b>”/);
    for (const one of [subject, text, html]) expect(one).not.toContain("\u202e");
    expect(html).toContain("&lt;b&gt;Payments&lt;/b&gt;");
    expect(subject).not.toContain("Acme");
  });

  test("names no account that has no name", () => {
    expect(invitationFor(null, "ann@example.com").text).not.toContain("Account:");
    expect(invitationFor(null, null).text).not.toContain("Account of:");
  });
});
