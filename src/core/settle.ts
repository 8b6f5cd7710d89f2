import { type Action, type Result, isLateSuccess, type LateResult, lateSuccessIn, statusAfter } from "./action.ts";
import { type Backoff, backoffMs, retryAfterMs, isOneOfStatuses, type StatusPattern } from "./retry-settings.ts";
import { heldBy, policyOfRuling, refusedBy, type Ruling } from "./action-policy.ts";
import { type Change, step } from "./changes.ts";
import { type Answered, describeOutcome, errorSourceOf, isPolicyRefusal, isSuccess, type Outcome } from "./outcome.ts";
import { RESPONSE_HEADER_CHARS_MAX } from "./limits.ts";
import { SYSTEM } from "./roles.ts";
import type { TimelineEvent } from "./timeline.ts";

/** The end of an attempt. Time and randomness are arguments, so that `settle` is pure. */
export interface AttemptEnd {
  readonly outcome: Outcome;
  readonly now: Date;
  /** Null: unknown, because the process died during the attempt. */
  readonly durationMs: number | null;
  readonly timeoutMs: number;
  readonly backoff: Backoff;
  /** Statuses after which no further attempt follows; by default none. */
  readonly giveUpOn?: readonly StatusPattern[];
  /** Uniform in [0, 1). */
  readonly chance: number;
}

type AttemptMade = Extract<TimelineEvent, { readonly type: "attempt" }>;

type Measured = Pick<AttemptEnd, "outcome" | "durationMs" | "timeoutMs">;

/** The change that ends an attempt of an active action: completed, waiting for the next attempt, or failed. */
export function settle(action: Action, end: AttemptEnd): Change {
  const { outcome, now } = end;
  const result = resultOf(action, end);
  const ended = { leaseUntil: null, dueAt: null, finishedAt: now, result };
  const attempt = (nextRetryAt: Date | null) => attemptMade(action.attempts, end, result, nextRetryAt);

  if (isSuccess(outcome, action.method)) {
    return step(action, { ...ended, status: "completed" }, [attempt(null), { type: "completed" }]);
  }
  const late = lateSuccessIn(action.run, action.lateResult);
  if (late !== null) return { ...completeLate(action, late, now, attempt(null)), ...besideOf(action, end) };
  if (action.attempts >= action.retries || isFinal(action, end)) {
    return step(action, { ...ended, status: "failed" }, [attempt(null), { type: "failed" }]);
  }
  const dueAt = new Date(now.getTime() + delayMs(action, end));
  return step(action, { ...ended, status: "pending", dueAt, finishedAt: null }, [attempt(dueAt)]);
}

/** The end of an attempt that the action, as it is stored by now, does not wait for. */
export interface LateEnd extends AttemptEnd {
  readonly run: number;
  readonly attempt: number;
}

/**
 * What becomes of a result whose claim was lost: another process has closed its attempt as unknown. Nothing that is known is
 * dropped, nothing is sent again where the target has answered 2xx, and what has ended keeps its status.
 */
export function settleLate(action: Action, end: LateEnd): Change {
  const { run, attempt, outcome, now } = end;
  const { status } = action;
  const isSameRun = action.run === run;
  if (isSameRun && action.attempts === attempt) {
    // The claim holds: only another late result came in between.
    if (status === "active") return settle(action, end);
    if (status === "pending" && outcome.kind !== "unknown") return undoRescue(action, end);
  }
  const made = attemptMade(attempt, end, resultOf(action, end), null);
  const beside = besideOf({ run, attempts: attempt }, end);
  const noted: Change = { before: action, after: action, events: [{ ...made, run, late: "noted" }], ...beside };
  if (outcome.kind !== "answered") return noted;
  const late = lateResultOf(end, outcome);
  const isSuccessful = isSuccess(outcome, action.method);
  // Nothing of a later run changes; whoever decides about it sees what an earlier one was answered.
  if (!isSameRun) {
    return isSuccessful && isNewer(late, action) ? { ...noted, after: { ...action, lateResult: late } } : noted;
  }
  if (status === "pending" && isSuccessful) {
    return { ...completeLate(action, late, now, { ...made, late: "settled" }), ...beside };
  }
  if (status === "active" && isSuccessful) return { ...step(action, { lateResult: late }, noted.events), ...beside };
  if ((status === "failed" || status === "cancelled") && isNewer(late, action)) {
    return { ...step(action, { lateResult: late }, [{ ...made, run, late: "result" }]), ...beside };
  }
  return noted;
}

