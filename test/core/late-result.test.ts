import { describe, expect, test } from "bun:test";
import { type Action, type LateResult, lateResultText, parseLateResult } from "../../src/core/action.ts";
import type { Outcome } from "../../src/core/outcome.ts";
import { type LateEnd, releaseClaim, settle, settleLate, withhold } from "../../src/core/settle.ts";
import { anAction, answered, later, NOON } from "../support/factory.ts";

const INTERRUPTED: Outcome = { kind: "unknown", fault: "interrupted" };

function end(outcome: Outcome, overrides: Partial<LateEnd> = {}): LateEnd {
  const backoff = { baseMs: 2_000, capMs: 3_600_000 };
  const measured = { durationMs: 41, timeoutMs: 30_000, backoff, chance: 0.5 };
  return { outcome, now: later(9), ...measured, run: 2, attempt: 1, ...overrides };
}

/** In its second run, one attempt of which was closed as unknown. */
function rescued(overrides: Partial<Action> = {}): Action {
  const active = anAction({ status: "active", run: 2, attempts: 1, retries: 3, revision: 7, leaseUntil: later(45) });
  const { after } = settle(active, { ...end(INTERRUPTED), now: NOON });
  return { ...after, ...overrides };
}

function aLateResult(overrides: Partial<LateResult> = {}): LateResult {
  const response = { responseBody: '{"n":1.0}', responseTruncated: false, responseHeaders: null, durationMs: 41 };
  return { run: 2, attempt: 1, responseCode: 200, ...response, at: later(9), ...overrides };
}

const HELD = {
  effect: "hold",
  policy: { effect: "hold", by: "rule", id: "rul_a", name: "Payments", version: 1, reason: null },
} as const;

const OK = answered(200, '{"n":1.0}');

