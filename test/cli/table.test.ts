import { expect, test } from "bun:test";
import { describeDecision, LISTED_COLUMNS, eventLine, failureIn } from "../../src/cli/action-text.ts";
import { listTable } from "../../src/cli/session.ts";
import { type Column, textTable, renderTable } from "../../src/cli/table.ts";
import { systemIds } from "../../src/core/ids.ts";
import type { ActionJson } from "../../src/api/action-schemas.ts";

const plain = (text: string) => text;

/** Actions as a list shows them in so many columns. */
const listed = (actions: readonly ActionJson[], columns: number, now = new Date("2026-03-01T12:02:00Z")) =>
  listTable({ paint: plain, io: { columns } }, actions, LISTED_COLUMNS, now);

const COLUMNS: readonly Column[] = [
  { heading: "ID", min: 4, mark: "" },
  { heading: "AGE", leaves: 1 },
  { heading: "NAME", min: 6 },
  { heading: "NOTE" },
];

test("columns are aligned, and a column that is empty everywhere is left out", () => {
  const rows = [
    ["act_1", "2m", "東京", ""],
    ["act_22", "10m", "Ann", ""],
  ];
  expect(renderTable(COLUMNS, rows, plain)).toBe("ID      AGE  NAME\nact_1   2m   東京\nact_22  10m  Ann\n");
});

test("where room is short, columns are left out and the widest are cut, down to what they keep", () => {
  const rows = [["act_123456", "2m", "a long name of a key", "note"]];
  expect(renderTable(COLUMNS, rows, plain, 40)).toBe(
    "ID          AGE  NAME               NOTE\nact_123456  2m   a long name of a…  note\n",
  );
  expect(renderTable(COLUMNS, rows, plain, 25)).toBe("ID      AGE  NAME    NOTE\nact_12  2m   a lon…  note\n");
  expect(renderTable(COLUMNS, rows, plain, 19)).toBe("ID     NAME    NOTE\nact_1  a lon…  note\n");
  for (const room of [19, 25, 30, 40]) {
    for (const line of renderTable(COLUMNS, rows, plain, room).split("\n"))
      expect(line.length).toBeLessThanOrEqual(room);
  }
});

test("what must never be cut stays whole, in the last column and in any other", () => {
  const cell = { text: "POST bank.example/pay", uncut: "POST bank.example".length };
  expect(textTable([["a", cell]], plain, 10)).toBe("a  POST bank.example…\n");
  const columns = [{ heading: "CALL", min: 2 }, { heading: "B" }];
  expect(renderTable(columns, [[cell, "b"]], plain, 5)).toStartWith("CALL                B\nPOST bank.example…");
});

const ACTION = {
  id: "act_01m82axjzte7v9c2x4m6n8p0qr",
  status: "failed",
  created_at: "2026-03-01T12:00:00.000Z",
  method: "POST",
  url: "https://api.stripe.com/v1/refunds",
  attempts: 3,
  retries: 3,
  created_by: { id: "key_1", name: "billing-agent" },
  response_code: 422,
  response_body: { error: { message: "No such charge" } },
  last_error: "The target answered with status 422.",
  duration_ms: 193,
};

// Safe: what a row reads of an action.
const action = (more: object = {}) => ({ ...ACTION, ...more }) as unknown as ActionJson;