/** The response of an attempt, to be kept beside the action. */
function besideOf(
  { run, attempts }: Pick<Action, "run" | "attempts">,
  { outcome }: AttemptEnd,
): Pick<Change, "beside"> {
  if (outcome.kind !== "answered" || (outcome.body === null && outcome.headers === null)) return {};
  const { body, headers, truncated } = outcome;
  return {
    beside: { run, attempt: attempts, responseHeaders: headers, responseBody: body, responseTruncated: truncated },
  };
}

/** The action waits for its next attempt, since this one was closed as unknown: it ends now as it would have ended. */
function undoRescue(action: Action, end: LateEnd): Change {
  const change = settle(action, end);
  return {
    ...change,
    events: change.events.map((event) => ("attempt" in event ? { ...event, late: "settled" } : event)),
  };
}

/** Of a run a success is never replaced, and by nothing but a success is another answer; a later run has its own. */
function isNewer(late: LateResult, { lateResult }: Action): boolean {
  if (lateResult === null || lateResult.run < late.run) return true;
  return isLateSuccess(late) && !isLateSuccess(lateResult);
}

/** The target has done it in an earlier attempt of this run: no further one follows. */
function completeLate(action: Action, late: LateResult, now: Date, first: TimelineEvent): Change {
  const { responseCode, responseBody, responseTruncated, durationMs, responseHeaders } = late;
  const result = { responseCode, responseBody, responseTruncated, durationMs, responseHeaders };
  const ended = { leaseUntil: null, dueAt: null, finishedAt: now, lateResult: null };
  return step(action, { ...ended, status: "completed", result: { ...result, lastError: null, errorSource: null } }, [
    first,
    { type: "completed" },
  ]);
}

function lateResultOf(
  { run, attempt, now, durationMs }: LateEnd,
  { code, body, truncated, headers }: Answered,
): LateResult {
  const response = { responseBody: body, responseTruncated: truncated, responseHeaders: headers, durationMs };
  return { run, attempt, responseCode: code, ...response, at: now };
}

/** What follows an attempt, as logs and metrics name it. */
export function nextStep({ after }: Change): "completed" | "retry" | "failed" {
  if (after.status === "pending") return "retry";
  return after.status === "completed" ? "completed" : "failed";
}

/** Failures that end an action before its attempts are used up. */
function isFinal(action: Action, { outcome, giveUpOn = [] }: AttemptEnd): boolean {
  // Its row no longer is what the caller requested: nothing more of it is sent.
  if (action.isAltered === true) return true;
  if (outcome.kind === "answered" && isOneOfStatuses(giveUpOn, outcome.code)) return true;
  return isPolicyRefusal(outcome) || (outcome.kind === "unknown" && action.onUnknown === "stop");
}

function delayMs(action: Action, { outcome, now, backoff, chance }: AttemptEnd): number {
  const retryAfter = outcome.kind === "answered" ? retryAfterMs(outcome.retryAfter, now) : null;
  return retryAfter ?? backoffMs(action.attempts, backoff, chance);
}

function resultOf(action: Action, { outcome, durationMs, timeoutMs }: Measured): Result {
  const succeeded = isSuccess(outcome, action.method);
  const answered = outcome.kind === "answered" ? outcome : null;
  const source = succeeded ? null : errorSourceOf(outcome);
  return {
    lastError: succeeded ? null : describeOutcome(outcome, timeoutMs),
    errorSource: source,
    // A broken answer counts as none, but for the time that it asks to wait; only the timeline shows its status.
    responseCode: source === "dispatch" ? null : (answered?.code ?? null),
    responseBody: source === "dispatch" ? null : (answered?.body ?? null),
    responseTruncated: source !== "dispatch" && (answered?.truncated ?? false),
    durationMs,
    responseHeaders: source === "dispatch" ? retryAfterAlone(answered) : (answered?.headers ?? null),
  };
}

/** `Retry-After` as headers are kept; null: there is none. */
function retryAfterAlone(answered: Answered | null): string | null {
  const value = answered?.retryAfter ?? null;
  return value === null ? null : JSON.stringify([["retry-after", value.slice(0, RESPONSE_HEADER_CHARS_MAX)]]);
}

