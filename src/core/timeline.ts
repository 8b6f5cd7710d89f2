import {
  type Action,
  type ActionState,
  type ActionStatus,
  isTerminal,
  type Result,
  type LateResult,
} from "./action.ts";
import { type Actor, SYSTEM } from "./roles.ts";
import { describeOutcome, type OutcomeKind } from "./outcome.ts";

interface Decision {
  readonly actor: Actor;
  readonly reason?: string | null;
  /** Set when an MCP client says that it asked its person for the decision. */
  readonly via?: "elicitation";
}

/** The result of one attempt; `attempt` counts within the run. */
interface AttemptMade {
  readonly attempt: number;
  readonly outcome: OutcomeKind;
  readonly response_code: number | null;
  readonly error: string | null;
  readonly duration_ms: number | null;
  readonly next_retry_at: string | null;
  readonly location: string | null;
  /**
   * Set if it came after the attempt had been closed as unknown. `settled`: it ended the attempt all the same. `result`: it
   * became the action's late result. `noted`: it changed nothing.
   */
  readonly late?: "settled" | "result" | "noted";
  /** The run of a late result that did not settle the action, which may be in a later run. */
  readonly run?: number;
}

/** The result of one attempt to deliver a notification. */
interface Notified {
  readonly event: string;
  readonly delivered: boolean;
  /** Attempts made by then. */
  readonly attempts: number;
  readonly error: string | null;
  /** Null when no attempt follows: it was delivered or given up. */
  readonly next_retry_at: string | null;
  /** The name of the channel that it was for. */
  readonly channel?: string;
}

/** One event of an action. Members are named as in the API. */
export type TimelineEvent =
  | ({
      readonly type: "created" | "approved" | "rejected" | "cancelled" | "retried" | "sent_now" | "paused" | "resumed";
    } & Decision)
  | { readonly type: "started" | "completed" | "failed" }
  /** `reason`: the rule that holds it; absent: its key or its requester holds it. */
  | { readonly type: "held"; readonly reason?: string }
  /** The attempt of the last `started` never began and does not count. `reason`: see `describeNotStarted`. */
  | { readonly type: "not_started"; readonly reason: string }
  | ({ readonly type: "attempt" } & AttemptMade)
  | ({ readonly type: "mail" | "callback" | "message" } & Notified);

export type TimelineEventType = TimelineEvent["type"];

/** A record, so that the compiler finds missing types. */
const IS_EVENT_TYPE: Readonly<Record<TimelineEventType, true>> = {
  created: true,
  held: true,
  started: true,
  not_started: true,
  approved: true,
  rejected: true,
  cancelled: true,
  retried: true,
  sent_now: true,
  attempt: true,
  completed: true,
  failed: true,
  mail: true,
  callback: true,
  message: true,
  paused: true,
  resumed: true,
};

// Safe: the object has exactly these keys.
export const TIMELINE_EVENT_TYPES = Object.keys(IS_EVENT_TYPE) as TimelineEventType[];

/** Whether the event is a result that came too late to settle its action, and so changes no status. */
export function isTooLate(event: TimelineEvent): boolean {
  return event.type === "attempt" && (event.late === "result" || event.late === "noted");
}

/** A row of the timeline as the store returns it. */
export interface TimelineEntry {
  /** The position in the event stream, which increases over all actions of the service. */
  readonly seq: number;
  readonly at: Date;
  readonly run: number;
  /** The action's status after it. */
  readonly status: ActionStatus;
  readonly event: TimelineEvent;
}

/** Whether the entry is a call of that run that was sent. A call that a crash interrupted doesn't count: it may not have begun. */
export function isSend({ run: ofEntry, event }: TimelineEntry, run: number): boolean {
  if (event.type !== "attempt" || (event.run ?? ofEntry) !== run) return false;
  return event.outcome !== "not_sent" && event.error !== INTERRUPTED;
}

const INTERRUPTED = describeOutcome({ kind: "unknown", fault: "interrupted" }, 0);

/** How the newest run of an action was decided. */
export interface LatestDecision {
  /**
   * `cancelled`: the requester, or somebody else, no longer wants it sent. `refused`: a rule that was written after the create
   * refuses it. `unanswered`: nobody decided in time.
   */
  readonly decision: "approved" | "rejected" | "cancelled" | "refused" | "unanswered";
  readonly by: Actor | null;
  /** Untrusted text of the person. */
  readonly reason: string | null;
  /** Set when an MCP client says that it asked its person for the decision. */
  readonly via: "elicitation" | null;
}

/** Whether the timeline of this action has a decision on its newest run. */
export function isDecided({ status, approvedAt }: Action): boolean {
  return status === "cancelled" || (status !== "awaiting_approval" && approvedAt !== null);
}

/**
 * The newest decision on the current run, or null. The status of the action decides which one to look for, because `entries`
 * may have been read a moment later.
 */
export function latestDecision(action: Action, entries: readonly TimelineEntry[]): LatestDecision | null {
  if (!isDecided(action)) return null;
  const ofRun = entries.filter(({ run }) => run === action.run).map(({ event }) => event);
  if (action.status === "cancelled") return endingIn(ofRun);
  const approval = ofRun.findLast(isApproval);
  // Safe: whatever approves an action is an actor.
  const by = approval?.actor ?? (action.approvedBy as Actor | null);
  return { decision: "approved", by, reason: approval?.reason ?? null, via: approval?.via ?? null };
}

