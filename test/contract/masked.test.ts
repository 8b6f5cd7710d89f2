import { describe, expect, test } from "bun:test";
import { callbackJson } from "../../src/contract/callback.ts";
import { maskedAction, maskedEntry } from "../../src/contract/masked.ts";
import { timelineJson } from "../../src/contract/timeline.ts";
import { actionJson } from "../../src/contract/view.ts";
import type { Result } from "../../src/domain/action.ts";
import type { Happening } from "../../src/domain/timeline.ts";
import { anAction, NOON } from "../support/factory.ts";

const RECEIPT = "/r/0123456789abcdef";
const REFUSED: Result = {
  lastError: "The target answered with status 503.",
  errorSource: "target",
  responseCode: 503,
  responseBody: '{"session_token":"canary-response","big":12345678901234567890,"one":1.0}',
  responseTruncated: false,
  durationMs: 12,
};

/** A secret in every field that a caller or a target writes. */
const SECRETS = anAction({
  status: "failed",
  url: "https://ann:canary-login@api.example.com/orders?token=canary-query&page=2",
  body: '{"password":"canary-body","max_tokens":12345678901234567890,"one":1.0}',
  headers: { Authorization: "Bearer canary-header-0123", Accept: "text/plain", "X-Plan": "canary-plan" },
  dedupe: "sk_live_canary_dedupe",
  idempotencyKey: "ghp_canary0idempotency",
  callback: "https://app.example.com/done?key=canary-callback",
  result: REFUSED,
});

const shownOf = (action: typeof SECRETS, options = {}) =>
  JSON.parse(actionJson(action, { now: NOON, receiptUrl: RECEIPT, ...options }));

const NOTIFIED = { event: "action.failed", delivered: false, attempts: 6, error: "Gave up.", next_retry_at: null };

describe("a masked action", () => {
  test("shows all that it shows whole, but for its secrets", () => {
    const masked = { session_token: "••••", big: Number("12345678901234567890"), one: 1 };
    expect(shownOf(maskedAction(SECRETS))).toEqual({
      ...shownOf(SECRETS),
      url: "https://••••@api.example.com/orders?token=••••&page=2",
      body: { password: "••••", max_tokens: Number("12345678901234567890"), one: 1 },
      headers: { Authorization: "••••0123", Accept: "text/plain", "X-Plan": "••••" },
      dedupe: "••••dupe",
      idempotency_key: "••••ency",
      callback: "https://app.example.com/done?key=••••",
      response_body: masked,
      error: { ...shownOf(SECRETS).error, response_body: masked },
    });
  });

  test("keeps its numbers as they were written", () => {
    const text = actionJson(maskedAction(SECRETS), { now: NOON, receiptUrl: RECEIPT });
    expect(text).toContain('"max_tokens":12345678901234567890,"one":1.0}');
    expect(text.split('"big":12345678901234567890,"one":1.0}')).toHaveLength(3);
    expect(text).not.toContain("canary");
  });

  test("is what it was where there is nothing to hide, and the stored one is never touched", () => {
    const plain = anAction();
    expect(maskedAction(plain)).toEqual(plain);
    const before = structuredClone(SECRETS);
    maskedAction(SECRETS);
    expect(SECRETS).toEqual(before);
  });
});

test("a callback holds what an agent key sees, but for the values of headers, all of them", () => {
  expect(JSON.parse(callbackJson("action.failed", SECRETS, NOON, RECEIPT)).data).toEqual({
    ...shownOf(SECRETS),
    headers: { Authorization: "••••", Accept: "••••", "X-Plan": "••••" },
  });
});

describe("a masked row of a timeline", () => {
  const ATTEMPT: Happening = {
    type: "attempt",
    attempt: 1,
    outcome: "answered",
    response_code: 302,
    error: "The target answered with a redirect (302); redirects are never followed.",
    duration_ms: 41,
    next_retry_at: null,
    location: "/login?session=canary&page=2",
  };

  test.each<[Happening, object]>([
    [ATTEMPT, { location: "/login?session=••••&page=2" }],
    [{ ...ATTEMPT, location: null }, {}],
    [{ type: "approved", actor: "email:ann@example.com", reason: "as Bearer canary" }, { reason: "as Bearer ••••" }],
    [{ type: "rejected", actor: "key:boss", reason: "ann:canary@db" }, { reason: "••••@db" }],
    [{ type: "retried", actor: "key:boss", reason: null }, {}],
    [{ type: "created", actor: "key:boss" }, {}],
    [{ type: "held" }, {}],
    [{ ...NOTIFIED, type: "callback" }, {}],
  ])("%j differs only by its secrets", (happening, masked) => {
    const entry = { seq: 7, at: NOON, run: 1, status: "failed", happening } as const;
    const [whole] = JSON.parse(timelineJson([entry])).data;
    expect(JSON.parse(timelineJson([maskedEntry(entry)])).data).toEqual([{ ...whole, ...masked }]);
  });
});