function attemptMade(
  attempt: number,
  { outcome, durationMs }: Measured,
  result: Result,
  next: Date | null,
): AttemptMade {
  return {
    type: "attempt",
    attempt,
    outcome: outcome.kind,
    response_code: outcome.kind === "answered" ? outcome.code : null,
    error: result.lastError,
    duration_ms: durationMs,
    next_retry_at: next?.toISOString() ?? null,
    location: outcome.kind === "answered" && outcome.code >= 300 && outcome.code < 400 ? outcome.location : null,
  };
}

export interface Claimed {
  readonly now: Date;
  readonly leaseUntil: Date;
  /** The node that claims, where there may be several: two may claim with the same lease. */
  readonly by?: string;
}

/** A claimed action: active, with the attempt counted before anything is sent. */
export function startAttempt(action: Action, { now, leaseUntil }: Claimed): Action {
  const status = statusAfter(action, "dispatch");
  return {
    ...action,
    status,
    revision: action.revision + 1,
    attempts: action.attempts + 1,
    dueAt: null,
    leaseUntil,
    startedAt: action.startedAt ?? now,
    result: null,
  };
}

/** A claim whose attempt a rule keeps from beginning, since it became stricter: a person decides, or it ends. */
export function withhold(action: Action, ruling: Ruling, now: Date): Change {
  const isRefused = ruling.effect === "refuse";
  const policy = policyOfRuling(ruling);
  const notStarted: TimelineEvent = { type: "not_started", reason: describeNotStarted("ruled") };
  const next: TimelineEvent = isRefused
    ? { type: "cancelled", actor: SYSTEM, reason: refusedBy(ruling) }
    : { type: "held", ...heldBy(policy) };
  const attempts = Math.max(0, action.attempts - 1);
  const late = lateSuccessIn(action.run, action.lateResult);
  if (late !== null) return completeLate({ ...action, attempts }, late, now, notStarted);
  const status = statusAfter(action, isRefused ? "refuse" : "withhold");
  const startedAt = attempts === 0 ? null : action.startedAt;
  const state = { status, attempts, dueAt: null, leaseUntil: null, startedAt };
  const change = step(action, { ...state, finishedAt: isRefused ? now : null }, [notStarted, next]);
  return { ...change, after: { ...change.after, approve: true, policy } };
}

/** Why a claimed attempt did not begin. No byte of it was sent. */
export type NotStartedReason = keyof typeof NOT_STARTED;

const NOT_STARTED = {
  stopping: "Nothing was sent: the service stopped before the attempt began.",
  /** Too little of the lease was left, after a slow commit or a jump of the wall clock. */
  late: "Nothing was sent: the claim was too old when the attempt could begin.",
  store_away: "Nothing was sent: the service could not use its database.",
  /** Between its claim and the attempt. */
  expired: "Nothing was sent: the action expired before the attempt could begin.",
  /** The same. */
  paused: "Nothing was sent: sending was paused before the attempt could begin.",
  /** It was claimed while other calls seemed about to end. */
  busy: "Nothing was sent yet: as many calls to the host as may run at a time were under way.",
  /** The store reported neither success nor failure of the claim, and it was written. */
  in_doubt: "Nothing was sent: the service could not tell whether its claim was recorded.",
  /** See `withhold`. */
  ruled: "Nothing was sent: a rule of the account kept the attempt from beginning.",
} as const;

export function describeNotStarted(why: NotStartedReason): string {
  return NOT_STARTED[why];
}

/** Returns a claim whose attempt never began: due at once, and the attempt does not count. */
export function releaseClaim(action: Action, why: NotStartedReason, now: Date): Change {
  const notStarted: TimelineEvent = { type: "not_started", reason: describeNotStarted(why) };
  const attempts = Math.max(0, action.attempts - 1);
  const late = lateSuccessIn(action.run, action.lateResult);
  if (late !== null) return completeLate({ ...action, attempts }, late, now, notStarted);
  const status = statusAfter(action, "unclaim");
  const startedAt = attempts === 0 ? null : action.startedAt;
  return step(action, { status, attempts, dueAt: now, leaseUntil: null, startedAt }, [notStarted]);
}
