import { describe, expect, test } from "bun:test";
import { type Action, NO_EXTRAS } from "../../src/core/action.ts";
import { type DecisionHistory, NO_HISTORY } from "../../src/approvals/facts.ts";
import { MESSAGE_FORMATS, endOfHost, messageSubject } from "../../src/mail/chat-messages.ts";
import { URL_CHARS_MAX, SUBJECT_PATH_CHARS_MAX, SUBJECT_TITLE_CHARS_MAX } from "../../src/core/limits.ts";
import { anAction, NOON } from "../support/factory.ts";
import { maskAction } from "../../src/receipts/masked-action.ts";

interface Block {
  readonly type: string;
  readonly text?: { readonly type: string; readonly text: string };
  readonly fields?: readonly { readonly text: string }[];
  readonly elements?: readonly { readonly text: string }[];
}

interface Asked {
  readonly text: string;
  readonly blocks: readonly Block[];
}

function asked(
  action: Partial<Action>,
  history: Partial<DecisionHistory> = {},
  ask: "requested" | "reminded" = "requested",
): Asked {
  return JSON.parse(
    MESSAGE_FORMATS.slack.question({
      ask,
      at: NOON,
      action: maskAction(anAction({ approve: true, ...action }), "public"),
      history: { ...NO_HISTORY, ...history },
      account: "Acme.com",
      baseUrl: "https://gate.example.com",
    }),
  );
}

const textsOf = ({ blocks }: Asked) =>
  blocks.flatMap(({ text, fields = [], elements = [] }) =>
    [...(text === undefined ? [] : [text]), ...fields, ...elements].map((one) => one.text),
  );

const REFUND = {
  id: "act_01m83493egefhb4qxrndqqpjmk",
  method: "POST",
  url: "https://api.stripe.com/v1/refunds",
  host: "api.stripe.com",
  hostname: "api.stripe.com",
  headers: { Authorization: "Bearer canary-canary" },
  body: '{"charge":"ch_1","amount":1200}',
  title: "Refund order 5999",
  extras: { ...NO_EXTRAS, metadata: { order: "5999" } },
} as const;

