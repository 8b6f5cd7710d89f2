import { DomainError } from "../../src/core/domain-error.ts";
import { describe, expect, test } from "bun:test";
import {
  type Action,
  ACTION_STATUSES,
  type ActionStatus,
  firstState,
  nextRetryAt,
  type Operation,
} from "../../src/core/action.ts";
import {
  type ApprovalInput,
  approve,
  cancel,
  type Change,
  type DecisionInput,
  givesBack,
  mayBeSentBefore,
  retry,
} from "../../src/core/changes.ts";
import { anAction, anAttempt, aDecision, later, NOON } from "../support/factory.ts";

const RESULT = {
  lastError: "The target answered with status 500.",
  errorSource: "target",
  responseCode: 500,
  responseBody: '{"n":1.0}',
  responseTruncated: true,
  responseHeaders: null,
  durationMs: 40,
} as const;

/** An action that has been through a lot, in the status given; whatever a law may touch is set. */
function worn(status: ActionStatus, overrides: Partial<Action> = {}): Action {
  return Object.freeze(
    anAction({
      status,
      run: 4,
      attempts: 2,
      revision: 9,
      dueAt: status === "pending" ? later(500) : null,
      leaseUntil: null,
      startedAt: later(-9_000),
      finishedAt: status === "failed" || status === "cancelled" ? later(-1_000) : null,
      approvedAt: later(-10_000),
      approvedBy: "key:earlier",
      approvedDigest: "earlier",
      result: RESULT,
      ...overrides,
    }),
  );
}

const LAWS = { approve, cancel, retry } as const satisfies Record<Operation, unknown>;

describe("a new action", () => {
  test("is due at once, or held with nothing due", () => {
    const blank = {
      run: 1,
      attempts: 0,
      leaseUntil: null,
      startedAt: null,
      finishedAt: null,
      approvedAt: null,
      approvedBy: null,
      approvedDigest: null,
      result: null,
      lateResult: null,
    };
    expect(firstState(false, NOON)).toEqual({ ...blank, status: "pending", dueAt: NOON });
    expect(firstState(true, NOON)).toEqual({ ...blank, status: "awaiting_approval", dueAt: null });
  });

  test("has a next retry only while it waits between two attempts", () => {
    const dueAt = later(2_000);
    expect(nextRetryAt(anAction({ status: "pending", attempts: 1, dueAt }))).toEqual(dueAt);
    expect(nextRetryAt(anAction({ status: "pending", attempts: 0, dueAt }))).toBeNull();
    for (const status of ACTION_STATUSES.filter((other) => other !== "pending")) {
      expect(nextRetryAt(anAction({ status, attempts: 1 }))).toBeNull();
    }
  });
});

test("a yes makes the held action due at once, says by whom, and touches nothing else", () => {
  const held = worn("awaiting_approval");
  const input: ApprovalInput = { actor: "key:boss", reason: "fine", now: NOON, digest: "of the request" };
  expect(approve(held, input)).toEqual({
    before: held,
    after: {
      ...held,
      revision: held.revision + 1,
      status: "pending",
      dueAt: NOON,
      approvedAt: NOON,
      approvedBy: "key:boss",
      approvedDigest: "of the request",
    },
    events: [{ type: "approved", actor: "key:boss", reason: "fine" }],
  });
});

test.each([
  ["awaiting_approval", "rejected"],
  ["pending", "cancelled"],
] as const)("a cancel of what is %s is told as %s and keeps what has happened so far", (status, type) => {
  const action = worn(status);
  const input: DecisionInput = { actor: "email:a@example.com", reason: null, now: NOON };
  expect(cancel(action, input)).toEqual({
    before: action,
    after: { ...action, revision: action.revision + 1, status: "cancelled", dueAt: null, finishedAt: NOON },
    events: [{ type, actor: "email:a@example.com", reason: null }],
  });
});

