import { describe, expect, test } from "bun:test";
import { ACTION_STATUSES, type ActionRequest } from "../../src/actions/action.ts";
import { answersFor, differs, isInWindow } from "../../src/actions/dedupe.ts";
import { aRequest, later, NOON } from "../support/factory.ts";

const DAY_MS = 86_400_000;

test("an action answers for its key for 24 h, and not a millisecond longer", () => {
  expect(isInWindow(NOON, NOON)).toBe(true);
  expect(isInWindow(NOON, later(DAY_MS - 1))).toBe(true);
  expect(isInWindow(NOON, later(DAY_MS))).toBe(false);
  // The clock was set back after the create.
  expect(isInWindow(NOON, later(-DAY_MS))).toBe(true);
});

test("an idempotency key means its action whatever became of it, a dedupe key all but a failed one", () => {
  expect(ACTION_STATUSES.filter((status) => !answersFor("idempotency", status))).toEqual([]);
  expect(ACTION_STATUSES.filter((status) => !answersFor("dedupe", status))).toEqual(["failed"]);
});

/** A request in which everything is set, so that each difference stands alone. */
const STORED = aRequest({
  headers: { Accept: "text/plain", "X-Plan": "b" },
  dedupe: "order-7",
  idempotencyKey: "k1",
  callback: "https://app.example.com/done",
  notifyEmail: "boss@example.com",
});

describe("what differs", () => {
  test.each([
    ["url", { url: "https://api.example.com/orders?again" }],
    ["method", { method: "PUT" }],
    ["body", { body: '{"order":8}' }],
    ["body", { body: null }],
    ["headers", { headers: { Accept: "text/plain", "X-Plan": "c" } }],
    ["headers", { headers: { Accept: "text/plain" } }],
    ["headers", { headers: null }],
    ["dedupe", { dedupe: "order-8" }],
    ["dedupe", { dedupe: null }],
    ["retries", { retries: 4 }],
    ["approve", { approve: true }],
    ["on_unknown", { onUnknown: "stop" }],
    ["notify", { notifyEmail: null }],
    ["callback", { callback: null }],
  ] as const satisfies readonly (readonly [string, Partial<ActionRequest>])[])("in %s is named", (field, change) => {
    expect(differs(STORED, { ...STORED, ...change })).toEqual([field]);
  });

  test("is nothing between a request and itself, however its headers are ordered and spelt", () => {
    expect(differs(STORED, { ...STORED })).toEqual([]);
    expect(differs(STORED, { ...STORED, headers: { "x-plan": "b", ACCEPT: "text/plain" } })).toEqual([]);
    expect(differs(aRequest({ headers: null }), aRequest({ headers: {} }))).toEqual([]);
  });

  test("in the case of a header's value is a difference", () => {
    expect(differs(STORED, { ...STORED, headers: { Accept: "text/PLAIN", "X-Plan": "b" } })).toEqual(["headers"]);
  });

  test("is told all at once, in the order of the fields", () => {
    const other: ActionRequest = {
      ...STORED,
      url: "https://other.example.com/",
      method: "GET",
      body: null,
      headers: null,
      dedupe: null,
      retries: 1,
      approve: true,
      onUnknown: "stop",
      notifyEmail: null,
      callback: null,
    };
    expect(differs(STORED, other)).toEqual([
      "url",
      "method",
      "body",
      "headers",
      "dedupe",
      "retries",
      "approve",
      "on_unknown",
      "notify",
      "callback",
    ]);
  });
});