describe("a question in Slack", () => {
  test("has the call, the risks, the body, the requester's words and then the details", () => {
    const rejections = [{ kind: "rejected", at: NOON, by: "user:dana@example.com", reason: "Too much." }] as const;
    const shown = textsOf(asked(REFUND, { isNewHost: true, rejections, reason: "The customer asked." }));
    const wanted = [
      "POST api.stripe.com",
      "https://api.stripe.com/v1/refunds",
      "⛔ This same request was rejected once in 24 h",
      "New host",
      'Body (JSON, 31 bytes)\n| {\n|   "charge": "ch_1",\n|   "amount": 1200\n| }',
      "1 value hidden",
      "The requester says\n| Refund order 5999\n| Reason: The customer asked.\n| order: 5999",
      "Requested by: ",
      "Attempts: ",
      "<https://gate.example.com/actions/",
    ];
    const places = wanted.map((words) => shown.findIndex((text) => text.startsWith(words)));
    expect(places, JSON.stringify(shown)).toEqual(places.toSorted((a, b) => a - b));
    expect(places).not.toContain(-1);
    expect(new Set(places).size).toBe(places.length);
    expect(shown.join("\n")).not.toContain("canary");
  });

  test("has a notification of its own for every request, and says which one reminds", () => {
    const subject = 'Approve? api.stripe.com · POST /v1/refunds · "Refund order 5999" · qqpjmk';
    expect(asked(REFUND).text).toBe(subject);
    expect(asked(REFUND, {}, "reminded").text).toBe(`Reminder: ${subject}`);
    expect(textsOf(asked(REFUND, {}, "reminded"))).toContain(
      "Reminder: still awaiting approval. The account is “Acme[.]com”.",
    );
  });

  test("says what is cut of a body, and where the rest is", () => {
    const rows = Array.from({ length: 500 }, (_, n) => ({ id: n }));
    const body = textsOf(asked({ ...REFUND, body: JSON.stringify({ rows }) })).find((text) =>
      text.startsWith("Body ("),
    );
    expect(body).toEndWith("\nCut. Open it in Outgate to see all of it.");
    const line = textsOf(asked({ ...REFUND, body: JSON.stringify("x".repeat(450)) })).find((text) =>
      text.startsWith("Body ("),
    );
    expect(line).toEndWith("…\nCut. Open it in Outgate to see all of it.");
    expect(textsOf(asked({ ...REFUND, body: null }))).toContain("No body is sent.");
  });

  test("says of bytes that they are not shown", () => {
    const bytes = { ...REFUND, body: btoa("amount: 1200"), extras: { ...NO_EXTRAS, bodyKind: "base64" } } as const;
    const shown = textsOf(asked(bytes)).find((text) => text.startsWith("Body ("));
    expect(shown).toEndWith(": not shown here. Open it in Outgate to see it.");
  });

  test("can't be given a line that passes for one of ours, or be made a mention or a link", () => {
    const evil = "a\nRequested by: Ann\n<!channel> https://evil.example & www.evil.example\u202e";
    const written = asked(
      {
        ...REFUND,
        title: evil,
        body: JSON.stringify({ note: evil }),
        extras: { ...NO_EXTRAS, metadata: { note: evil } },
      },
      { reason: evil },
    );
    const shown = textsOf(written).join("\n");
    expect(shown).not.toMatch(/^Requested by: Ann/m);
    expect(shown).not.toMatch(/<!channel>|https:\/\/evil|evil\.example|\u202e/);
    expect(shown).toContain("&lt;!channel&gt; https[:]//evil[.]example");
    const form = {
      ...REFUND,
      body: "note=a%0ARequested+by%3A+Ann",
      extras: { ...NO_EXTRAS, bodyKind: "form" },
    } as const;
    expect(textsOf(asked(form)).join("\n")).toContain("| note: a&lt;U+000A&gt;Requested by: Ann");
    const lines = textsOf(asked(REFUND, { reason: "It is due.\nRequested by: Ann" })).join("\n");
    expect(lines).toContain("| Reason: It is due.\n| Requested by: Ann\n");
  });

  test.each(["&", "<\u202e", "\ud83e\udd8a", "a.b", "x"])(
    "of many and long texts of %j keeps to the limits of Slack",
    (one) => {
      const long = one.repeat(20_000);
      const host = `${"h".repeat(63)}.${"i".repeat(63)}.${"j".repeat(63)}.${"k".repeat(61)}`;
      const message = asked(
        {
          method: "DELETE",
          url: `https://${host}/${"p".repeat(8_000)}`.slice(0, URL_CHARS_MAX),
          host,
          hostname: host,
          headers: Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`X-${n}`, "v"])),
          body: JSON.stringify({ long, rows: Array.from({ length: 3_000 }, () => long.slice(0, 20)) }),
          title: long.slice(0, 200),
          callback: "https://other.example/x",
          extras: {
            ...NO_EXTRAS,
            metadata: Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`name${n}`, long.slice(0, 500)])),
          },
        },
        {
          isNewHost: true,
          reason: long.slice(0, 1_000),
          rejections: Array.from({ length: 10 }, () => ({
            kind: "rejected",
            at: NOON,
            by: `key:${long.slice(0, 100)}`,
            reason: long.slice(0, 1_000),
          })),
        },
      );
      expect(message.blocks.length).toBeLessThanOrEqual(50);
      expect(message.text.length).toBeLessThanOrEqual(3_000);
      for (const { type, text, fields = [] } of message.blocks) {
        expect(text?.text.length ?? 0).toBeLessThanOrEqual(type === "header" ? 150 : 3_000);
        expect(fields.length).toBeLessThanOrEqual(10);
        for (const field of fields) expect(field.text.length).toBeLessThanOrEqual(2_000);
      }
    },
  );
});

