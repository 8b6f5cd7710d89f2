import { describe, expect, test } from "bun:test";
import { actionJson, timelineJson } from "../../src/receipts/action-json.ts";
import { seeHistory, see, seeAll, seeWhole } from "../../src/receipts/see.ts";
import { maskAction, maskedTimeline } from "../../src/receipts/masked-action.ts";
import { type Viewer, VIEWERS } from "../../src/core/roles.ts";
import { storedAction } from "../../src/receipts/seen-action.ts";
import {
  CUT_SECRET_CHARS_MAX,
  LOCATION_CHARS_MAX,
  RESPONSE_HEADER_CHARS_MAX,
  RESPONSE_HEADERS_BYTES_MAX,
  RESPONSE_HEADERS_MAX,
} from "../../src/core/limits.ts";
import type { TimelineEvent } from "../../src/core/timeline.ts";
import { anAction, anAttempt, aResult, NOON } from "../support/factory.ts";
import { keptHeaders, readHeaders } from "../../src/receipts/response-headers.ts";
import { MASK } from "../../src/receipts/mask-rules.ts";

const RECEIPT = "/r/0123456789abcdef";

const REFUSED = aResult({
  lastError: "The target answered with status 503.",
  errorSource: "target",
  responseCode: 503,
  responseBody: '{"session_token":"canary-response","big":12345678901234567890,"one":1.0}',
  durationMs: 12,
});

/** A secret in every field that a caller or a target writes. */
const SECRETS = anAction({
  status: "failed",
  url: "https://ann:canary-login@api.example.com/orders?token=canary-query&page=2",
  body: '{"password":"canary-body","max_tokens":12345678901234567890,"one":1.0}',
  headers: { Authorization: "Bearer canary-header-0123", Accept: "text/plain", "X-Plan": "canary-plan" },
  dedupe: "sk_live_canary0Dedupe1x9Kq2Lm8",
  idempotencyKey: "ghp_canary0Idempotency1x9Kq2Lm8Vb3Zt7Rw4Yp",
  callback: "https://app.example.com/done?key=canary-callback",
  result: REFUSED,
});

const shownOf = (action: typeof SECRETS, options = {}) =>
  JSON.parse(actionJson(seeWhole(action), { now: NOON, receiptUrl: RECEIPT, ...options }));

const LATE = { run: 1, attempt: 1, at: NOON, responseCode: 200 };

const NOTIFIED = { event: "action.failed", delivered: false, attempts: 6, error: null, next_retry_at: null };

