import { describe, expect, test } from "bun:test";
import type { Action, Result } from "../../src/core/action.ts";
import type { Answered, Fault, Outcome } from "../../src/core/outcome.ts";
import { type AttemptEnd, settle } from "../../src/core/settle.ts";
import { anAction, anAttempt, answered, aResult, later, NOON } from "../support/factory.ts";
import { HTTP_METHODS } from "../../src/core/target.ts";

const answer = (overrides: Partial<Answered>): Answered => ({ ...answered(200, '{"n":1.0}'), ...overrides });

const broken = (code: number, brokenBy: "closed" | "timed_out") => answer({ code, brokenBy, truncated: true });

/** What is stored of the whole answer. */
const resultOf = (more: Partial<Result>) => aResult({ responseBody: '{"n":1.0}', durationMs: 41, ...more });

const unknown = (fault: Fault): Outcome => ({ kind: "unknown", fault });

const notSent = (fault: Fault): Outcome => ({ kind: "not_sent", fault });

/** In the second of three attempts of its second run. */
function active(overrides: Partial<Action> = {}): Action {
  return Object.freeze(
    anAction({
      status: "active",
      run: 2,
      attempts: 2,
      retries: 3,
      revision: 7,
      dueAt: null,
      leaseUntil: later(45_000),
      startedAt: later(-5_000),
      approvedAt: later(-6_000),
      approvedBy: "key:boss",
      ...overrides,
    }),
  );
}

function ended(outcome: Outcome, overrides: Partial<AttemptEnd> = {}): AttemptEnd {
  const backoff = { baseMs: 2_000, capMs: 3_600_000 };
  return { outcome, now: NOON, durationMs: 41, timeoutMs: 30_000, backoff, chance: 0.5, ...overrides };
}

/** What an outcome is, whatever the action: the crossing below derives the end from it. */
interface Row {
  readonly name: string;
  readonly outcome: Outcome;
  readonly success: "always" | "unless GET" | "never";
  /** Ends the action although attempts remain: always, or with `on_unknown: "stop"`. */
  readonly final: "always" | "with stop" | "never";
}

const SUCCESSES: readonly Row[] = [200, 201, 204, 299].map((code) => ({
  name: `${code}`,
  outcome: answer({ code }),
  success: "always",
  final: "never",
}));

const BROKEN: readonly Row[] = (["closed", "timed_out"] as const).map((brokenBy) => ({
  name: `200 whose body was ${brokenBy}`,
  outcome: broken(200, brokenBy),
  success: "unless GET",
  final: "never",
}));

const ANSWERED_NO: readonly Row[] = [300, 301, 304, 307, 399, 400, 404, 408, 413, 429, 500, 503, 599].map((code) => ({
  name: `${code}`,
  outcome: answer({ code }),
  success: "never",
  final: "never",
}));

const NOT_SENT: readonly Row[] = (["refused", "unreachable", "name_not_resolved", "certificate"] as const).map(
  (fault) => ({ name: `not sent, ${fault}`, outcome: notSent(fault), success: "never", final: "never" }),
);

const REFUSALS: readonly Row[] = (["address_never", "address_private", "altered"] as const).map((fault) => ({
  name: `not sent, ${fault}`,
  outcome: notSent(fault),
  success: "never",
  final: "always",
}));

const UNKNOWN: readonly Row[] = (
  ["timed_out", "closed", "not_http", "headers_too_large", "tls_handshake", "interrupted"] as const
).map((fault) => ({ name: `unknown, ${fault}`, outcome: unknown(fault), success: "never", final: "with stop" }));

const ROWS = [...SUCCESSES, ...BROKEN, ...ANSWERED_NO, ...NOT_SENT, ...REFUSALS, ...UNKNOWN];

/** Every method, attempts left or not, both ways with the unknown. */
const ACTIONS = HTTP_METHODS.flatMap((method) =>
  ([1, 2, 3, 100] as const).flatMap((retries) =>
    (["retry", "stop"] as const).map((onUnknown) =>
      active({ method, retries, attempts: Math.min(2, retries), onUnknown }),
    ),
  ),
);

