import type { LogLevel } from "../../src/config/values.ts";
import { expect, test } from "bun:test";
import { createLogText, type LogFields } from "../../src/observability/log.ts";
import { createPaint, columnCount, padded, shortened, visible } from "../../src/observability/terminal.ts";
import { startText } from "../../src/app/process.ts";

const AT = new Date(2026, 2, 1, 14, 2, 11);

const ID = "act_01m82axjzte7v9c2x4m6n8p0qr";

interface Options {
  readonly columns?: number;
  readonly isTty?: boolean;
  readonly isVerbose?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

function textWith({ columns = 80, isTty = false, isVerbose = false, env = {} }: Options = {}) {
  const text = createLogText(createPaint({ isTty, env }), isVerbose, () => columns);
  return (event: string, fields: LogFields = {}, level: LogLevel = "info") => text({ at: AT, level, event, fields });
}

const attempt = {
  action_id: ID,
  account_id: "acc_1",
  method: "PUT",
  host: "api.example.com",
  attempt: 2,
  attempts_max: 5,
  outcome: "answered",
  code: 503,
  duration_ms: 180,
  next: "retry",
  next_in_ms: 38_000,
};

test("an attempt is one line: what became of it, where to, what comes next, and its id", () => {
  expect(textWith({ columns: 130 })("action.attempted", attempt)).toBe(
    `14:02:11  retry    503  PUT    api.example.com${" ".repeat(21)}2 of 5  again in 38.0 s  180 ms  ${ID}\n`,
  );
  const { code: _code, ...unanswered } = {
    ...attempt,
    outcome: "not_sent",
    fault: "name_not_resolved",
    next: "failed",
  };
  const failed = textWith({ columns: 130 })("action.attempted", { ...unanswered, next_in_ms: undefined });
  expect(failed).toMatch(
    /^14:02:11 {2}failed {8}PUT {4}api\.example\.com +name not resolved {2}2 of 5 {2}180 ms {2}act_/,
  );
  const sent = textWith()("action.attempted", {
    ...attempt,
    attempt: 1,
    code: 200,
    next: "completed",
    next_in_ms: undefined,
  });
  expect(sent).toMatch(/^14:02:11 {2}sent {5}200 {2}PUT {4}api\.example\.com +180 ms {2}act_01m82axjzte7v9\n$/);
});

test("an action that waits for a person is one line with its id", () => {
  const line = textWith({ columns: 90 })("action.held", {
    action_id: ID,
    account_id: "acc_1",
    method: "POST",
    host: "pay.example",
    run: 1,
  });
  expect(line).toMatch(/^14:02:11 {2}held {10}POST {3}pay\.example {2}Awaiting approval +act_01m82axjzte7v9\n$/);
});

test("on a narrow terminal a line fits, with what matters most", () => {
  const line = textWith({ columns: 80 })("action.attempted", attempt) ?? "";
  expect(line.trimEnd()).toHaveLength(80);
  expect(line).toEndWith("again in 38.0 s\n");
  const crowded = textWith({ columns: 60 })("action.attempted", {
    ...attempt,
    host: "a-very-long-host-name.example.com",
  });
  expect(crowded).toBe("14:02:11  retry    503  PUT    a-very-long-host-name.example.com\n");
});

test("requests that read and succeeded are told to nobody, unless LOG_LEVEL is debug", () => {
  const read = { method: "GET", route: "/v1/actions/{id}", action_id: ID, status: 200, duration_ms: 1.24 };
  expect(textWith()("http.requested", read)).toBeNull();
  expect(textWith({ isVerbose: true })("http.requested", read)).toBe(
    `14:02:11  request  200  GET    /v1/actions/act_01m82axjzte7v9${" ".repeat(15)}1 ms\n`,
  );
  const refused = textWith()("http.requested", { ...read, status: 404, code: "not_found" });
  expect(refused).toMatch(/request {2}404 {2}GET {4}\/v1\/actions\/act_01m82axjzte7v9 not_found +1 ms\n$/);
  const created = textWith({ columns: 130 })("http.requested", {
    ...read,
    method: "POST",
    route: "/v1/actions",
    status: 201,
  });
  expect(created).toMatch(new RegExp(`request  201  POST   /v1/actions +1 ms  ${ID}\n$`));
  expect(textWith()("http.requested", { method: "POST", route: null, status: 401, code: "unauthorized" })).toBe(
    "14:02:11  request  401  POST   unauthorized\n",
  );
});

test("any other event is told by its name and its fields, and the trace of an error stands below it", () => {
  const line = textWith();
  expect(line("bulk.failed", { error: "TypeError" }, "error")).toBe(
    "14:02:11  error         bulk.failed  error=TypeError\n",
  );
  expect(line("service.waiting", { reason: "the store can't be opened", more: null }, "warn")).toBe(
    "14:02:11  warning       service.waiting  reason=the store can't be opened\n",
  );
  expect(line("store.lost", { message: "The lock is gone." }, "error")).toBe(
    "14:02:11  error         store.lost  The lock is gone.\n",
  );
  expect(line("http.failed", { route: "/x", error: "TypeError: x\n    at a (b.ts:1)" }, "error")).toBe(
    "14:02:11  error         http.failed  route=/x\n          TypeError: x\n          at a (b.ts:1)\n",
  );
  expect(line("mcp.called", { tool: "send", duration_ms: 12 })).toMatch(/tool {10}send +12 ms\n$/);
});

test("a callback or mail is told with what it is about, where it went, and why not", () => {
  const callback = {
    action_id: ID,
    event: "action.failed",
    host: "hooks.example.com",
    attempt: 1,
    attempts_max: 6,
    duration_ms: 12,
  };
  expect(textWith()("callback.attempted", { ...callback, next: "delivered" })).toMatch(
    /^14:02:11 {2}callback {6}delivered {2}action\.failed {2}hooks\.example\.com/,
  );
  const late = { ...callback, host: undefined, next: "retry", next_in_ms: 60_000, error: "It answered 500." };
  expect(textWith({ columns: 130 })("mail.attempted", late)).toMatch(
    /^14:02:11 {2}mail {10}retry {2}action\.failed {2}It answered 500\. +1 of 6 {2}again in 1 min {2}12 ms {2}act_/,
  );
});

test("nothing that a stranger wrote acts on the terminal, or begins a line", () => {
  const line = textWith()("action.attempted", { ...attempt, host: "a\u001b[2J\nb\u202e.example" }) ?? "";
  expect(line).toContain("a<U+001B>[2J<U+000A>b<U+202E>.example");
  expect(line.match(/\n/g)).toHaveLength(1);
  const error = textWith()("http.failed", { error: "x\n\u001b[2J" }, "error") ?? "";
  expect(error).not.toContain("\u001b");
});

test("colours are for terminals, and NO_COLOR switches them off", () => {
  expect(textWith({ isTty: true })("action.attempted", attempt)).toContain("\u001b[33mretry    503\u001b[0m");
  for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }]) {
    expect(textWith({ isTty: true, env })("action.attempted", attempt)).not.toContain("\u001b");
  }
});

