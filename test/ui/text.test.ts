import { expect, test } from "bun:test";
import { describeActor } from "../../src/core/roles.ts";
import { browserName, duration, exactDuration, networkText, readDuration } from "../../src/ui/text.ts";
import { timeAgo, timeUntil } from "../../src/core/clock.ts";

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

test.each([
  [-5, "now"],
  [999, "now"],
  [38_500, "in 38 s"],
  [60_000, "in 1 min"],
  [518_400_000, "in 6 d"],
])("%d ms ahead is %s", (ms, words) => {
  expect(timeUntil(ms)).toBe(words);
});

test("an actor is a name and a way in, whatever the name holds", () => {
  expect(describeActor("email:o'hara@example.com")).toEqual({
    name: "o'hara@example.com",
    way: "by the link in the mail",
  });
  expect(describeActor("key:a:b")).toEqual({ name: "a:b", way: "over the API" });
  expect(describeActor("system")).toEqual({ name: "Outgate", way: "by its settings" });
});

test.each([
  ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/138.0 Safari/537.36 Edg/138.0",
    "Edge on Windows",
  ],
  ["Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/138.0 Mobile Safari/537.36", "Chrome on Android"],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605 Version/18.5 Mobile Safari/604.1",
    "Safari on iPhone",
  ],
  ["curl/8.9", null],
])("%s is %s", (agent, name) => {
  expect(browserName(agent)).toBe(name);
});

test("a duration of a form is read back as it was written", () => {
  const written = [0, 1, 999, 1_000, 1_500, 60_000, 90_000, 3_600_000, 86_400_000].map((ms) => [ms, exactDuration(ms)]);
  expect(written.map(([, text]) => text)).toEqual([
    "0 ms",
    "1 ms",
    "999 ms",
    "1 s",
    "1500 ms",
    "1 min",
    "90 s",
    "1 h",
    "24 h",
  ]);
  for (const [ms, text] of written) expect(readDuration(String(text))).toBe(Number(ms));
  expect(["1.5min", " 500 ", "0.25 s"].map((text) => readDuration(text))).toEqual([90_000, 500, 250]);
  for (const text of ["", "s", "-1 s", "1 day", "1e9", "1 s 5"]) expect(readDuration(text)).toBeNull();
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2", "2001:db8:1:2::/64"],
  ["0:0:0:0", "::1"],
  ["", ""],
])("the client %s is shown as %s", (client, text) => {
  expect(networkText(client)).toBe(text);
});
