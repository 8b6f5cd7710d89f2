import { seeWhole } from "../../src/receipts/see.ts";
import { describe, expect, test } from "bun:test";
import { actionJson, type ViewOptions } from "../../src/receipts/action-json.ts";
import { callbackJson } from "../../src/receipts/enqueue.ts";
import { type Action, ACTION_STATUSES, type ActionStatus } from "../../src/core/action.ts";
import { openEngine, requestFor } from "../support/engine.ts";
import { anAction, answered, aResult, later, NOON } from "../support/factory.ts";
import { answering } from "../actions/senders.ts";

const RECEIPT = "/r/0123456789abcdef";

const OPTIONS: ViewOptions = { now: NOON, receiptUrl: RECEIPT };

const view = (action: Action, options: Partial<ViewOptions> = {}) =>
  JSON.parse(actionJson(seeWhole(action), { ...OPTIONS, ...options }));

const OK = aResult({ responseBody: '{"n":1.0}', durationMs: 41 });

const REFUSED = aResult({
  lastError: "The target answered with status 503.",
  errorSource: "target",
  responseCode: 503,
  responseBody: '"busy"',
  durationMs: 12,
});

const SILENT = aResult({
  lastError: "The target did not answer within 30 seconds.",
  errorSource: "dispatch",
  responseCode: null,
  durationMs: 30_000,
});

/** Everything that a caller can ask for. */
const ASKED = {
  url: "https://api.example.com/orders",
  method: "PATCH",
  body: '{"order":7}',
  headers: { "X-Plan": "b" },
  dedupe: "order-7",
  idempotencyKey: "k1",
  retries: 5,
  approve: true,
  callback: "https://app.example.com/done",
  notifyEmail: "boss@example.com",
} as const;

/** One action in each status, as it comes to be there. */
const ACTIONS: Readonly<Record<ActionStatus, Action>> = {
  pending: anAction({ ...ASKED, status: "pending", approve: false, dueAt: NOON }),
  awaiting_approval: anAction({ ...ASKED, status: "awaiting_approval" }),
  active: anAction({
    ...ASKED,
    status: "active",
    attempts: 1,
    dueAt: null,
    leaseUntil: later(45_000),
    startedAt: later(5_000),
    approvedAt: later(4_000),
    approvedBy: "key:boss",
  }),
  completed: anAction({
    ...ASKED,
    status: "completed",
    attempts: 2,
    startedAt: later(5_000),
    finishedAt: later(6_000),
    approvedAt: later(4_000),
    approvedBy: "key:boss",
    result: OK,
  }),
  failed: anAction({
    ...ASKED,
    status: "failed",
    attempts: 5,
    startedAt: later(5_000),
    finishedAt: later(6_000),
    result: REFUSED,
  }),
  cancelled: anAction({ ...ASKED, status: "cancelled", finishedAt: later(6_000) }),
};

/** Between two attempts: what a scheduled retry shows. */
const RETRYING = anAction({
  ...ASKED,
  status: "pending",
  attempts: 2,
  dueAt: later(7_500),
  startedAt: later(-9),
  result: REFUSED,
});

describe("an action", () => {
  test("shows what was asked for", () => {
    const held = ACTIONS.awaiting_approval;
    expect(view(held)).toEqual({
      id: held.id,
      status: "awaiting_approval",
      url: "https://api.example.com/orders",
      method: "PATCH",
      body: { order: 7 },
      headers: { "X-Plan": "b" },
      dedupe: "order-7",
      run: 1,
      attempts: 0,
      retries: 5,
      created_at: "2026-03-04T12:00:00.000Z",
      created_by: { id: "key_one", name: "test" },
      started_at: null,
      finished_at: null,
      next_retry_at: null,
      last_error: null,
      response_code: null,
      response_body: null,
      duration_ms: null,
      approve: true,
      approved_at: null,
      approved_by: null,
      callback: "https://app.example.com/done",
      idempotency_key: "k1",
      actions: ["approve", "cancel"],
      receipt_url: RECEIPT,
    });
  });

  test("says what may be done with it, by its status", () => {
    expect(Object.fromEntries(ACTION_STATUSES.map((status) => [status, view(ACTIONS[status]).actions]))).toEqual({
      pending: ["cancel"],
      active: [],
      awaiting_approval: ["approve", "cancel"],
      completed: [],
      failed: ["retry"],
      cancelled: ["retry"],
    });
  });

  test("shows its times as date-times, and null before they come", () => {
    const times = ({ created_at, started_at, finished_at, approved_at, approved_by }: Record<string, unknown>) => [
      created_at,
      started_at,
      finished_at,
      approved_at,
      approved_by,
    ];
    expect(times(view(ACTIONS.pending))).toEqual(["2026-03-04T12:00:00.000Z", null, null, null, null]);
    expect(times(view(ACTIONS.completed))).toEqual([
      "2026-03-04T12:00:00.000Z",
      "2026-03-04T12:00:05.000Z",
      "2026-03-04T12:00:06.000Z",
      "2026-03-04T12:00:04.000Z",
      "key:boss",
    ]);
  });

  test("shows its attempts and the newest result", () => {
    expect(view(ACTIONS.completed)).toMatchObject({
      attempts: 2,
      last_error: null,
      response_code: 200,
      response_body: { n: 1 },
      duration_ms: 41,
    });
    expect(view(RETRYING)).toMatchObject({
      attempts: 2,
      last_error: "The target answered with status 503.",
      response_code: 503,
      response_body: "busy",
      duration_ms: 12,
    });
  });

  test("says response_truncated and on_unknown only where there is something to say", () => {
    expect(view(anAction({ status: "completed", result: { ...OK, responseTruncated: true } })).response_truncated).toBe(
      true,
    );
    expect(view(anAction({ status: "completed", result: OK }))).not.toHaveProperty("response_truncated");
    expect(view(anAction({ onUnknown: "stop" })).on_unknown).toBe("stop");
    expect(view(anAction())).not.toHaveProperty("on_unknown");
  });
});