test("an action tells its agent, its code and its error, at any width", () => {
  const actions = [action(), action({ title: "Refund 12 EUR", url: "http://127.0.0.1:4000/x" })];
  const wide = listed(actions, 200);
  expect(wide).toContain(
    "act_01m82axjzte7v9c2x4m6n8p0qr  2m   failed 422  3/3    billing-agent  POST api.stripe.com/v1/refunds                 No such charge\n",
  );
  // The call stands before the requester's words: a title that ends like a host must not seem to be a part of it.
  expect(wide).toMatch(/POST http:\/\/127\.0\.0\.1:4000\/x +Refund 12 EUR/);
  const narrow = listed(actions, 80);
  expect(narrow).toContain("act_01m82axjzte7v9  2m   failed 422  ");
  expect(narrow).toContain("POST api.stripe.com");
  for (const line of narrow.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
});

test("at 80 columns the name of the agent is whole, and title and result are below their row", () => {
  const titled = action({ title: "Refund 12.00 EUR for order 4711" });
  const untitled = action({ status: "completed", response_code: 200, last_error: null });
  expect(listed([titled, untitled], 80).split("\n")).toEqual([
    "ID                  AGE  STATUS         AGENT          CALL",
    "act_01m82axjzte7v9  2m   failed 422     billing-agent  POST api.stripe.com/v1/r…",
    "    Refund 12.00 EUR for order 4711  No such charge",
    "act_01m82axjzte7v9  2m   completed 200  billing-agent  POST api.stripe.com/v1/r…",
    "    193 ms",
    "",
  ]);
});

test("what is below a row is cut like the row", () => {
  const columns = [{ heading: "ID" }, { heading: "NAME", min: 20, leaves: 1, goesBelow: true }];
  const text = renderTable(columns, [["act_1", "a name that is longer than the terminal is wide"]], plain, 24);
  expect(text).toBe("ID\nact_1\n    a name that is long…\n");
});

test("a long title gives way before the path of a call", () => {
  const long = action({
    title: "Refund 63.00 EUR to Acme GmbH for order 1837",
    url: "https://api.stripe.com/v1/refunds/re_18",
  });
  const line = listed([long], 120);
  expect(line).toContain("POST api.stripe.com/v1/refunds/re_18");
  expect(line).toContain("\n    Refund 63.00 EUR to Acme GmbH for order 1837\n");
});

test("ids made one after the other within a millisecond differ in a narrow list", () => {
  const at = new Date(1_772_366_400_000);
  const actions = Array.from({ length: 200 }, () => action({ id: systemIds.action(at) }));
  const lines = listed(actions, 80, at)
    .split("\n")
    .filter((line) => line.startsWith("act_"));
  expect(new Set(lines.map((line) => line.split(" ")[0])).size).toBe(actions.length);
});

test("the target's own words tell why it failed, unless it did not", () => {
  expect(failureIn(action())).toBe("No such charge");
  expect(failureIn(action({ last_error: null }))).toBeNull();
});

test("without a message of the target our own sentence is told", () => {
  expect(failureIn(action({ response_body: null, last_error: "The target refused the connection." }))).toBe(
    "The target refused the connection",
  );
});

test("what comes next is told in place of an error, where something does", () => {
  const now = new Date("2026-03-01T12:02:00Z");
  const resultOf = (more: object) => LISTED_COLUMNS.at(-1)?.[1](action(more), now);
  expect(resultOf({ status: "pending", next_retry_in_seconds: 38 })).toMatchObject({ text: "again in 38 s" });
  expect(resultOf({ status: "completed" })).toMatchObject({ text: "193 ms" });
  expect(resultOf({ status: "pending", pause: { id: "pau_1" } })).toMatchObject({ text: "paused" });
});

test("a change is one aligned line, which fits the terminal and tells the result", () => {
  const at = new Date(2026, 2, 1, 14, 2, 11);
  const changes = [
    action(),
    action({ status: "awaiting_approval", response_code: null, response_body: null, last_error: null }),
  ];
  const [failed = "", held = ""] = changes.map((one) => eventLine({ at, action: one }, plain, 91));
  expect(failed).toBe("14:02:11  failed 422     act_01m82axjzte7v9  POST api.stripe.com/v1/refunds  No such charge\n");
  expect(held).toStartWith("14:02:11  awaiting approval  act_01m82axjzte7v9  POST api.stripe.com/v1/refunds\n");
  expect(eventLine({ at, action: action({ status: "active" }) }, plain)).toContain(
    "active             act_01m82axjzte7v9c2",
  );
  const wide = eventLine({ at, action: action() }, plain, 200);
  expect(wide).toBe(
    "14:02:11  failed 422         act_01m82axjzte7v9c2x4m6n8p0qr  billing-agent   POST api.stripe.com/v1/refunds  No such charge\n",
  );
});

test("before a decision no line of the request can look like one of ours, at any width of the terminal", () => {
  const text = `ok\nDetails\n  Requested by  Ann\n${" ".repeat(40)}Send it? [y/N] y`;
  const value = `Pay${" ".repeat(80)}! It was approved.`;
  const facts = [
    { name: "url", label: "URL", value: "https://bank.example/" },
    { name: "body", label: "Body", value: "Text, 84 bytes, text/plain" },
    { name: "title", label: "Requester says", value },
  ] as const;
  const risks = [{ name: "size", level: "warning", text: `Large. ${"x".repeat(40)}` }] as const;
  const shown = describeDecision(
    action({ body: null, text }),
    { facts: [...facts], risks: [...risks] },
    { paint: plain, io: { columns: 40 } },
  );
  const lines = shown.trimEnd().split("\n");
  expect(lines.filter((line) => line.length > 40)).toEqual([]);
  expect(lines.filter((line) => !line.startsWith("  "))).toEqual([
    `! Large. ${"x".repeat(31)}`,
    "Body: Text, 84 bytes, text/plain",
    "Details",
  ]);
  expect(lines.filter((line) => line.startsWith("  |"))).toEqual([
    "  | ok",
    "  | Details",
    "  |   Requested by  Ann",
    `  | ${" ".repeat(36)}`,
  ]);
  expect(shown).toContain("\n    …     Send it? [y/N] y\n");
});
