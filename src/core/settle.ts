import { type Action, type Result, isLateSuccess, type LateResult, lateSuccessIn, statusAfter } from "./action.ts";
import { heldBy, refusedBy, type Stop } from "./action-policy.ts";
import { type Change, step } from "./changes.ts";
import { describeOutcome, outcomeSource, isPolicyRefusal, isSuccess, type Outcome } from "./outcome.ts";
import { RESPONSE_HEADER_CHARS_MAX } from "./limits.ts";
import { SYSTEM } from "./roles.ts";
import type { TimelineEvent } from "./timeline.ts";
import { type Backoff, backoffMs, isOneOfStatuses, retryAfterMs, type StatusPattern } from "./retry.ts";

/** When a claim was made, and until when it holds unless its attempt is settled. */
export interface Lease {
  readonly now: Date;
  readonly leaseUntil: Date;
  /** The node that claims, if there may be several: two nodes may claim with the same lease end. */
  readonly by?: string;
}

/** A claimed action: active, with the attempt counted before anything is sent. */
export function startAttempt(action: Action, { now, leaseUntil }: Lease): Action {
  const status = statusAfter(action, "claim");
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
  const result = toResult(action, end);
  const ended = { leaseUntil: null, dueAt: null, finishedAt: now, result };
  const attempt = (nextRetryAt: Date | null) => attemptMade(action.attempts, end, result, nextRetryAt);

  if (isSuccess(outcome, action.method)) {
    return step(action, { ...ended, status: statusAfter(action, "succeed") }, [attempt(null), { type: "completed" }]);
  }
  const late = lateSuccessIn(action.run, action.lateResult);
  if (late !== null) return { ...completeLate(action, late, now, attempt(null)), ...keptResponse(action, end) };
  if (action.attempts >= action.retries || isFinal(action, end)) {
    return step(action, { ...ended, status: statusAfter(action, "fail") }, [attempt(null), { type: "failed" }]);
  }
  const retryAfter = outcome.kind === "answered" ? retryAfterMs(outcome.retryAfter, now) : null;
  const delayMs = retryAfter ?? backoffMs(action.attempts, end.backoff, end.chance);
  const dueAt = new Date(now.getTime() + delayMs);
  const status = statusAfter(action, "reschedule");
  return step(action, { ...ended, status, dueAt, finishedAt: null }, [attempt(dueAt)]);
}

/** The end of an attempt for which the stored action no longer waits. */
export interface LateEnd extends AttemptEnd {
  readonly run: number;
  readonly attempt: number;
}

/**
 * The change for a result whose claim was lost: another process has closed its attempt as unknown. No known result is dropped,
 * nothing is sent again after the target has answered 2xx, and an action that has ended keeps its status.
 */
export function settleLate(action: Action, end: LateEnd): Change {
  const { run, attempt, outcome } = end;
  const { status } = action;
  if (action.run === run && action.attempts === attempt) {
    // The claim still holds; only another late result came in between.
    if (status === "active") return settle(action, end);
    if (status === "pending" && outcome.kind !== "unknown") {
      // It waits for its next attempt, since this one was closed as unknown. End it now as it would have ended then.
      const change = settle(action, end);
      const events = change.events.map((event) =>
        "attempt" in event ? { ...event, late: "settled" as const } : event,
      );
      return { ...change, events };
    }
  }
  return { ...lateChange(action, end), ...keptResponse({ run, attempts: attempt }, end) };
}

/** What a result changes that comes when its attempt was closed and another one may have begun. */
function lateChange(action: Action, end: LateEnd): Change {
  const { run, attempt, outcome, now } = end;
  const { status } = action;
  const made = attemptMade(attempt, end, toResult(action, end), null);
  const noted: Change = { before: action, after: action, events: [{ ...made, run, late: "noted" }] };
  if (outcome.kind !== "answered") return noted;
  const { code: responseCode, body, truncated, headers } = outcome;
  const response = { responseBody: body, responseTruncated: truncated, responseHeaders: headers };
  const late = { run, attempt, responseCode, ...response, durationMs: end.durationMs, at: now };
  const isSuccessful = isSuccess(outcome, action.method);
  // A later run does not change, but those who decide about it see the answer to the earlier run.
  if (action.run !== run) {
    return isSuccessful && isNewer(late, action) ? { ...noted, after: { ...action, lateResult: late } } : noted;
  }
  if (status === "pending" && isSuccessful) return completeLate(action, late, now, { ...made, late: "settled" });
  if (status === "active" && isSuccessful) return step(action, { lateResult: late }, noted.events);
  if ((status === "failed" || status === "cancelled") && isNewer(late, action)) {
    return step(action, { lateResult: late }, [{ ...made, run, late: "result" }]);
  }
  return noted;
}

/** The response of an attempt, kept apart from the action. */
function keptResponse(
  { run, attempts }: Pick<Action, "run" | "attempts">,
  { outcome }: AttemptEnd,
): Pick<Change, "kept"> {
  if (outcome.kind !== "answered") return {};
  const { body, headers, truncated } = outcome;
  return {
    kept: { run, attempt: attempts, responseHeaders: headers, responseBody: body, responseTruncated: truncated },
  };
}

/** Whether a late result replaces the stored one: it is of a later run, or a success after a failure. */
function isNewer(late: LateResult, { lateResult }: Action): boolean {
  if (lateResult === null || lateResult.run < late.run) return true;
  return isLateSuccess(late) && !isLateSuccess(lateResult);
}