describe("a scheduled retry", () => {
  test("shows when it is due, in how many seconds, and how many attempts are left", () => {
    expect(view(RETRYING)).toMatchObject({
      next_retry_at: "2026-03-04T12:00:07.500Z",
      next_retry_in_seconds: 8,
      retries_remaining: 3,
    });
  });

  test.each([
    [0, 8],
    [500, 7],
    [501, 7],
    [7_499, 1],
    [7_500, 0],
    [60_000, 0],
  ])("%i ms later is due in %i seconds, and never in less than none", (ms, seconds) => {
    expect(view(RETRYING, { now: later(ms) }).next_retry_in_seconds).toBe(seconds);
  });

  test("and what is left of the attempts are shown only while the action is under way and was tried", () => {
    const shows = (action: Action) =>
      ["retries_remaining", "next_retry_in_seconds"].filter((name) => name in view(action));
    expect(ACTION_STATUSES.map((status) => [status, shows(ACTIONS[status])])).toEqual([
      ["pending", []],
      ["active", ["retries_remaining"]],
      ["awaiting_approval", []],
      ["completed", []],
      ["failed", []],
      ["cancelled", []],
    ]);
    expect(view(anAction({ status: "active", attempts: 3, retries: 3 })).retries_remaining).toBe(0);
  });

  test("what is left is shown from the beginning of a later run", () => {
    expect(view(anAction({ status: "pending", run: 2, attempts: 0, retries: 5 })).retries_remaining).toBe(5);
  });
});

describe("the error", () => {
  test.each(ACTION_STATUSES)(
    "of what is %s is there only when it has failed, also with an error behind it",
    (status) => {
      expect("error" in view({ ...ACTIONS[status], result: REFUSED })).toBe(status === "failed");
    },
  );

  test("of a target that said no has its status and its body", () => {
    const shown = view(ACTIONS.failed);
    expect(shown.error).toEqual({
      source: "target",
      message: "The target answered with status 503.",
      response_code: 503,
      response_body: "busy",
    });
    expect(shown.error.message).toBe(shown.last_error);
  });

  test("of the dispatch has neither", () => {
    const shown = view({ ...ACTIONS.failed, result: SILENT });
    expect(shown.error).toEqual({
      source: "dispatch",
      message: "The target did not answer within 30 seconds.",
      response_code: null,
      response_body: null,
    });
    expect(shown).toMatchObject({ response_code: null, response_body: null, last_error: shown.error.message });
  });
});

test("the answer to a repeated create says that it is one and what differs; every other answer says neither", () => {
  expect(view(ACTIONS.completed, { differs: [] })).toMatchObject({ deduplicated: true, differs: [] });
  expect(view(ACTIONS.completed, { differs: ["url", "body"] })).toMatchObject({
    deduplicated: true,
    differs: ["url", "body"],
  });
  expect(view(ACTIONS.completed)).not.toHaveProperty("deduplicated");
  expect(view(ACTIONS.completed)).not.toHaveProperty("differs");
});

