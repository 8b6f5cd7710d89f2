import type { Action, Result } from "./action.ts";
import { type Backoff, backoffMs, retryAfterMs } from "./backoff.ts";
import { type Change, step } from "./change.ts";
import { describe, errorSourceOf, isPolicyRefusal, isSuccess, type Outcome } from "./outcome.ts";
import type { TimelineEvent } from "./timeline.ts";
import { nextStatus as statusAfter } from "./transition.ts";

/** What the engine knows when an attempt has ended. Time and chance are arguments. */
export interface AttemptEnd {
  readonly outcome: Outcome;
  readonly now: Date;
  /** Null when nobody was there to measure it: the process died. */
  readonly durationMs: number | null;
  readonly timeoutMs: number;
  readonly backoff: Backoff;
  /** Uniform in [0, 1). */
  readonly chance: number;
}

type Measured = Pick<AttemptEnd, "outcome" | "durationMs" | "timeoutMs">;

/** The change that ends an attempt of an active action: completed, waiting for the next attempt, or failed. */
export function settle(action: Action, end: AttemptEnd): Change {
  const { outcome, now } = end;
  const result = resultOf(action, end);
  const ended = { leaseUntil: null, dueAt: null, finishedAt: now, result };
  const attempt = (nextRetryAt: Date | null) => attemptMade(action, end, result, nextRetryAt);

  if (isSuccess(outcome, action.method)) {
    return step(action, { ...ended, status: "completed" }, [attempt(null), { type: "completed" }]);
  }
  if (action.attempts >= action.retries || isFinal(action, outcome)) {
    return step(action, { ...ended, status: "failed" }, [attempt(null), { type: "failed" }]);
  }
  const dueAt = new Date(now.getTime() + delayMs(action, end));
  return step(action, { ...ended, status: "pending", dueAt, finishedAt: null }, [attempt(dueAt)]);
}

/**
 * Ends an action whose row was altered where it is stored: what it holds is not what somebody asked for, so nothing of it
 * is sent any more. The attempt that is told of counts as far as `retries` allows; of one that was under way nobody knows.
 */
export function setAside(action: Action, now: Date): Change {
  const isActive = action.status === "active";
  const status = statusAfter(action.status, "set_aside");
  if (status === null) throw new Error(`Action ${action.id} is ${action.status} and can't be set aside.`);
  const counted = { ...action, attempts: Math.max(1, Math.min(action.attempts + (isActive ? 0 : 1), action.retries)) };
  const outcome: Outcome = isActive
    ? { kind: "unknown", fault: "interrupted" }
    : { kind: "not_sent", fault: "altered" };
  const end = { outcome, durationMs: null, timeoutMs: 0 };
  const result = resultOf(action, end);
  const { attempts } = counted;
  const ended = { status, attempts, leaseUntil: null, dueAt: null, finishedAt: now, result };
  return step(action, ended, [attemptMade(counted, end, result, null), { type: "failed" }]);
}

/** What follows an attempt, in the words of logs and metrics. */
export function nextStep({ after }: Change): "completed" | "retry" | "failed" {
  if (after.status === "pending") return "retry";
  return after.status === "completed" ? "completed" : "failed";
}

/** Two failures end an action before its attempts are used up (decisions 4). */
function isFinal(action: Action, outcome: Outcome): boolean {
  return isPolicyRefusal(outcome) || (outcome.kind === "unknown" && action.onUnknown === "stop");
}

function delayMs(action: Action, { outcome, now, backoff, chance }: AttemptEnd): number {
  const asked = outcome.kind === "answered" ? retryAfterMs(outcome.retryAfter, now) : null;
  return asked ?? backoffMs(action.attempts, backoff, chance);
}

function resultOf(action: Action, { outcome, durationMs, timeoutMs }: Measured): Result {
  const succeeded = isSuccess(outcome, action.method);
  const answered = outcome.kind === "answered" ? outcome : null;
  const source = succeeded ? null : errorSourceOf(outcome);
  return {
    lastError: succeeded ? null : describe(outcome, timeoutMs),
    errorSource: source,
    // A broken answer counts as none (spec "error object": null for dispatch errors); the timeline has its status.
    responseCode: source === "dispatch" ? null : (answered?.code ?? null),
    responseBody: source === "dispatch" ? null : (answered?.body ?? null),
    responseTruncated: source !== "dispatch" && (answered?.truncated ?? false),
    durationMs,
  };
}

function attemptMade(
  action: Action,
  { outcome, durationMs }: Measured,
  result: Result,
  next: Date | null,
): TimelineEvent {
  return {
    type: "attempt",
    attempt: action.attempts,
    outcome: outcome.kind,
    response_code: outcome.kind === "answered" ? outcome.code : null,
    error: result.lastError,
    duration_ms: durationMs,
    next_retry_at: next?.toISOString() ?? null,
    location: outcome.kind === "answered" && outcome.code >= 300 && outcome.code < 400 ? outcome.location : null,
  };
}
