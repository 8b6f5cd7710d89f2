import { describe, expect, test } from "bun:test";
import { ATTEMPT_BODY_BYTES_MAX, ATTEMPTS_KEPT } from "../../src/core/limits.ts";
import type { Action } from "../../src/core/action.ts";
import { mayHaveTooMany, pastAttempts, responseToKeep, retry, type KeptResponse } from "../../src/core/changes.ts";
import { startAttempt } from "../../src/core/settle.ts";
import type { TimelineEntry } from "../../src/core/timeline.ts";
import { aDecision, anAction, anAttempt, answered, aResult, later, settled } from "../support/factory.ts";

const HEADERS = '[["content-type","application/json"]]';

const CLAIM = { now: later(0), leaseUntil: later(45_000) };

/** The change that ends an attempt of a new action with this answer. */
function ended(code: number, body: string | null, overrides: Partial<Action> = {}) {
  const active = startAttempt(anAction(overrides), CLAIM);
  return settled(active, { ...answered(code, body), headers: HEADERS }).change;
}

const changeOf = (change: ReturnType<typeof retry>) => {
  if (change instanceof Error) throw change;
  return change;
};

function keptBodyOf(body: string): Pick<KeptResponse, "responseBody" | "responseTruncated"> {
  const change = ended(503, body);
  const { responseBody = null, responseTruncated = false } = responseToKeep(change) ?? {};
  // As of one that comes too late.
  const late = responseToKeep({ ...change, kept: { ...response(1, 1), responseBody: body } });
  expect(late).toMatchObject({ responseBody, responseTruncated });
  return { responseBody, responseTruncated };
}

describe("the response that is kept beside the action's row", () => {
  test("is that of an attempt which another will follow", () => {
    expect(responseToKeep(ended(503, '{"busy":true}'))).toEqual({
      run: 1,
      attempt: 1,
      responseHeaders: HEADERS,
      responseBody: '{"busy":true}',
      responseTruncated: false,
    });
  });

  test("is none of an attempt that ends the run, since the action has it", () => {
    expect(responseToKeep(ended(200, "{}"))).toBeNull();
    expect(responseToKeep(ended(503, "{}", { retries: 1 }))).toBeNull();
  });

  test("is that of the last attempt of a run when the next begins", () => {
    const { after: failed } = ended(422, '{"no":1}', { retries: 1 });
    const kept = responseToKeep(changeOf(retry(failed, aDecision(later(9)))));
    expect(kept).toMatchObject({ run: 1, attempt: 1, responseBody: '{"no":1}' });
  });

  test("is none where nothing came back", () => {
    const active = startAttempt(anAction(), CLAIM);
    expect(responseToKeep(settled(active, { kind: "not_sent", fault: "refused" }).change)).toBeNull();
    const cancelled = changeOf(retry(anAction({ status: "cancelled" }), aDecision(later(9))));
    expect(responseToKeep(cancelled)).toBeNull();
  });

  test("has a body within its bound, and what was cut is a text or bytes and says so", () => {
    const exact = JSON.stringify("x".repeat(ATTEMPT_BODY_BYTES_MAX - 2));
    expect(keptBodyOf(exact)).toEqual({ responseBody: exact, responseTruncated: false });
    const long = ["x".repeat(ATTEMPT_BODY_BYTES_MAX), "\0".repeat(9_000), "ü".repeat(9_000), "😀".repeat(9_000)];
    for (const text of [...long, `{"a":"${"y".repeat(20_000)}"}`]) {
      const json = text.startsWith("{") ? text : JSON.stringify(text);
      const { responseBody, responseTruncated } = keptBodyOf(json);
      expect(responseTruncated).toBe(true);
      expect(Buffer.byteLength(responseBody ?? "")).toBeLessThanOrEqual(ATTEMPT_BODY_BYTES_MAX);
      expect(Buffer.byteLength(responseBody ?? "")).toBeGreaterThan(ATTEMPT_BODY_BYTES_MAX * 0.6);
      const beginning: unknown = JSON.parse(responseBody ?? "null");
      expect(text.startsWith(String(beginning).replace(/\uFFFD$/, ""))).toBe(true);
    }
    const bytes = `{"encoding":"base64","data":"${"QUJD".repeat(9_000)}"}`;
    const cut: unknown = JSON.parse(keptBodyOf(bytes).responseBody ?? "null");
    expect(cut).toEqual({ encoding: "base64", data: expect.stringMatching(/^(QUJD)+$/) });
  });

  test("may be one too many only beyond the first ones", () => {
    expect(mayHaveTooMany({ run: 1, attempt: ATTEMPTS_KEPT })).toBe(false);
    expect(mayHaveTooMany({ run: 1, attempt: ATTEMPTS_KEPT + 1 })).toBe(true);
    expect(mayHaveTooMany({ run: 2, attempt: 1 })).toBe(true);
  });
});

const RESULT = aResult({ responseBody: '"last"', responseHeaders: HEADERS });

function made(run: number, attempt: number): TimelineEntry {
  return {
    seq: run * 100 + attempt,
    at: later(run * 100 + attempt),
    run,
    status: "completed",
    event: anAttempt(attempt),
  };
}

function response(run: number, attempt: number): KeptResponse {
  return { run, attempt, responseHeaders: null, responseBody: `"${run}.${attempt}"`, responseTruncated: false };
}

const bodiesOf = (...of: Parameters<typeof pastAttempts>) =>
  pastAttempts(...of).map(({ run, attempt, responseBody }) => [run, attempt, responseBody]);

describe("the attempts of an action", () => {
  test("are the newest that have ended, over all runs, each with its own response", () => {
    const entries = [made(1, 1), made(1, 2), made(1, 3), made(2, 1), made(2, 2), made(2, 3)];
    const action = anAction({ status: "failed", run: 2, attempts: 3, result: RESULT });
    const responses = [response(1, 2), response(1, 3), response(2, 1), response(2, 2)];
    expect(bodiesOf(action, entries, responses)).toEqual([
      [1, 2, '"1.2"'],
      [1, 3, '"1.3"'],
      [2, 1, '"2.1"'],
      [2, 2, '"2.2"'],
      [2, 3, '"last"'],
    ]);
  });

  test("have none that is still under way, and the action's result belongs to the one before it", () => {
    const action = anAction({ status: "active", attempts: 2, result: RESULT });
    expect(bodiesOf(action, [made(1, 1)], [])).toEqual([[1, 1, '"last"']]);
  });

  test("never have the response of another attempt or run, whatever was written between the reads", () => {
    const later2 = anAction({ status: "failed", run: 1, attempts: 2, result: RESULT });
    expect(bodiesOf(later2, [made(1, 1)], [])).toEqual([[1, 1, null]]);
    const nextRun = anAction({ status: "completed", run: 2, attempts: 1, result: RESULT });
    expect(bodiesOf(nextRun, [made(1, 1)], [response(2, 1)])).toEqual([[1, 1, null]]);
  });
});