/** Completes an action: the target answered an earlier attempt of this run with success, so no further one follows. */
function completeLate(action: Action, late: LateResult, now: Date, first: TimelineEvent): Change {
  const { responseCode, responseBody, responseTruncated, durationMs, responseHeaders } = late;
  const result = { responseCode, responseBody, responseTruncated, durationMs, responseHeaders };
  const ended = { leaseUntil: null, dueAt: null, finishedAt: now, lateResult: null };
  const status = statusAfter(action, "succeed");
  return step(action, { ...ended, status, result: { ...result, lastError: null, errorSource: null } }, [
    first,
    { type: "completed" },
  ]);
}

/** What follows an attempt, as logs and metrics name it. */
export function nextStep({ after }: Change): "completed" | "retry" | "failed" {
  if (after.status === "pending") return "retry";
  return after.status === "completed" ? "completed" : "failed";
}

/** Whether a failure ends the action before its attempts are used up. */
function isFinal(action: Action, { outcome, giveUpOn = [] }: AttemptEnd): boolean {
  if (outcome.kind === "answered" && isOneOfStatuses(giveUpOn, outcome.code)) return true;
  return isPolicyRefusal(outcome) || (outcome.kind === "unknown" && action.onUnknown === "stop");
}

function toResult(action: Action, { outcome, durationMs, timeoutMs }: Measured): Result {
  const succeeded = isSuccess(outcome, action.method);
  const answered = outcome.kind === "answered" ? outcome : null;
  const source = succeeded ? null : outcomeSource(outcome);
  const retryAfter = answered?.retryAfter?.slice(0, RESPONSE_HEADER_CHARS_MAX);
  // In the form in which headers are stored.
  const retryAfterAlone = retryAfter === undefined ? null : JSON.stringify([["retry-after", retryAfter]]);
  return {
    lastError: succeeded ? null : describeOutcome(outcome, timeoutMs),
    errorSource: source,
    // A broken answer counts as none, except for its Retry-After. Only the timeline shows its status.
    responseCode: source === "dispatch" ? null : (answered?.code ?? null),
    responseBody: source === "dispatch" ? null : (answered?.body ?? null),
    responseTruncated: source !== "dispatch" && (answered?.truncated ?? false),
    durationMs,
    responseHeaders: source === "dispatch" ? retryAfterAlone : (answered?.headers ?? null),
  };
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

/** Ends a claim whose attempt may not begin, since a rule became stricter or its grant was ended: it is held, or fails. */
export function withhold(action: Action, { effect, policy }: Stop, now: Date): Change {
  const { late, state, notStarted } = unclaimed(action, policy.by === "rule" ? "ruled" : "ungranted", now);
  if (late !== null) return late;
  const isRefused = effect === "refuse";
  const next: TimelineEvent = isRefused
    ? { type: "cancelled", actor: SYSTEM, reason: refusedBy(policy) }
    : { type: "held", ...heldBy(policy) };
  const status = statusAfter(action, isRefused ? "refuse" : "withhold");
  const change = step(action, { ...state, status, dueAt: null, finishedAt: isRefused ? now : null }, [
    notStarted,
    next,
  ]);
  // If it was approved at all, then only by an agent's client.
  const unapproved = { approvedAt: null, approvedBy: null, approvedDigest: null };
  return { ...change, after: { ...change.after, ...(isRefused ? {} : unapproved), approve: true, policy } };
}

/** Gives back a claim whose attempt never began: it is due at once, and the attempt does not count. */
export function releaseClaim(action: Action, why: NotStartedReason, now: Date): Change {
  const { late, state, notStarted } = unclaimed(action, why, now);
  return late ?? step(action, { ...state, status: statusAfter(action, "unclaim"), dueAt: now }, [notStarted]);
}

/** The action without the attempt that never began. `late`: an earlier one has succeeded meanwhile, which completes it. */
function unclaimed(action: Action, why: NotStartedReason, now: Date) {
  const attempts = action.attempts - 1;
  const notStarted: TimelineEvent = { type: "not_started", reason: describeNotStarted(why) };
  const answered = lateSuccessIn(action.run, action.lateResult);
  return {
    notStarted,
    late: answered === null ? null : completeLate({ ...action, attempts }, answered, now, notStarted),
    state: { attempts, leaseUntil: null, startedAt: attempts === 0 ? null : action.startedAt },
  };
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
  /** The store reported neither success nor failure of the claim, but had written it. */
  in_doubt: "Nothing was sent: the service could not tell whether its claim was recorded.",
  /** See `withhold`. */
  ruled: "Nothing was sent: a rule of the account kept the attempt from beginning.",
  /** The same. */
  ungranted: "Nothing was sent: the grant that let this call pass was ended.",
  /** The limits of its host were lowered after the claim, or another call was long on its way. */
  rated: "Nothing was sent yet: the limits of its host left no room for the call at that moment.",
  /** See `OpenFiles`. */
  no_file: "Nothing was sent yet: the service had too many files and connections open.",
  /** Other calls were counted after it was judged, so it could not be counted for a rule. */
  uncounted: "Nothing was sent yet: a rule of the account counted other calls at the same time.",
} as const;

export function describeNotStarted(why: NotStartedReason): string {
  return NOT_STARTED[why];
}