/** The reason when the service cancels an action at its `expires_at`, which nobody decided. */
export const EXPIRED = "It was not sent before it expired.";

function endingIn(events: readonly TimelineEvent[]): LatestDecision | null {
  const ending = events.findLast(isEnding);
  if (ending === undefined) return null;
  const { type, actor: by, reason = null, via = null } = ending;
  if (by !== SYSTEM) return { decision: type, by, reason, via };
  if (reason === EXPIRED) return null;
  // A rule stopped an attempt that was about to begin, so no person decided.
  const isRefused = events[events.indexOf(ending) - 1]?.type === "not_started";
  return { decision: isRefused ? "refused" : "unanswered", by, reason, via };
}

type Decided = Extract<TimelineEvent, { readonly actor: Actor }>;

function isApproval(event: TimelineEvent): event is Decided {
  return event.type === "approved";
}

function isEnding(event: TimelineEvent): event is Decided & { readonly type: "rejected" | "cancelled" } {
  return event.type === "rejected" || event.type === "cancelled";
}

/** The state that timeline entries can rebuild. Status, run and end come from the last entry alone. */
type ReplayedState = Omit<
  ActionState,
  "status" | "run" | "finishedAt" | "leaseUntil" | "approvedDigest" | "lateResult"
>;

const INITIAL: ReplayedState = {
  attempts: 0,
  dueAt: null,
  startedAt: null,
  approvedAt: null,
  approvedBy: null,
  result: null,
};

/**
 * An action as it was after an earlier change, for the event stream. `entries` are the timeline of that run up to the change,
 * oldest first. The response body is null, since the store keeps only the newest attempt's. A late result's body is stored with
 * the action, and masked like the rest of it.
 */
export function actionAt(action: Action, entries: readonly TimelineEntry[]): Action {
  const last = entries.at(-1);
  if (last === undefined) return action;
  const { status, run } = last;
  const state = entries.reduce(applyEvent, INITIAL);
  const endedAt = entries.findLast(({ event }) => !isTooLate(event))?.at ?? last.at;
  return {
    ...action,
    ...state,
    status,
    run,
    lateResult: lateResultAt(action, entries, last),
    leaseUntil: null,
    finishedAt: isTerminal(status) ? endedAt : null,
  };
}

/** The late result that was known then. If another has replaced it, only the timeline still has it. */
function lateResultAt(
  { lateResult }: Action,
  entries: readonly TimelineEntry[],
  { run, at: until }: TimelineEntry,
): LateResult | null {
  if (lateResult !== null && lateResult.run < run) return lateResult.at <= until ? lateResult : null;
  const late = entries.flatMap(({ at, event }) =>
    event.type === "attempt" && isTooLate(event) ? [{ at, event }] : [],
  );
  if (lateResult?.run === run && late.some(({ event }) => event.attempt === lateResult.attempt)) return lateResult;
  const found = late.findLast(({ event }) => event.late === "result");
  if (found === undefined || found.event.response_code === null) return null;
  const { attempt, response_code: responseCode, duration_ms: durationMs } = found.event;
  const response = { responseBody: null, responseTruncated: false, responseHeaders: null, durationMs };
  return { run, attempt, responseCode, ...response, at: found.at };
}

function applyEvent(before: ReplayedState, { at, event }: TimelineEntry): ReplayedState {
  const { type } = event;
  if (isTooLate(event)) return before;
  if (type === "created" || type === "retried") return { ...INITIAL, dueAt: at };
  if (type === "sent_now") return { ...before, dueAt: at };
  if (type === "approved") return { ...before, dueAt: at, approvedAt: at, approvedBy: event.actor };
  if (type === "started") return { ...before, attempts: before.attempts + 1, startedAt: before.startedAt ?? at };
  if (type === "not_started") {
    const attempts = Math.max(0, before.attempts - 1);
    return { ...before, attempts, dueAt: at, startedAt: attempts === 0 ? null : before.startedAt };
  }
  if (type === "attempt") {
    const { next_retry_at: next } = event;
    return { ...before, dueAt: next === null ? null : new Date(next), result: attemptResult(event) };
  }
  // Other events change only the status, or are about notifications.
  return before;
}

function attemptResult(made: Extract<TimelineEvent, { readonly type: "attempt" }>): Result {
  const { error, outcome, response_code: code, duration_ms: durationMs } = made;
  const isRefusal = outcome === "answered" && code !== null && (code < 200 || code > 299);
  const errorSource = isRefusal ? "target" : "dispatch";
  return {
    lastError: error,
    errorSource: error === null ? null : errorSource,
    // As in `settle`: a broken answer counts as none.
    responseCode: error === null || isRefusal ? code : null,
    responseBody: null,
    responseTruncated: false,
    durationMs,
    responseHeaders: null,
  };
}

/** Whether the target may have received an attempt that got no answer. */
export function hasUnknownOutcome(timeline: readonly TimelineEntry[]): boolean {
  return timeline.some(({ event }) => event.type === "attempt" && event.outcome === "unknown");
}
