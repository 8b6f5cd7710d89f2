import { describe, expect, test } from "bun:test";
import type { ActionRequest } from "../../src/core/action.ts";
import { differs } from "../../src/core/dedupe.ts";
import { aRequest } from "../support/factory.ts";
import { words } from "../support/words.ts";

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
    expect(differs(STORED, other)).toEqual(
      words("url method body headers dedupe retries approve on_unknown notify callback"),
    );
  });
});
