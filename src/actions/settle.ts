import { type Action, type Result, type ActionState, isTerminal } from "./action.ts";
import { type Backoff, backoffMs, retryAfterMs } from "./backoff.ts";
import { type Change, step } from "./changes.ts";
import { describe, errorSourceOf, isPolicyRefusal, isSuccess, type Outcome } from "./outcome.ts";
import type { TimelineEvent, TimelineEntry } from "./timeline.ts";
import { nextStatus as statusAfter, nextStatus } from "./status.ts";

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

/** What a timeline tells of an action's state; status, run and end are those of its last entry. */
type Told = Omit<ActionState, "status" | "run" | "finishedAt" | "leaseUntil" | "approvedDigest">;

const BEGINNING: Told = {
  attempts: 0,
  dueAt: null,
  startedAt: null,
  approvedAt: null,
  approvedBy: null,
  result: null,
};

/**
 * An action as it was after a change that others have overtaken: so the event stream tells of it what was true then. The
 * entries are those of the change's run up to the change itself, oldest first. Only the body of an answer that a later
 * attempt has replaced is gone: nobody keeps it.
 */
export function pastOf(action: Action, entries: readonly TimelineEntry[]): Action {
  const last = entries.at(-1);
  if (last === undefined) return action;
  const { status, run, at } = last;
  const told = entries.reduce(stepped, BEGINNING);
  return { ...action, ...told, status, run, leaseUntil: null, finishedAt: isTerminal(status) ? at : null };
}

function stepped(before: Told, { at, event }: TimelineEntry): Told {
  const { type } = event;
  if (type === "created" || type === "retried") return { ...BEGINNING, dueAt: at };
  if (type === "approved") return { ...before, dueAt: at, approvedAt: at, approvedBy: event.actor };
  if (type === "started") return { ...before, attempts: before.attempts + 1, startedAt: before.startedAt ?? at };
  if (type === "not_started") return stateBeforeClaim(before, at);
  if (type === "attempt") return { ...before, dueAt: dateOf(event.next_retry_at), result: resultBefore(event) };
  // The rest says only what the status says, or speaks of notifications.
  return before;
}

function stateBeforeClaim(before: Told, at: Date): Told {
  const attempts = Math.max(0, before.attempts - 1);
  return { ...before, attempts, dueAt: at, startedAt: attempts === 0 ? null : before.startedAt };
}

function resultBefore(made: Extract<TimelineEvent, { readonly type: "attempt" }>): Result {
  const { error, outcome, response_code: code, duration_ms: durationMs } = made;
  const isRefusal = outcome === "answered" && code !== null && (code < 200 || code > 299);
  const errorSource = isRefusal ? "target" : "dispatch";
  return {
    lastError: error,
    errorSource: error === null ? null : errorSource,
    // As in `settle`: an answer that broke off counts as none.
    responseCode: error === null || isRefusal ? code : null,
    responseBody: null,
    responseTruncated: false,
    durationMs,
  };
}

function dateOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}

/** When an action was claimed, and until when the claim holds. */
export interface Claimed {
  readonly now: Date;
  readonly leaseUntil: Date;
}

/** A pending action once it is claimed: active, with one attempt counted before anything is sent (decisions 3). */
export function dispatched(action: Action, { now, leaseUntil }: Claimed): Action {
  const status = nextStatus(action.status, "dispatch");
  if (status === null) throw new Error(`Action ${action.id} is ${action.status} and can't be dispatched.`);
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

/** Why an attempt that was claimed did not begin. Whatever it was: no byte of it has left. */
export type NotStarted =
  /** The service stopped before anything was sent. */
  | "stopping"
  /** Too little was left of the lease for a whole attempt: a slow commit, or a wall clock that was set forward. */
  | "late"
  /** What is needed to send could not be read. */
  | "store_away"
  /** The store did not say whether the claim was written, and it was. */
  | "in_doubt";

const NOT_STARTED: Readonly<Record<NotStarted, string>> = {
  stopping: "Nothing was sent: the service stopped before the attempt began.",
  late: "Nothing was sent: the claim was too old when the attempt could begin.",
  store_away: "Nothing was sent: the service could not use its database.",
  in_doubt: "Nothing was sent: the service could not tell whether its claim was recorded.",
};

/** The fixed sentence for the timeline. */
export function describeNotStarted(why: NotStarted): string {
  return NOT_STARTED[why];
}

/** Gives a claim back whose attempt never began: due at once, and the attempt does not count. */
export function unclaimed(action: Action, why: NotStarted, now: Date): Change {
  const status = nextStatus(action.status, "unclaim");
  if (status === null) throw new Error(`Action ${action.id} is ${action.status} and has no claim to give back.`);
  const attempts = Math.max(0, action.attempts - 1);
  const startedAt = attempts === 0 ? null : action.startedAt;
  return step(action, { status, attempts, dueAt: now, leaseUntil: null, startedAt }, [
    { type: "not_started", reason: describeNotStarted(why) },
  ]);
}