test.each(ROWS.map((row) => [row.name, row] as const))(
  "the status after an attempt that ended with %s",
  (_name, row) => {
    for (const action of ACTIONS) {
      const isSuccess = row.success === "always" || (row.success === "unless GET" && action.method !== "GET");
      const isFinal = row.final === "always" || (row.final === "with stop" && action.onUnknown === "stop");
      const goesOn = action.attempts < action.retries && !isFinal;
      const { method, attempts, retries, onUnknown } = action;
      const settled = settle(action, ended(row.outcome)).after.status;
      const failed = goesOn ? "pending" : "failed";
      const expected = isSuccess ? "completed" : failed;
      expect(settled, `${method} ${attempts} ${retries} ${onUnknown}`).toEqual(expected);
    }
  },
);

describe("what an attempt leaves behind", () => {
  test("a success is completed with the answer, and nothing is due", () => {
    const action = active();
    expect(settle(action, ended(answer({ code: 201, truncated: true, location: "/orders/7" })))).toEqual({
      before: action,
      after: {
        ...action,
        revision: action.revision + 1,
        status: "completed",
        leaseUntil: null,
        dueAt: null,
        finishedAt: NOON,
        result: resultOf({ responseCode: 201, responseTruncated: true }),
      },
      events: [anAttempt(2, { response_code: 201 }), { type: "completed" }],
    });
  });

  test("a failure with attempts left waits for its delay, with the error and the answer", () => {
    const action = active();
    const error = "The target answered with status 503.";
    expect(settle(action, ended(answer({ code: 503 })))).toEqual({
      before: action,
      after: {
        ...action,
        revision: action.revision + 1,
        status: "pending",
        leaseUntil: null,
        dueAt: later(4_000),
        finishedAt: null,
        result: resultOf({ lastError: error, errorSource: "target", responseCode: 503 }),
      },
      events: [anAttempt(2, { response_code: 503, error, next_retry_at: "2026-03-04T12:00:04.000Z" })],
    });
  });

  test("the last failure is the end: nothing is due, and no answer means no code and no body", () => {
    const action = active({ attempts: 3 });
    const error = "The target did not answer within 30 seconds.";
    expect(settle(action, ended(unknown("timed_out")))).toEqual({
      before: action,
      after: {
        ...action,
        revision: action.revision + 1,
        status: "failed",
        leaseUntil: null,
        dueAt: null,
        finishedAt: NOON,
        result: resultOf({ lastError: error, errorSource: "dispatch", responseCode: null, responseBody: null }),
      },
      events: [anAttempt(3, { outcome: "unknown", response_code: null, error }), { type: "failed" }],
    });
  });

  test("the source is the target's only where it answered with something else than a success", () => {
    const sourceOf = ({ outcome }: Row) => settle(active({ method: "GET" }), ended(outcome)).after.result?.errorSource;
    expect(new Set(SUCCESSES.map(sourceOf))).toEqual(new Set([null]));
    expect(new Set(ANSWERED_NO.map(sourceOf))).toEqual(new Set(["target"]));
    expect(new Set([...BROKEN, ...NOT_SENT, ...REFUSALS, ...UNKNOWN].map(sourceOf))).toEqual(new Set(["dispatch"]));
  });

  test("a success whose body broke is completed with what was read, and says that it was cut", () => {
    const { status, result } = settle(active(), ended(broken(200, "timed_out"))).after;
    expect({ status, result }).toEqual({
      status: "completed",
      result: resultOf({ responseTruncated: true }),
    });
  });

  test("a GET whose body broke has no answer; its status stands in the timeline", () => {
    const { after, events } = settle(active({ method: "GET", attempts: 3 }), ended(broken(200, "closed")));
    expect(after.result).toEqual(
      resultOf({
        lastError: "The target closed the connection before the whole answer came.",
        errorSource: "dispatch",
        responseCode: null,
        responseBody: null,
      }),
    );
    expect(events[0]).toMatchObject({ outcome: "answered", response_code: 200, error: after.result?.lastError });
  });

  test("a no whose body broke stays the target's no, with what was read of it", () => {
    const { result } = settle(active({ method: "GET" }), ended(broken(500, "timed_out"))).after;
    expect(result).toMatchObject({
      errorSource: "target",
      responseCode: 500,
      responseBody: '{"n":1.0}',
      responseTruncated: true,
      responseHeaders: null,
    });
  });

  test("where a redirect led is told in the timeline, and of nothing else", () => {
    const locationAt = (code: number) => {
      const [attempt] = settle(active(), ended(answer({ code, location: "http://169.254.169.254/" }))).events;
      return attempt?.type === "attempt" ? attempt.location : undefined;
    };
    expect([301, 304, 399].map(locationAt)).toEqual(Array.from({ length: 3 }, () => "http://169.254.169.254/"));
    expect([201, 404, 500].map(locationAt)).toEqual([null, null, null]);
    const { after } = settle(active(), ended(answer({ code: 302, location: "/elsewhere" })));
    expect(after.result).toMatchObject({
      errorSource: "target",
      responseCode: 302,
      lastError: "The target answered with a redirect (302); redirects are never followed.",
    });
  });

  test("a refusal by policy is the dispatch's, not sent, and names no address", () => {
    const { after, events } = settle(active({ retries: 100 }), ended(notSent("address_private")));
    expect(after).toMatchObject({ status: "failed", dueAt: null });
    expect(after.finishedAt).toEqual(NOON);
    expect(after.result).toMatchObject({
      errorSource: "dispatch",
      lastError: "The target's address is not allowed (see ALLOWED_PRIVATE_TARGETS).",
      responseCode: null,
    });
    expect(events[0]).toMatchObject({ outcome: "not_sent", next_retry_at: null });
  });

  test("an attempt that nobody measured has no duration", () => {
    const { after, events } = settle(active(), ended(unknown("interrupted"), { durationMs: null }));
    expect(after.result?.durationMs).toBeNull();
    expect(events[0]).toMatchObject({ duration_ms: null, outcome: "unknown" });
  });
});