describe("as written", () => {
  const NUMBERS =
    '{"big":12345678901234567890,"one":1.0,"tiny":1e-400,"huge":1E+999,"zero":-0,"nul":"\\u0000","__proto__":{"a":1}}';

  test("stand the numbers and strings of body, response_body and the error's", () => {
    const result = { ...REFUSED, responseBody: NUMBERS };
    const text = actionJson(seeWhole(anAction({ status: "failed", body: NUMBERS, result })), OPTIONS);
    expect(text.split(NUMBERS)).toHaveLength(4);
    expect(text).toContain(`"body":${NUMBERS},"headers"`);
    expect(text).toContain(`"response_body":${NUMBERS},"duration_ms"`);
    expect(text).toContain(`"response_code":503,"response_body":${NUMBERS}}`);
  });

  test.each(["1.0", "null", "true", '"text"', "[1.0]", '{"encoding":"base64","data":"AA=="}'])(
    "stands an answer that is %s",
    (responseBody) => {
      const action = anAction({ status: "completed", result: { ...OK, responseBody } });
      expect(actionJson(seeWhole(action), OPTIONS)).toContain(`"response_body":${responseBody},"duration_ms"`);
    },
  );

  test("stands every text, whatever quotes and signs are in it", () => {
    const odd = `"\\/\b\n\u2028é🗝️</script>{}`;
    const action = anAction({
      url: `https://api.example.com/?q=${odd}`,
      headers: { "X-Odd": odd },
      dedupe: odd,
      idempotencyKey: odd,
      approvedBy: `key:${odd}`,
      callback: `https://app.example.com/${odd}`,
      status: "failed",
      result: { ...REFUSED, lastError: odd },
    });
    expect(view(action, { receiptUrl: odd, differs: [odd] })).toMatchObject({
      url: `https://api.example.com/?q=${odd}`,
      headers: { "X-Odd": odd },
      dedupe: odd,
      idempotency_key: odd,
      approved_by: `key:${odd}`,
      callback: `https://app.example.com/${odd}`,
      last_error: odd,
      error: { message: odd },
      receipt_url: odd,
      differs: [odd],
    });
  });
});

describe("a callback", () => {
  const SECRETS = { Authorization: "Bearer secret-1", Accept: "secret-2", "X-Empty": "" };

  test.each([
    ["action.awaiting_approval", "awaiting_approval"],
    ["action.completed", "completed"],
    ["action.failed", "failed"],
    ["action.cancelled", "cancelled"],
  ] as const)(
    "%s is its type, its time and the action as an answer shows it, but for the values of headers",
    (event, status) => {
      const action = { ...ACTIONS[status], headers: SECRETS };
      const text = callbackJson(event, action, later(1_000), RECEIPT);
      expect(JSON.parse(text)).toEqual({
        type: event,
        timestamp: "2026-03-04T12:00:01.000Z",
        data: {
          ...view(action, { now: later(1_000) }),
          headers: { Authorization: "••••", Accept: "••••", "X-Empty": "••••" },
        },
      });
      expect(text).not.toContain("secret-");
    },
  );

  test("has no secret of the headers that the target repeats", () => {
    const result = aResult({ responseBody: '"Unknown key: secret-key"' });
    const lateResult = { ...result, run: 1, attempt: 1, at: NOON, responseCode: 200 };
    const action = anAction({ headers: { "X-Api-Key": "secret-key" }, status: "failed", result, lateResult });
    const { data } = JSON.parse(callbackJson("action.failed", action, NOON, RECEIPT));
    for (const shown of [data, data.error, data.late_result]) expect(shown.response_body).toBe("Unknown key: ••••");
  });

  test("of an action without headers has none", () => {
    expect(JSON.parse(callbackJson("action.completed", anAction(), NOON, RECEIPT)).data.headers).toBeNull();
  });
});

test("the receipt's address is a path with an unguessable token, the same from creation to the end, and the only link", async () => {
  await using engine = await openEngine({ sender: answering(answered(200)) });
  const { actionService, owner, receiptUrl, secrets } = engine;
  const request = requestFor({ approve: true, notifyEmail: "boss@example.com", callback: "http://127.0.0.1:9/done" });
  const { action } = await actionService.create(owner, request);
  const seen = [
    action,
    await actionService.approve(owner, action.id, null),
    await engine.saw(action.id, { status: "completed" }),
  ];
  for (const now of seen) {
    const options = { now: engine.clock.now(), receiptUrl: receiptUrl(now.id) };
    const shown = view(now, options);
    expect(shown.receipt_url).toMatch(/^\/r\/[0-9a-z]{26}[0-9a-f]{32}$/);
    expect(shown.receipt_url).toBe(receiptUrl(action.id));
    expect(secrets.readReceiptToken(shown.receipt_url.slice("/r/".length))).toBe(action.id);
    const callback = callbackJson("action.completed", now, options.now, options.receiptUrl);
    for (const text of [JSON.stringify(shown), callback]) {
      expect(text).not.toMatch(/\/a\/|boss@example\.com/);
      expect(text.split("/r/")).toHaveLength(2);
    }
  }
});
