import { describe, expect, test } from "bun:test";
import type { ActionStatus } from "../../src/core/action.ts";
import { actionAt, type TimelineEvent, type TimelineEntry } from "../../src/core/timeline.ts";
import { anAction, later, NOON } from "../support/factory.ts";

let seq = 0;

const entry = (status: ActionStatus, event: TimelineEvent, atMs = 0): TimelineEntry => {
  seq += 1;
  return { seq, at: later(atMs), run: 2, status, event };
};

const decided = (type: "retried" | "approved" | "rejected") => ({ type, actor: "key:boss", reason: null }) as const;

const now = anAction({ status: "completed", run: 3, attempts: 2, startedAt: NOON, finishedAt: NOON });

test("a run begins with nothing of the runs before it", () => {
  const earlier = actionAt(now, [entry("awaiting_approval", decided("retried"), 7)]);
  expect(earlier).toMatchObject({
    status: "awaiting_approval",
    run: 2,
    attempts: 0,
    startedAt: null,
    finishedAt: null,
  });
});

test("a decision is told with whoever made it, and a no ends the run", () => {
  const held = entry("awaiting_approval", decided("retried"), 7);
  const released = actionAt(now, [held, entry("pending", decided("approved"), 8)]);
  expect(released).toMatchObject({ status: "pending", approvedAt: later(8), approvedBy: "key:boss", finishedAt: null });
  const rejected = actionAt(now, [held, entry("cancelled", decided("rejected"), 9)]);
  expect(rejected).toMatchObject({ status: "cancelled", approvedBy: null, finishedAt: later(9) });
});

test("an attempt that never began is none: the action is due at once, and was not started if it was the first", () => {
  const begun = [entry("pending", decided("approved"), 1), entry("active", { type: "started" }, 2)];
  const back = entry("pending", { type: "not_started", reason: "Nothing was sent." }, 3);
  expect(actionAt(now, [...begun, back])).toMatchObject({
    attempts: 0,
    startedAt: null,
    dueAt: later(3),
    status: "pending",
  });
  const again = entry("active", { type: "started" }, 4);
  expect(actionAt(now, [...begun, back, again])).toMatchObject({ attempts: 1, startedAt: later(4) });
});

test("what is told beside the changes of state changes nothing", () => {
  const told = { event: "action.awaiting_approval", delivered: true, attempts: 1, error: null, next_retry_at: null };
  const held = entry("awaiting_approval", decided("retried"));
  const more = (["mail", "callback"] as const).map((type) => entry("awaiting_approval", { type, ...told }, 5));
  expect(actionAt(now, [held, entry("awaiting_approval", { type: "held" }), ...more])).toEqual(actionAt(now, [held]));
});

describe("a late result", () => {
  const response = { responseBody: '"whole"', responseTruncated: false, responseHeaders: null, durationMs: 4 };
  const known = (run: number, atMs: number) => ({ run, attempt: 1, responseCode: 200, ...response, at: later(atMs) });
  const made = { type: "attempt", attempt: 1, outcome: "answered", error: null, duration_ms: 4 } as const;
  const told = { ...made, response_code: 200, next_retry_at: null, location: null };
  const failed = entry("failed", { type: "failed" }, 3);

  test("is there from when it was known on, also in the run after it", () => {
    const action = { ...now, lateResult: known(1, 5) };
    expect(actionAt(action, [failed]).lateResult).toBeNull();
    const retried = entry("awaiting_approval", decided("retried"), 7);
    expect(actionAt(action, [retried]).lateResult).toEqual(known(1, 5));
  });

  test("of a later run is not told in an earlier one, whose own is told without the body that is gone", () => {
    const action = { ...now, lateResult: known(3, 9) };
    const late = entry("failed", { ...told, late: "result" }, 5);
    const own = { ...known(2, 5), responseBody: null };
    expect(actionAt(action, [failed, late]).lateResult).toEqual(own);
    // One that is only noted becomes nobody's result.
    expect(actionAt(action, [failed, entry("failed", { ...told, late: "noted" }, 5)]).lateResult).toBeNull();
  });
});

test("without a timeline an action is what it is", () => {
  expect(actionAt(now, [])).toEqual(now);
});
