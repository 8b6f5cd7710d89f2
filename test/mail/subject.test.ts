import { expect, test } from "bun:test";
import { SUBJECT_PATH_CHARS_MAX, SUBJECT_TITLE_CHARS_MAX } from "../../src/core/limits.ts";
import { endOfHost, subjectOf } from "../../src/mail/chat-messages.ts";

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

const REFUND = {
  id: "act_01m83493egefhb4qxrndqqpjmk",
  run: 1,
  method: "POST",
  host: "api.stripe.com",
  url: "https://api.stripe.com/v1/refunds?dry=1#top",
  title: "Refund order 5999",
} as const;

const subject = (overrides: Partial<Parameters<typeof subjectOf>[0]> = {}) => subjectOf({ ...REFUND, ...overrides });

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