describe("a result that comes after its attempt was closed as unknown", () => {
  test("undoes that where nothing was claimed since: a success completes the action, and no attempt is added", () => {
    const before = rescued();
    const { after, events } = settleLate(before, end(OK));
    expect(after).toMatchObject({ status: "completed", attempts: 1, revision: before.revision + 1, dueAt: null });
    expect(after).toMatchObject({ result: { responseCode: 200, responseBody: '{"n":1.0}', lastError: null } });
    expect(after.lateResult).toBeNull();
    expect(events).toMatchObject([
      { type: "attempt", attempt: 1, outcome: "answered", response_code: 200, late: "settled" },
      { type: "completed" },
    ]);
  });

  test("undoes that where it failed too: its Retry-After is obeyed, and statuses that are given up on end it", () => {
    const busy = { ...answered(503, "null"), retryAfter: "120" };
    const { after, events } = settleLate(rescued(), end(busy));
    expect(after).toMatchObject({ status: "pending", attempts: 1, dueAt: later(9 + 120_000) });
    expect(events).toMatchObject([{ type: "attempt", late: "settled", next_retry_at: later(120_009).toISOString() }]);
    const given = settleLate(rescued(), end(busy, { giveUpOn: [503] }));
    expect(given.after).toMatchObject({
      status: "failed",
      result: { responseCode: 503, lastError: expect.any(String) },
    });
  });

  test("settles the action as usual while its claim holds, because only another late result came in between", () => {
    const before = anAction({ status: "active", run: 2, attempts: 2, retries: 3, leaseUntil: later(45) });
    const { after, events } = settleLate(before, end(OK, { attempt: 2 }));
    expect([after.status, events.map((event) => "late" in event)]).toEqual(["completed", [false, false]]);
  });

  test("completes an action that waits for a further attempt, if it is a success, and else is only noted", () => {
    const before = rescued({ attempts: 2 });
    const done = settleLate(before, end(OK));
    expect(done.after).toMatchObject({ status: "completed", dueAt: null, attempts: 2, result: { responseCode: 200 } });
    expect(done.events).toMatchObject([{ type: "attempt", attempt: 1, late: "settled" }, { type: "completed" }]);
    expect(done.kept).toMatchObject({ run: 2, attempt: 1, responseBody: '{"n":1.0}' });
    const noted = settleLate(before, end(answered(500)));
    expect(noted.after).toBe(before);
    expect(noted.events).toMatchObject([{ type: "attempt", attempt: 1, run: 2, response_code: 500, late: "noted" }]);
  });

  test("waits for a later attempt that is under way, and completes the action if that ends without success", () => {
    const before = anAction({ status: "active", run: 2, attempts: 2, retries: 3, leaseUntil: later(45) });
    const { after, events } = settleLate(before, end(OK));
    expect(after).toMatchObject({ status: "active", revision: before.revision + 1, lateResult: aLateResult() });
    expect(events).toMatchObject([{ type: "attempt", late: "noted" }]);
    for (const lateResult of [aLateResult({ run: 1 }), aLateResult({ responseCode: 500 })]) {
      expect(settle({ ...before, lateResult }, end(answered(500))).after.status).toBe("pending");
    }
    // What is under way keeps its claim.
    expect(settleLate(before, end(answered(500))).after).toBe(before);
    const ended = settle(after, end(answered(500, '"no"')));
    expect(ended.kept).toMatchObject({ attempt: 2, responseBody: '"no"' });
    expect(ended.after).toMatchObject({ status: "completed", lateResult: null, result: { responseCode: 200 } });
    expect(ended.events).toMatchObject([{ type: "attempt", response_code: 500 }, { type: "completed" }]);
    const interrupted = settle(after, end(INTERRUPTED));
    expect(interrupted.after.status).toBe("completed");
    // Its own success is the newer one.
    expect(settle(after, end(answered(201, "null"))).after).toMatchObject({ result: { responseCode: 201 } });
  });

  test("completes an action whose later attempt never began: nothing more is sent", () => {
    const active = anAction({ status: "active", run: 2, attempts: 2, retries: 3, lateResult: aLateResult() });
    for (const { after, events } of [releaseClaim(active, "late", NOON), withhold(active, HELD, NOON)]) {
      expect(after).toMatchObject({ status: "completed", attempts: 1, result: { responseCode: 200 } });
      expect(events).toMatchObject([{ type: "not_started" }, { type: "completed" }]);
    }
    const { events } = withhold({ ...active, lateResult: null }, HELD, NOON);
    expect(events).toMatchObject([{ type: "not_started" }, { type: "held", reason: 'The rule "Payments" holds it.' }]);
  });

  test.each(["failed", "cancelled"] as const)(
    "changes no status of an action that has %s, which gains it",
    (status) => {
      const before = rescued({ status, dueAt: null, finishedAt: later(3), attempts: 3 });
      const { after, events } = settleLate(before, end(OK));
      expect(after).toEqual({ ...before, revision: before.revision + 1, lateResult: aLateResult() });
      expect(events).toMatchObject([{ type: "attempt", attempt: 1, run: 2, late: "result" }]);
      // An error says less than a success, and the first answer is kept.
      const failed = settleLate(before, end(answered(500)));
      expect(failed.after.lateResult).toMatchObject({ responseCode: 500 });
      expect(settleLate(failed.after, end(answered(404), { attempt: 2 })).after).toBe(failed.after);
      expect(settleLate(failed.after, end(OK, { attempt: 2 })).after.lateResult).toMatchObject({ responseCode: 200 });
      expect(settleLate(after, end(answered(500), { attempt: 2 })).after).toBe(after);
    },
  );

  test("of a call that nothing came back from is noted, whatever the action is by now", () => {
    for (const status of ["failed", "cancelled", "completed", "active"] as const) {
      const before = rescued({ status, attempts: 2 });
      const { after, events } = settleLate(before, end({ kind: "not_sent", fault: "refused" }));
      expect(after).toBe(before);
      expect(events).toMatchObject([{ type: "attempt", outcome: "not_sent", late: "noted" }]);
    }
    const pending = rescued();
    expect(settleLate(pending, end(INTERRUPTED)).after).toBe(pending);
  });

  test("of a later run takes the place of an earlier run's, and a failure never that of a success", () => {
    const before = rescued({ status: "failed", dueAt: null, lateResult: aLateResult({ run: 1 }) });
    expect(settleLate(before, end(answered(500))).after.lateResult).toMatchObject({ run: 2, responseCode: 500 });
    const held = rescued({ status: "awaiting_approval", run: 3, lateResult: aLateResult({ run: 2 }) });
    expect(settleLate(held, end(OK, { run: 1 })).after.lateResult).toMatchObject({ run: 2 });
  });

  test("is noted on a completed action, and says so in a later run without a change of its status or revision", () => {
    const completed = rescued({ status: "completed" });
    expect(settleLate(completed, end(OK)).after).toBe(completed);
    const held = rescued({ status: "awaiting_approval", run: 3, attempts: 0, approve: true });
    const { after, events } = settleLate(held, end(OK));
    expect(after).toEqual({ ...held, lateResult: aLateResult() });
    expect(events).toMatchObject([{ type: "attempt", run: 2, late: "noted" }]);
    expect(settleLate(held, end(answered(500))).after).toBe(held);
    const again = anAction({ status: "active", run: 3, attempts: 1, leaseUntil: later(45) });
    expect(settleLate(again, end(OK)).after).toEqual({ ...again, lateResult: aLateResult() });
  });
});

test("a late result is stored with its status first", () => {
  const late = aLateResult({ responseBody: '{"n":12345678901234567890}', responseHeaders: '[["a","b"]]' });
  const text = lateResultText(late) ?? "";
  expect(text.startsWith("200 {")).toBe(true);
  expect(parseLateResult(text)).toEqual(late);
  const altered = ["200 {", "200 7", "200 null", "abc " + text.slice(4), text.replace(/"at":\d+/, '"at":"x"')];
  for (const one of [...altered, text.replace(/"at":\d+/, '"at":9e15')]) expect(parseLateResult(one)).toBeNull();
});
