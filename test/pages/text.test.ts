import { expect, test } from "bun:test";
import { describeActor } from "../../src/accounts/roles.ts";
import { timeAgo, duration } from "../../src/pages/text.ts";

test.each([
  [0, "0 ms"],
  [999, "999 ms"],
  [1_000, "1 s"],
  [2_449, "2.4 s"],
  [90_000, "1.5 min"],
  [7_200_000, "2 h"],
  [216_000_000, "2.5 days"],
])("%d ms are %s", (ms, words) => {
  expect(duration(ms)).toBe(words);
});

test.each([
  [-5, "just now"],
  [59_999, "just now"],
  [60_000, "1 min ago"],
  [7_199_999, "1 h ago"],
  [172_800_000, "2 d ago"],
])("%d ms ago is %s", (ms, words) => {
  expect(timeAgo(ms)).toBe(words);
});

test("an actor is a name and a way in, whatever the name holds", () => {
  expect(describeActor("email:o'hara@example.com")).toEqual({
    name: "o'hara@example.com",
    way: "by the link in the mail",
  });
  expect(describeActor("key:a:b")).toEqual({ name: "a:b", way: "over the API" });
  expect(describeActor("system")).toEqual({ name: "Outgate", way: "by its settings" });
});
