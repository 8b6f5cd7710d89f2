import { expect, test } from "bun:test";
import { endOfHost, subjectOf } from "../../src/mail/messages.ts";

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

test("a subject has as much of the path as its line has room for, and the host in any case", () => {
  const of = (host: string, path: string) => subjectOf({ method: "DELETE", host }, path, 40);
  expect(of("a.example", "/x")).toBe("Approve? DELETE a.example/x");
  expect(of("a.example", `/${"x".repeat(40)}`)).toBe(`Approve? DELETE a.example/${"x".repeat(13)}…`);
  expect(of(`${"z".repeat(63)}.example`, "/x")).toBe(`Approve? DELETE ${"z".repeat(63)}.example`);
});