describe("the delay after a failure", () => {
  const delayOf = (outcome: Outcome, action = active(), chance = 0.5) => {
    const { dueAt } = settle(action, ended(outcome, { chance })).after;
    return dueAt === null ? null : dueAt.getTime() - NOON.getTime();
  };

  test("grows with the attempts of the run, not with those of other runs", () => {
    const delays = [1, 2, 3, 4].map((attempts) =>
      delayOf(answer({ code: 500 }), active({ attempts, run: 9, retries: 100 })),
    );
    expect(delays).toEqual([2_000, 4_000, 8_000, 16_000]);
  });

  test("is what Retry-After asks for, on any failed answer and whatever the chance", () => {
    for (const code of [301, 404, 429, 500, 503]) {
      for (const chance of [0, 0.5, 0.999]) {
        expect(delayOf(answer({ code, retryAfter: "7" }), active(), chance)).toBe(7_000);
      }
    }
    const get = active({ method: "GET" });
    expect(delayOf({ ...broken(200, "closed"), retryAfter: "7" }, get)).toBe(7_000);
  });

  test("is the ordinary one when Retry-After can't be read", () => {
    expect(delayOf(answer({ code: 503, retryAfter: "soon" }))).toBe(4_000);
  });

  test("does not exist after the end", () => {
    expect(delayOf(answer({ code: 200, retryAfter: "7" }))).toBeNull();
    expect(delayOf(answer({ code: 503, retryAfter: "7" }), active({ attempts: 3 }))).toBeNull();
  });
});

test("a broken answer leaves nothing but the time that it asks to wait", () => {
  const get = active({ method: "GET", attempts: 1 });
  const outcome = answer({ brokenBy: "closed", truncated: true, headers: '[["etag","1"]]', retryAfter: "3600" });
  const { after } = settle(get, ended(outcome));
  expect(after).toMatchObject({ status: "pending", result: { responseHeaders: '[["retry-after","3600"]]' } });
  expect(after.dueAt).toEqual(later(3_600_000));
});