const FACTS = {
  version: "1.2.3",
  baseUrl: "http://127.0.0.1:3000",
  database: "./data/outgate.db",
  nodeId: null,
  metricsUrl: null,
  warnings: [],
  notices: [],
};

const plain = (text: string) => text;

test("a start tells what runs where, a line each", () => {
  expect(startText(FACTS, plain, 100)).toBe(`
  Outgate 1.2.3 is running. Ctrl-C stops it.

  Console     http://127.0.0.1:3000      approve, look up, retry
  API         http://127.0.0.1:3000/v1   reference: http://127.0.0.1:3000/docs/api
  MCP         http://127.0.0.1:3000/mcp  for agents
  Database    ./data/outgate.db
`);
});

test("what does not fit is left out or wrapped, and several nodes are told apart", () => {
  const notices = ["A note of some words that is longer than the terminal is wide, and is wrapped."];
  const more = {
    ...FACTS,
    warnings: ["Set BASE_URL."],
    notices,
    nodeId: "nod_1",
    metricsUrl: "http://127.0.0.1:9464/metrics",
  };
  const text = startText(more, plain, 60);
  expect(Math.max(...text.split("\n").map((line) => line.length))).toBeLessThanOrEqual(60);
  expect(text).not.toContain("reference");
  expect(text).toContain("  Metrics     http://127.0.0.1:9464/metrics\n");
  expect(text).toContain("  Node        nod_1\n");
  expect(text).toEndWith(
    "  Warning     Set BASE_URL.\n  Note        A note of some words that is longer than the\n              terminal is wide, and is wrapped.\n",
  );
});

test.each([
  ["abc", 3],
  ["äöü", 3],
  ["a\u0308", 1],
  ["東京", 4],
  ["한국", 4],
  ["🎫", 2],
  ["…", 1],
])("%j takes %d columns", (text, columns) => {
  expect(columnCount(text)).toBe(columns);
  expect(columnCount(padded(text, 8))).toBe(8);
});

test("a text is cut at the columns, not at the characters", () => {
  expect(shortened("abcdef", 6)).toBe("abcdef");
  expect(shortened("abcdefg", 6)).toBe("abcde…");
  expect(shortened("abcdefg", 6, "")).toBe("abcdef");
  expect(shortened("東京東京", 6)).toBe("東京…");
  expect(shortened("🎫🎫🎫", 4)).toBe("🎫…");
});

test("what acts on a terminal or hides is shown as its code", () => {
  expect(visible("a\u001b[31m\u202e\n")).toBe("a<U+001B>[31m<U+202E><U+000A>");
  expect(visible("a\n\u0007b", true)).toBe("a\n<U+0007>b");
  expect(visible("a\u3164b\u2800\u115f\ufe01\u{e0101}\ufffc", true)).toBe(
    "a<U+3164>b<U+2800><U+115F><U+FE01><U+E0101><U+FFFC>",
  );
  expect(visible("❤\ufe0f 1\ufe0f\u20e3 a\ufe0f")).toBe("❤\ufe0f 1\ufe0f\u20e3 a<U+FE0F>");
});
