import { seeWhole } from "../../src/receipts/see.ts";
import { describe, expect, test } from "bun:test";
import type { Role } from "../../src/core/roles.ts";
import type { Action, Result, ActionStatus } from "../../src/core/action.ts";
import type { PastAttempt } from "../../src/core/changes.ts";
import { ERROR_KINDS } from "../../src/core/outcome.ts";
import type { TimelineEntry, TimelineEvent } from "../../src/core/timeline.ts";
import { Controls } from "../../src/pages/action/action-controls.tsx";
import { Story } from "../../src/pages/action/action-story.tsx";
import { adviceOn } from "../../src/pages/action/advice.ts";
import { runRows, runSpans, chosenAttempt } from "../../src/pages/action/attempts.tsx";
import { renderPart } from "../../src/ui/layout.tsx";
import { anAction, anAttempt, aResult, later, NOON } from "../support/factory.ts";

function attempt(n: number, code: number | null, run = 1): TimelineEntry {
  const made = anAttempt(n, {
    outcome: code === null ? "unknown" : "answered",
    response_code: code,
    error: code === 200 ? null : "It failed.",
  });
  return { seq: n, at: later(run * 10_000 + n * 1_000), run, status: "failed", event: made };
}

function result(code: number | null, lastError: string | null): Result {
  const source = code === null ? "dispatch" : "target";
  return aResult({ lastError, errorSource: lastError === null ? null : source, responseCode: code });
}

function told(overrides: Partial<Action>, timeline: readonly TimelineEntry[] = [], role: Role = "owner"): string {
  const part = Story({ action: seeWhole(anAction(overrides)), timeline, role, now: later(0), baseUrl: BASE_URL });
  return renderPart(part)
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(/\s+/g, " ")
    .replaceAll(" .", ".")
    .trim();
}

const BASE_URL = "https://outgate.example.com";

const REFUSED = "The target answered with status 422.";

describe("the sentence about an action", () => {
  test.each([
    [
      "failed",
      200,
      "Failed, but the target answered 200 to attempt 1, after it was closed as unknown. It has done what was asked: a retry would send it again.",
    ],
    [
      "cancelled",
      201,
      "Cancelled, but the target answered 201 to attempt 1, after it was closed as unknown. It has done what was asked: a retry would send it again.",
    ],
    [
      "failed",
      422,
      "Failed, but the target answered 422 to attempt 1, after it was closed as unknown. Fix the fields that the target names, then edit and resend.",
    ],
  ] as const)(
    "says that it has %s although the target answered %i too late, and what that means",
    (status, code, text) => {
      const response = { responseBody: null, responseTruncated: false, responseHeaders: null, durationMs: 41 };
      const lateResult = { run: 1, attempt: 1, responseCode: code, ...response, at: later(9) };
      expect(told({ status, attempts: 1, result: result(null, "It failed."), lateResult })).toBe(text);
    },
  );

  test("says of a failure what was answered, that no attempt follows, and what helps", () => {
    const failed = { status: "failed", attempts: 3, result: result(422, REFUSED) } as const;
    const same = [attempt(1, 422), attempt(2, 422), attempt(3, 422)];
    expect(told(failed, same)).toBe(
      "The target answered 422 three times. It will not be retried. Fix the fields that the target names, then edit and resend.",
    );
    expect(told(failed, [attempt(1, 503), attempt(2, 503), attempt(3, 422)])).toStartWith(
      `${REFUSED} It failed after 3 attempts. It will not be retried.`,
    );
    // Of an earlier run nothing is counted.
    expect(told({ ...failed, run: 2, attempts: 1 }, [...same, attempt(1, 422, 2)])).toStartWith(
      "The target answered 422. It will not",
    );
    // Who can't do anything about it is not told to.
    expect(told(failed, same, "reader")).toBe("The target answered 422 three times. It will not be retried.");
  });

  test("says of the test of the first steps what keeps the service from calling itself", () => {
    const url = `${BASE_URL}/health`;
    const failed = (lastError: string, more: object = {}) =>
      told({ url, status: "failed", attempts: 1, result: result(null, lastError), ...more });
    const unknown = failed("The target's name could not be resolved.");
    expect(unknown).toContain("calls Outgate at its own address, BASE_URL: let the server reach it");
    const untrusted = failed(
      "The target's TLS certificate was not accepted: no authority that this machine trusts has signed it (see NODE_EXTRA_CA_CERTS).",
    );
    expect(untrusted).toContain("BASE_URL: give it a certificate that the server trusts (NODE_EXTRA_CA_CERTS");
    expect(failed("", { result: result(502, "The target answered with status 502.") })).not.toContain("BASE_URL");
    expect(failed("", { url: "https://api.example.com/health" })).not.toContain("BASE_URL");
  });

  test("warns where the target may have received it", () => {
    const lost = result(null, "The target closed the connection before the whole answer came.");
    expect(told({ status: "failed", attempts: 1, result: lost }, [attempt(1, null)])).toContain("check there first");
  });

  test("says when the next attempt follows, and of a completed action how long it took", () => {
    const retrying = { status: "pending", attempts: 2, dueAt: later(38_000), result: result(503, "Busy.") } as const;
    expect(told(retrying)).toBe(
      "Attempt 2 of 3 failed. Busy. The next attempt follows in 38 s. Send it now, or cancel it.",
    );
    expect(told(retrying, [], "reader")).not.toContain("Send it now");
    const done = { status: "completed", attempts: 2, result: result(200, null) } as const;
    expect(told(done)).toBe("The target answered 200 in 180 ms, on attempt 2.");
  });

  test("has no words of an answer that broke off for a reason", () => {
    const broken = { ...result(null, "The connection was closed."), responseBody: '"Done."' };
    expect(told({ status: "failed", attempts: 1, result: broken })).not.toContain("Done.");
    const refused = { ...result(422, REFUSED), responseBody: '{"message":"No such charge"}' };
    expect(told({ status: "failed", attempts: 1, result: refused })).toContain("No such charge");
  });

  test("says who rejected it and why, and hides no earlier run", () => {
    const rejected: TimelineEvent = { type: "rejected", actor: "user:ann@example.com", reason: "Too much" };
    const entry: TimelineEntry = { seq: 1, at: later(1), run: 2, status: "cancelled", event: rejected };
    const text = told({ status: "cancelled", run: 2, revision: 6, approve: true }, [entry]);
    expect(text).toContain("Rejected by ann@example.com in the console : Too much");
    expect(text).toContain("the target may have received it in an earlier run");
  });

  test("has advice for every kind of failure and every code", () => {
    for (const kind of ERROR_KINDS) expect(adviceOn(kind, null)).toMatch(/^[A-Z].*\.$/);
    for (const code of [300, 307, 400, 404, 418, 429, 500, 599])
      expect(adviceOn("target", code)).toMatch(/^[A-Z].*\.$/);
  });
});