describe("whether an earlier run may have sent the request", () => {
  const after = (change: Change | DomainError): Action => {
    if (change instanceof DomainError) throw change;
    return change.after;
  };
  const cancelled = (action: Action) => after(cancel(action, aDecision()));
  const retried = (action: Action) => after(retry(action, aDecision()));
  /** As after a claim, and after its attempt failed: each is one revision. */
  const sent = (action: Action): Action => ({ ...action, status: "failed", revision: action.revision + 2 });

  test("is no while each was rejected or cancelled as it began, whatever becomes of this run", () => {
    for (const approved of [true, false]) {
      let action = anAction({ approve: approved, status: approved ? "awaiting_approval" : "pending" });
      for (const run of [1, 2, 3, 4]) {
        expect({ run: action.run, before: mayBeSentBefore(action) }).toEqual({ run, before: false });
        expect(mayBeSentBefore(cancelled(action))).toBe(false);
        if (approved) {
          const released = after(approve(action, aDecision()));
          expect(mayBeSentBefore(released)).toBe(false);
          expect(mayBeSentBefore(cancelled(released))).toBe(false);
        }
        action = retried(cancelled(action));
      }
    }
  });

  test("is yes from the run on that follows an attempt", () => {
    for (const approved of [true, false]) {
      for (const sentRun of [1, 2, 3]) {
        let action = anAction({ approve: approved, status: approved ? "awaiting_approval" : "pending" });
        for (const run of [1, 2, 3, 4]) {
          const released = approved ? after(approve(action, aDecision())) : action;
          const shown = [action, released, cancelled(action), cancelled(released)].map(mayBeSentBefore);
          expect({ run, shown: [...new Set(shown)] }).toEqual({ run, shown: [run > sentRun] });
          action = retried(run === sentRun ? sent(released) : cancelled(action));
        }
      }
    }
  });
});

describe("a retry", () => {
  test.each(["failed", "cancelled"] as const)(
    "of what has %s begins a new run with nothing left of the last",
    (status) => {
      const action = worn(status);
      expect(retry(action, { actor: "key:boss", reason: "again", now: NOON })).toEqual({
        before: action,
        after: { ...action, ...firstState(false, NOON), run: 5, revision: action.revision + 1 },
        events: [{ type: "retried", actor: "key:boss", reason: "again" }],
      });
    },
  );

  test.each(["failed", "cancelled"] as const)("of what needs a yes and has %s is held again", (status) => {
    const rule = { id: "rul_a", name: "Payments", version: 1, reason: null };
    const action = worn(status, { approve: true, policy: { effect: "hold", by: "rule", ...rule } });
    expect(retry(action, { actor: "key:boss", reason: null, now: NOON })).toEqual({
      before: action,
      after: { ...action, ...firstState(true, NOON), run: 5, revision: action.revision + 1 },
      events: [
        { type: "retried", actor: "key:boss", reason: null },
        { type: "held", reason: 'The rule "Payments" holds it.' },
      ],
    });
  });
});

test.each([
  ["pending", "cancelled", "not_sent", 1],
  ["cancelled", "cancelled", "not_sent", 0],
  ["active", "failed", "not_sent", 1],
  ["active", "failed", "unknown", 0],
  ["failed", "failed", "not_sent", 0],
  ["active", "pending", "not_sent", 0],
] as const)("what goes from %s to %s with a call that is %s gives back %d counts", (from, to, outcome, count) => {
  const counted = [["rul_a", "", 0, "1"]] as const;
  const events = [anAttempt(1, { outcome })];
  expect(givesBack({ before: worn(from), after: worn(to, { counted }), events })).toHaveLength(count);
});

const NOT_ALLOWED = (["approve", "cancel", "retry"] as const).flatMap((operation) => {
  const sources: Readonly<Record<Operation, readonly ActionStatus[]>> = {
    approve: ["awaiting_approval"],
    cancel: ["pending", "awaiting_approval"],
    retry: ["failed", "cancelled"],
  };
  const statuses = ACTION_STATUSES.filter((status) => !sources[operation].includes(status));
  return statuses.map((status) => [operation, status] as const);
});

test.each(NOT_ALLOWED)(
  "what is not allowed %s of what is %s is refused, and the sentence says which, what and why",
  (operation, status) => {
    const action = worn(status);
    const refusal = LAWS[operation](action, aDecision());
    const told = {
      approve: ["not_approvable", "approved; only an action that is awaiting_approval can."],
      cancel: ["not_cancellable", "cancelled; only an action that is pending or awaiting_approval can."],
      retry: ["not_retryable", "retried; only an action that is failed or cancelled can."],
    } as const;
    const [code, end] = told[operation];
    expect(refusal).toEqual(new DomainError(code, `Action ${action.id} is ${status} and cannot be ${end}`));
    expect(refusal).toMatchObject({ code });
  },
);