describe("a masked action", () => {
  test.each(VIEWERS)("hides a secret in every text that a caller, a target or a person wrote: %s", (viewer) => {
    const text = "ghp_canary0Name1x9Kq2Lm8Vb3Zt7Rw4Yp5Ab6C";
    const [url, body, actor] = [`https://a.example/?q=${text}`, `{"text":"${text}"}`, `key:${text}` as const];
    const credential = { id: "crd_1", name: "stripe", kind: "bearer", hint: "a1B2", hosts: [] };
    const extras: object = { reason: text, metadata: { order: text }, credential, ofAnotherVersion: { text } };
    const answer = aResult({ responseBody: body, responseHeaders: `[["etag","${text}"]]` });
    const results = { result: { ...answer, lastError: text }, lateResult: { ...answer, ...LATE } };
    const said = { url, callback: url, body, headers: { "X-Order": text }, title: text, extras, ...results };
    const keys = { dedupe: text, idempotencyKey: text, notifyEmail: `${text}@a.example` };
    const masked = maskAction(anAction({ ...said, ...keys, createdBy: actor, approvedBy: actor }), viewer);
    expect(JSON.stringify(masked)).not.toContain("canary");
    expect(JSON.stringify(masked).includes("a1B2")).toBe(viewer !== "public");
    for (const name of [masked.createdBy, masked.approvedBy]) expect(name).toMatch(/^key:••••\(GitHub-token,/);
  });

  test("shows all that it shows whole, but for its secrets", () => {
    const masked = { session_token: "••••(session,15-chars)", big: Number("12345678901234567890"), one: 1 };
    expect(shownOf(maskAction(SECRETS, "public"))).toEqual({
      ...shownOf(SECRETS),
      url: "https://••••(password,12-chars)@api.example.com/orders?token=••••(token,12-chars)&page=2",
      body: { password: "••••(password,11-chars)", max_tokens: Number("12345678901234567890"), one: 1 },
      headers: {
        Authorization: "••••(credentials,25-chars,…0123)",
        Accept: "text/plain",
        "X-Plan": "••••(header,11-chars)",
      },
      dedupe: "••••(Stripe-key,30-chars,…2Lm8)",
      idempotency_key: "••••(GitHub-token,42-chars,…w4Yp)",
      callback: "https://app.example.com/done?key=••••(key,15-chars)",
      response_body: masked,
      error: { ...shownOf(SECRETS).error, response_body: masked },
      hidden_values: 8,
    });
  });

  test("hides what the answer repeats of the secrets in headers, query and body, that of each attempt too", async () => {
    const asked = {
      url: "https://api.example.com/orders?api_key=canary-query&page=orders-page",
      headers: { "X-Api-Key": "canary-header", Authorization: "Bearer canary-bearer", "X-Order": "order-4711" },
      body: `{"password":"canary-body","name":"orders-page"}`,
    };
    const body = `{"error":"Unknown: canary-header, canary-bearer, canary-query, canary-body.","order":"order-4711","page":"orders-page"}`;
    const result = aResult({ responseBody: body, responseHeaders: '[["location","/keys/canary-header"]]' });
    const lateResult = { ...result, ...LATE };
    const shown = (viewer: Viewer) => maskAction(anAction({ ...asked, result, lateResult }), viewer);
    const hidden = `{"error":"Unknown: ••••, ••••, ••••, ••••.","order":"order-4711","page":"orders-page"}`;
    const all = shown("public");
    expect([all.result?.responseBody, all.lateResult?.responseBody]).toEqual([hidden, hidden]);
    expect(all.result?.responseHeaders).toBe('[["location","/keys/••••"]]');
    const attempt = { run: 1, attempt: 1, responseHeaders: null, responseBody: body, responseTruncated: false };
    const past = [{ ...attempt, at: NOON, startedAt: NOON, made: anAttempt() }];
    const seen = await seeHistory(anAction({ ...asked, result }), past, "public");
    expect([seen.action.result?.responseBody, seen.attempts[0]?.responseBody]).toEqual([hidden, hidden]);
    // Whoever decides sees query and body, where they do not look generated.
    expect(shown("decider").result?.responseBody).toBe(hidden.replace("••••, ••••.", "canary-query, canary-body."));
  });

  const answered = (headers: Record<string, string>, responseBody: string, responseTruncated = false) =>
    maskAction(anAction({ headers, result: aResult({ responseBody, responseTruncated }) }), "public").result
      ?.responseBody;

  test("hides what the answer repeats of Basic credentials, decoded", () => {
    const headers = { Authorization: `Basic ${btoa("ann:canary:body 1")}` };
    const body = '{"error":"ann:canary:body 1 is wrong","tried":"canary:body 1"}';
    expect(answered(headers, body)).toBe('{"error":"•••• is wrong","tried":"••••"}');
  });

  test("hides a repeated key however many cookies there are", () => {
    const cookies = Array.from({ length: 20 }, (_, n) => `theme-of-page-${n}=${"dark".repeat(9)}${n}`);
    const headers = { Cookie: cookies.join("; "), "X-Api-Key": "canary-key" };
    expect(answered(headers, '{"error":"Unknown: canary-key"}')).toBe('{"error":"Unknown: ••••"}');
  });

  test("hides the last word of a cut answer, which may be the beginning of a secret", () => {
    const headers = { "X-Api-Key": "canary-header-0123" };
    expect(answered(headers, '"Unknown: canary-header-01"', true)).toBe('"Unknown: ••••"');
    expect(answered(headers, '"Unknown: canary-header-01"')).toBe('"Unknown: canary-header-01"');
    const cut = (json: string) => JSON.parse(answered({}, JSON.stringify(json), true) ?? "");
    expect(cut('{"k":"ghp_A7f3kQ9zL1mW8xYt2RvB5nCd6EgHjKp')).toBe('{"k":"••••');
    // Where it ends with a mask, or between words, nothing more is hidden.
    expect(cut('{"token":"abc')).toBe('{"token":"••••(token,3-chars)"');
    expect(answered({}, '"one two "', true)).toBe('"one two "');
    // A long word loses only as much as a secret may have.
    expect(answered({}, `"${"a".repeat(CUT_SECRET_CHARS_MAX + 1)}"`, true)).toBe('"a••••"');
    const emoji = cut(`${"😀".repeat(CUT_SECRET_CHARS_MAX)}a`);
    expect(emoji).toEndWith("😀\ufffd••••");
    // Where words have no spaces between them.
    expect(cut("今日は良い天気です。明日も".repeat(99))).toEndWith("今日は良い天気です。••••");
  });

  test("masks a request once, however many attempts are shown with it", async () => {
    let reads = 0;
    const action = anAction();
    const counting = Object.defineProperty({ ...action }, "body", {
      enumerable: true,
      get: () => ((reads += 1), null),
    });
    const made = anAttempt();
    const past = { run: 1, responseHeaders: null, responseBody: '"late"', responseTruncated: false, at: NOON, made };
    const readsFor = async (attempts: number) => {
      reads = 0;
      await seeHistory(
        counting,
        Array.from({ length: attempts }, (_, at) => ({ ...past, attempt: at + 1 })),
        "public",
      );
      return reads;
    };
    expect(await readsFor(5)).toBe(await readsFor(1));
  });

  test("says how many values are hidden, of the answer none, and for whoever decides fewer", () => {
    // Who approved it is no part of the request.
    const approved = { ...SECRETS, approvedBy: "key:ghp_canary0Name1x9Kq2Lm8Vb3Zt7Rw4Yp5Ab6C" } as const;
    expect(maskAction(approved, "public")).toMatchObject({ hiddenValues: 8, hiddenInHeaders: 2 });
    expect(maskAction(approved, "decider").hiddenValues).toBe(2);
  });

  test("keeps its numbers as they were written", () => {
    const text = actionJson(maskAction(SECRETS, "public"), { now: NOON, receiptUrl: RECEIPT });
    expect(text).toContain('"max_tokens":12345678901234567890,"one":1.0}');
    expect(text.split('"big":12345678901234567890,"one":1.0}')).toHaveLength(3);
    expect(text).not.toContain("canary");
  });

  test("is what it was where there is nothing to hide, and the stored one is never touched", () => {
    const plain = anAction();
    expect<object>(maskAction(plain, "public")).toEqual({ ...plain, viewer: "public", hiddenValues: 0 });
    const before = structuredClone(SECRETS);
    maskAction(SECRETS, "public");
    expect(SECRETS).toEqual(before);
  });
});

describe("a masked row of a timeline", () => {
  const ATTEMPT = anAttempt(1, {
    response_code: 302,
    error: "The target answered with a redirect (302); redirects are never followed.",
    location: "/login?session=canary&page=2",
  });

  test.each<[TimelineEvent, object]>([
    [ATTEMPT, { location: "/login?session=••••(session,6-chars)&page=2" }],
    [{ ...ATTEMPT, location: null }, {}],
    // What the target repeats of a header.
    [{ ...ATTEMPT, location: "/plain 5e55 words" }, { location: "/••••" }],
    // And of the URL.
    [{ ...ATTEMPT, location: "/keys/canary-query" }, { location: "/keys/••••" }],
    // Where it is cut, its end may be the beginning of a secret.
    [
      { ...ATTEMPT, location: `/${"a=1&".repeat(LOCATION_CHARS_MAX)}`.slice(0, LOCATION_CHARS_MAX - 5) + "b=gho" },
      { location: `/${"a=1&".repeat(LOCATION_CHARS_MAX)}`.slice(0, LOCATION_CHARS_MAX - 5) + "b=••••" },
    ],
    [
      { type: "approved", actor: "email:ann@example.com", reason: "as Bearer x9Kq2Lm8Vb3Zt7Rw" },
      { reason: "as Bearer ••••(Bearer-token,16-chars,…t7Rw)" },
    ],
    [{ type: "rejected", actor: "key:boss", reason: "ann:canary@db" }, { reason: "••••(password,6-chars)@db" }],
    [{ type: "retried", actor: "key:boss", reason: null }, {}],
    [{ type: "created", actor: "key:ann:canary@db" }, { actor: "key:••••(password,6-chars)@db" }],
    [{ type: "held" }, {}],
    [
      { ...NOTIFIED, type: "callback", error: "At ann:canary@db.", channel: "ann:canary@db" },
      { error: "At ••••(password,6-chars)@db.", channel: "••••(password,6-chars)@db" },
    ],
  ])("%j differs only by its secrets", (event, masked) => {
    const entry = { seq: 7, at: NOON, run: 1, status: "failed", event } as const;
    const [whole] = JSON.parse(timelineJson([entry])).data;
    const seen = maskAction(
      anAction({ url: "https://api.example.com/?api_key=canary-query", headers: { "x-api-key": "plain 5e55 words" } }),
      "public",
    );
    expect(JSON.parse(timelineJson(maskedTimeline([entry], seen))).data).toEqual([{ ...whole, ...masked }]);
  });
});

const LONG = anAction({
  body: JSON.stringify({ password: "hunter2", list: Array.from({ length: 20_000 }, (_, n) => `n${n}`) }),
  headers: { "X-Plan": "canary" },
});

test("a long action is masked on another thread as it would be on the spot, times and all", async () => {
  const seen = await see(LONG, "public");
  expect(seen).toEqual(maskAction(LONG, "public"));
  expect(seen.body).toContain('"password":"••••(password,7-chars)"');
  expect(seen.hiddenValues).toBe(2);
  expect(storedAction(seen)).toBe(LONG);
});

test("a thread that fails is replaced by another one", async () => {
  // Nothing that is stored has such a title.
  const failed = await see(Object.assign({}, LONG, { title: 7 }), "public").catch(String);
  expect(failed).toStartWith("Error: The masking worker failed");
  expect(await see(LONG, "public")).toEqual(maskAction(LONG, "public"));
});

test("several that are long only together come back in their order", async () => {
  const several = Array.from({ length: 30 }, (_, n) => anAction({ body: `{"n":${n},"pin":1${" ".repeat(1_000)}}` }));
  const seen = await seeAll(several, "public");
  expect(seen).toEqual(several.map((one) => maskAction(one, "public")));
  expect(seen[29]?.body).toContain('"n":29,"pin":"••••(PIN,1-char)"');
});

test("a caller sees its own actions whole among those of others, in their order", async () => {
  const own = anAction({ keyId: "key_own", body: '{"pin":1}' });
  const other = anAction({ keyId: "key_other", body: '{"pin":1}' });
  const agent = { role: "agent", scope: "own", keyId: "key_own", actor: "key:own" } as const;
  const seen = await seeAll([other, own, other], agent);
  expect(seen.map(({ body }) => body)).toEqual(['{"pin":"••••(PIN,1-char)"}', own.body, '{"pin":"••••(PIN,1-char)"}']);
  expect((await see(LONG, { ...agent, role: "owner" })).body).toBe(LONG.body);
  expect((await see(LONG, { ...agent, role: "reader" })).body).not.toBe(LONG.body);
});

const keptOf = async (headers: [string, string][]) => readHeaders(await keptHeaders(new Headers(headers), null));

describe("the headers of a response", () => {
  test("are kept by name, but only values that are no secret", async () => {
    const kept = await keptOf([
      ["Content-Type", "application/json"],
      ["X-RateLimit-Remaining", "7"],
      ["Set-Cookie", "session=1; Path=/"],
      ["Set-Cookie", "theme=dark"],
      ["X-Api-Key", "abc"],
      ["Authorization", "Basic YTpi"],
    ]);
    expect(kept.toSorted(([a], [b]) => a.localeCompare(b))).toEqual([
      ["authorization", MASK],
      ["content-type", "application/json"],
      ["set-cookie", MASK],
      ["set-cookie", MASK],
      ["x-api-key", MASK],
      ["x-ratelimit-remaining", "7"],
    ]);
  });

  test("are bounded in number, in bytes and each in length", async () => {
    const many = Array.from({ length: 100 }, (_, n): [string, string] => [`x-${n}`, "1"]);
    expect(await keptOf(many)).toHaveLength(RESPONSE_HEADERS_MAX);
    const large = Array.from({ length: 30 }, (_, n): [string, string] => [`x-ratelimit-${n}`, "v".repeat(400)]);
    expect(Buffer.byteLength(JSON.stringify(await keptOf(large)))).toBeLessThan(RESPONSE_HEADERS_BYTES_MAX * 1.2);
    expect(await keptOf([["etag", "e".repeat(9_000)]])).toEqual([
      ["etag", `${"e".repeat(RESPONSE_HEADER_CHARS_MAX)}…`],
    ]);
    expect(await keptOf([["n".repeat(RESPONSE_HEADER_CHARS_MAX + 1), "1"]])).toEqual([]);
  });

  test("always have Retry-After, since nobody is to be called before it", async () => {
    const many = Array.from({ length: 100 }, (_, n): [string, string] => [`a-${n}`, "1"]);
    expect(await keptOf([...many, ["Retry-After", "3600"]])).toHaveLength(RESPONSE_HEADERS_MAX);
    expect(await keptOf([...many, ["Retry-After", "3600"]])).toContainEqual(["retry-after", "3600"]);
  });

  test("are none where there are none", async () => {
    expect(await keptHeaders(new Headers(), null)).toBeNull();
    expect(readHeaders(null)).toEqual([]);
  });
});