test.each([
  ["api.example.com:8443", "api.example.com:8443"],
  ["dynamodb.us-east-1.amazonaws.com", "dynamodb.us-east-1.amazonaws.com"],
  ["api.stripe.com.account.login.evil.example", "…com.account.login.evil.example"],
  [`${"x".repeat(63)}.evil.example:81`, "…evil.example:81"],
  [`api.${"y".repeat(63)}.co.uk`, `…${"y".repeat(63)}.co.uk`],
  [`a.${"z".repeat(63)}.example`, `…${"z".repeat(63)}.example`],
  [`${"a.".repeat(121)}example.com`, `…${"a.".repeat(10)}example.com`],
  ["[2606:4700:4700:1111:2222:3333:4444:5555]:8443", "[2606:4700:4700:1111:2222:3333:4444:5555]:8443"],
  ["localhost", "localhost"],
])("the end of the host %s is %s", (host, end) => {
  expect(endOfHost(host)).toBe(end);
});

const CALL = { ...REFUND, run: 1, url: "https://api.stripe.com/v1/refunds?dry=1#top" } as const;

const subject = (overrides: Partial<Parameters<typeof messageSubject>[0]> = {}) =>
  messageSubject({ ...CALL, ...overrides });

test("a subject is host, method and path, the title in quotes, and the end of the id", () => {
  expect(subject()).toBe('Approve? api.stripe.com · POST /v1/refunds · "Refund order 5999" · qqpjmk');
});

test.each([null, "", " \n "])("a subject has no quotes where the title is %j", (title) => {
  expect(subject({ title })).toBe("Approve? api.stripe.com · POST /v1/refunds · qqpjmk");
});

test("equal requests, requests that differ late in their titles, and the runs of one request have subjects of their own", () => {
  const title = "x".repeat(200);
  const subjects = [
    subject({ title }),
    subject({ title, run: 2 }),
    subject({ title, id: "act_01m83493egefhb4qxrndqqpjmm" }),
    subject({ title: `${title}y`, id: "act_01m83493egefhb4qxrndqqpjmn" }),
  ];
  expect(new Set(subjects).size).toBe(4);
  expect(subjects[1]).toEndWith(" · qqpjmk, run 2");
});

test("a long path and a long title are cut at their ends, between characters", () => {
  const long = subject({ url: `https://api.stripe.com/${"p".repeat(8_000)}`, title: "🦊".repeat(300) });
  const [, call, title, code] = long.split(" · ");
  expect(call).toBe(`POST /${"p".repeat(SUBJECT_PATH_CHARS_MAX - 2)}…`);
  expect(title).toBe(`"${"🦊".repeat(SUBJECT_TITLE_CHARS_MAX - 1)}…"`);
  expect(code).toBe("qqpjmk");
});

test.each([
  ['Refund" · zzzzzz · "', "Refund' · zzzzzz · '"],
  ["“Refund” «5999» ＂", "'Refund' '5999' '"],
  ["a\r\nBcc: eve@evil.example", "a<U+000D><U+000A>Bcc: eve@evil[.]example"],
  ["pay\u202egpj.exe", "pay<U+202E>gpj[.]exe"],
  ["see https://evil.example/x", "see https[:]//evil[.]example/x"],
])("a title like %j stays inside its quotes, on one line, and is no link", (title, shown) => {
  expect(subject({ title })).toBe(`Approve? api.stripe.com · POST /v1/refunds · "${shown}" · qqpjmk`);
});

test("a path with line breaks and invisible characters stays on one line", () => {
  expect(subject({ url: "https://api.stripe.com/a\u202eb\r\nBcc:c" })).toContain(
    "POST /a<U+202E>b<U+000D><U+000A>Bcc:c ·",
  );
});