describe("the main button of a failed action", () => {
  const mainOf = (overrides: Partial<Action>, role: "owner" | "reader" = "owner") => {
    const action = seeWhole(anAction({ status: "failed", attempts: 3, ...overrides }));
    const user = { email: "ann@example.com", role, hasOthers: false, formToken: "t" } as const;
    const page = { action, digest: "2:00", user, now: later(0), baseUrl: "http://127.0.0.1:3000" };
    const html = renderPart(Controls({ ...page, timeline: [], pause: null }));
    // A plain button names its look; the main one has none.
    const buttons = [...html.matchAll(/<(?:button|a) [^>]*>.*?<\/(?:button|a)>/gs)].map(([text]) => text);
    const main = buttons.filter((text) => !text.includes("button-plain") && !text.includes("copy"));
    return main.map((text) =>
      text
        .replaceAll(/<svg.*?<\/svg>/gs, "")
        .replaceAll(/<[^>]+>/g, "")
        .trim(),
    );
  };

  test("edits the request where the same one would fail again, and else sends it again", () => {
    for (const code of [301, 400, 404, 422])
      expect(mainOf({ result: result(code, REFUSED) })).toEqual(["Edit and resend"]);
    for (const code of [408, 409, 429, 500, 503])
      expect(mainOf({ result: result(code, "Busy.") })).toEqual(["Retry now"]);
    expect(mainOf({ result: result(null, "The target refused the connection.") })).toEqual(["Retry now"]);
  });

  test("is not there for who may do neither", () => {
    expect(mainOf({ result: result(422, REFUSED) }, "reader")).toEqual([]);
  });
});

function past(n: number, run: number): PastAttempt {
  const { event, at } = attempt(n, 503, run);
  if (event.type !== "attempt") throw new Error("It is an attempt.");
  return { run, attempt: n, at, made: event, responseHeaders: null, responseBody: null, responseTruncated: false };
}

