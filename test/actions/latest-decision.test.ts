import { describe, expect, test } from "bun:test";
import type { Action } from "../../src/core/action.ts";
import { latestDecision, type TimelineEvent, type TimelineEntry } from "../../src/core/timeline.ts";
import { anAction, NOON } from "../support/factory.ts";

const entries = (...events: readonly (readonly [run: number, event: TimelineEvent])[]): TimelineEntry[] =>
  events.map(([run, event], at) => ({ seq: at + 1, at: NOON, run, status: "pending", event }));

const approved = (reason: string | null, actor = "user:ann@example.com"): TimelineEvent => ({
  type: "approved",
  actor: actor as "user:ann",
  reason,
});

const approvedAction = (overrides: Partial<Action> = {}) =>
  anAction({ status: "pending", approve: true, approvedAt: NOON, approvedBy: "user:ann@example.com", ...overrides });

describe("the latest decision of an action", () => {
  test("is the approval of its run, with who and why, also after it was sent", () => {
    const rows = entries([1, { type: "created", actor: "key:agent" }], [1, { type: "held" }], [1, approved("go")]);
    for (const status of ["pending", "active", "completed", "failed"] as const) {
      expect(latestDecision(approvedAction({ status }), rows)).toEqual({
        decision: "approved",
        by: "user:ann@example.com",
        reason: "go",
        via: null,
      });
    }
  });

  test("says that it came by an elicitation", () => {
    const row = { type: "approved", actor: "mcp:agent", reason: null, via: "elicitation" } as const;
    expect(latestDecision(approvedAction(), entries([1, row]))).toMatchObject({ by: "mcp:agent", via: "elicitation" });
  });

  test("is none while it is held or was never held, and none of a run before", () => {
    const before = entries([1, approved("run 1")], [1, { type: "rejected", actor: "key:ann", reason: "run 1" }]);
    expect(latestDecision(anAction({ status: "awaiting_approval", approve: true, run: 2 }), before)).toBeNull();
    expect(latestDecision(anAction({ status: "completed" }), entries([1, { type: "completed" }]))).toBeNull();
    expect(latestDecision(approvedAction({ run: 2, approvedBy: "key:bob" }), before)).toMatchObject({
      by: "key:bob",
      reason: null,
    });
    expect(latestDecision(anAction({ status: "cancelled", run: 2 }), before)).toBeNull();
    // A row that was written after the action was read is not told of it.
    expect(latestDecision(anAction({ status: "awaiting_approval", approve: true }), before)).toBeNull();
    expect(latestDecision(approvedAction({ run: 2 }), entries([1, approved("1")], [2, approved("2")]))?.reason).toBe(
      "2",
    );
  });

  test("says whether somebody rejected or cancelled it, whatever was approved before", () => {
    const ended = { status: "cancelled", approvedAt: NOON, approvedBy: "user:ann@example.com" } as const;
    for (const type of ["rejected", "cancelled"] as const) {
      const rows = entries([1, approved("go")], [1, { type, actor: "key:bob", reason: "wrong customer" }]);
      expect(latestDecision(approvedAction(ended), rows)).toEqual({
        decision: type,
        by: "key:bob",
        reason: "wrong customer",
        via: null,
      });
    }
  });

  test("is no rejection when the clock has ended it: nobody answered", () => {
    const reason = "No one decided within 2 hours.";
    const rows = entries([1, { type: "held" }], [1, { type: "cancelled", actor: "system", reason }]);
    const action = anAction({ status: "cancelled", approve: true });
    expect(latestDecision(action, rows)).toEqual({ decision: "unanswered", by: "system", reason, via: null });
  });

  test("is a refusal when a rule stopped it: nobody was asked", () => {
    const reason = 'The rule "Freeze" refuses this call: Nothing goes out today.';
    const rows = entries([1, { type: "not_started", reason }], [1, { type: "cancelled", actor: "system", reason }]);
    const action = anAction({ status: "cancelled", approve: true });
    expect(latestDecision(action, rows)).toEqual({ decision: "refused", by: "system", reason, via: null });
  });

  test("is told without a reason where the row is gone", () => {
    expect(latestDecision(approvedAction(), [])).toEqual({
      decision: "approved",
      by: "user:ann@example.com",
      reason: null,
      via: null,
    });
    expect(latestDecision(anAction({ status: "cancelled" }), [])).toBeNull();
  });
});
