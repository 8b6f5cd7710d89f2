import { expect, test } from "bun:test";
import { TARGET_MESSAGE_BODY_CHARS_MAX, TARGET_MESSAGE_CHARS_MAX } from "../../src/core/limits.ts";
import { targetMessage } from "../../src/actions/target-message.ts";

const of = (answer: unknown) => targetMessage(JSON.stringify(answer));

test.each<[string, unknown, string | null]>([
  [
    "Stripe",
    { error: { type: "x", code: "resource_missing", message: "No such charge: 'ch_3N'" } },
    "No such charge: 'ch_3N'",
  ],
  ["GitHub", { message: "Validation Failed", errors: [{ resource: "Issue" }] }, "Validation Failed"],
  ["RFC 9457", { type: "about:blank", title: "Conflict", detail: "Order 7 is closed." }, "Order 7 is closed."],
  ["OAuth", { error: "invalid_grant", error_description: "The code has expired." }, "The code has expired."],
  ["a list of errors", { errors: [{ detail: "Name is taken." }, { detail: "Too long." }] }, "Name is taken."],
  ["a word", { error: "rate_limited" }, "rate_limited"],
  ["text of several lines", " upstream\n\ttimed  out \n", "upstream timed out"],
  ["a page", "<!doctype html><title>502</title>", null],
  ["bytes", { encoding: "base64", data: "AAAA" }, null],
  ["no message", { ok: false, code: 7, message: "" }, null],
  ["a list of nothing", [], null],
  ["an inherited name", { constructor: 1 }, null],
  ["a number", 7, null],
])("the message in an answer of %s", (_name, answer, message) => {
  expect(of(answer)).toBe(message);
});

test("a message is cut, and an answer that is long, nested or altered isn't read", () => {
  expect(of({ message: "x".repeat(900) })).toBe(`${"x".repeat(TARGET_MESSAGE_CHARS_MAX - 1)}…`);
  expect(of({ message: "x".repeat(TARGET_MESSAGE_BODY_CHARS_MAX) })).toBeNull();
  expect(of({ error: { error: { error: { error: { error: "deep" } } } } })).toBeNull();
  expect([targetMessage(null), targetMessage('{"message":')]).toEqual([null, null]);
});