describe("the attempts of a page", () => {
  const attempts = [past(2, 1), past(3, 1), past(1, 2)];

  test("are chosen by run and number, else the last of the present run", () => {
    const chosen = (search: string, run = 2) => {
      const one = chosenAttempt({ run }, attempts, search);
      return one === null ? null : [one.run, one.attempt];
    };
    expect(chosen("")).toEqual([2, 1]);
    expect(chosen("?run=1&attempt=3")).toEqual([1, 3]);
    expect(chosen("?attempt=3")).toEqual([2, 1]);
    // None of another run stands in for one that has not ended.
    expect(chosen("", 3)).toBeNull();
  });

  test("have a row each, with the wait before it, and one for what goes on", () => {
    const created: TimelineEvent = { type: "created", actor: "key:a" };
    const timeline: TimelineEntry[] = [
      { seq: 1, at: later(0), run: 1, status: "pending", event: created },
      { seq: 2, at: later(10), run: 1, status: "active", event: { type: "started" } },
      { ...attempt(1, 503), at: later(40), status: "pending" },
    ];
    const [run] = runRows(timeline, [past(1, 1)], later(100));
    expect(run?.rows.map(({ attempt: n, spans }) => [n, spans.map(({ kind }) => kind)])).toEqual([
      [1, ["wait", "bad"]],
      [null, ["wait"]],
    ]);
    // An attempt of which nothing is kept has no row.
    expect(runRows(timeline, [], later(100))[0]?.rows).toHaveLength(1);
  });
});

type Row = readonly [atMs: number, status: ActionStatus, event: TimelineEvent, run?: number];

const failed = (count: number) =>
  anAttempt(count, { response_code: 503, error: "The target answered with status 503." });

const noted = (type: "callback"): TimelineEvent => ({
  type,
  event: "action.completed",
  delivered: true,
  attempts: 1,
  error: null,
  next_retry_at: null,
});

function timelineOf(...rows: readonly Row[]): readonly TimelineEntry[] {
  return rows.map(([atMs, status, event, run = 1], seq) => ({ seq, at: later(atMs), run, status, event }));
}

/** Kind, begin and end in milliseconds after noon. */
const drawn = (rows: readonly Row[], nowMs = 99_000) =>
  runSpans(timelineOf(...rows), later(nowMs)).map(({ run, spans }) => [
    run,
    spans.map(({ kind, from, to }) => `${kind} ${from.getTime() - NOON.getTime()}-${to.getTime() - NOON.getTime()}`),
  ]);

const created: TimelineEvent = { type: "created", actor: "key:agent" };

test("a run is what it was spent with, one stretch behind the other", () => {
  const rows: readonly Row[] = [
    [0, "awaiting_approval", created],
    [0, "awaiting_approval", { type: "held" }],
    [60, "pending", { type: "approved", actor: "user:ann" }],
    [65, "active", { type: "started" }],
    [70, "pending", failed(1)],
    [170, "active", { type: "started" }],
    [180, "completed", anAttempt(2)],
    [180, "completed", { type: "completed" }],
    [500, "completed", noted("callback")],
  ];
  expect(drawn(rows)).toEqual([[1, ["approval 0-60", "wait 60-65", "bad 65-70", "wait 70-170", "good 170-180"]]]);
});

test("what is not over goes on to now", () => {
  expect(drawn([[0, "awaiting_approval", created]], 5_000)).toEqual([[1, ["approval 0-5000"]]]);
  expect(
    drawn(
      [
        [0, "pending", created],
        [10, "active", { type: "started" }],
      ],
      25,
    ),
  ).toEqual([[1, ["wait 0-10", "running 10-25"]]]);
});

test("each run is its own, from its retry on", () => {
  const rows: readonly Row[] = [
    [0, "pending", created],
    [1, "active", { type: "started" }],
    [4, "failed", failed(1)],
    [4, "failed", { type: "failed" }],
    [900, "pending", { type: "retried", actor: "user:ann" }, 2],
    [901, "active", { type: "started" }, 2],
    [905, "completed", anAttempt(1), 2],
  ];
  expect(drawn(rows)).toEqual([
    [1, ["wait 0-1", "bad 1-4"]],
    [2, ["wait 900-901", "good 901-905"]],
  ]);
});

test("a timeline whose beginning is lost, or that has none, is no error", () => {
  expect(drawn([])).toEqual([]);
  expect(drawn([[0, "completed", { type: "completed" }]])).toEqual([[1, []]]);
  expect(drawn([[0, "completed", noted("callback")]])).toEqual([]);
});
