import { HOUR_MS, ATTEMPT_BODY_BYTES_MAX, ATTEMPTS_KEPT } from "./limits.ts";
import {
  type Action,
  type ActionState,
  firstDueAt,
  firstState,
  isExpired,
  nextStatus,
  type Operation,
  operationsIn,
  sources,
  type Result,
} from "./action.ts";
import { heldBy } from "./action-policy.ts";
import type { GrantTerms } from "./grant.ts";
import { type Actor, SYSTEM, type Caller } from "./roles.ts";
import { DomainError, type ErrorCode } from "./domain-error.ts";
import { EXPIRED, type TimelineEvent, type TimelineEntry } from "./timeline.ts";
import type { StoredCount } from "./account-rules.ts";
import { BASE64_START } from "./body.ts";

/**
 * One allowed step of an action: the whole action before and after it, and its timeline events. The store writes it only
 * while the action still has the revision of `before`.
 */
export interface Change {
  readonly before: Action;
  /** Its revision is one higher, unless the change only adds to the timeline. */
  readonly after: Action;
  readonly events: readonly TimelineEvent[];
  /** The response of an attempt that does not become the action's result; absent: none. */
  readonly kept?: KeptResponse;
}

/** The change that sets these fields of the state and keeps the others. */
export function step(before: Action, moved: Partial<ActionState>, events: readonly TimelineEvent[]): Change {
  return { before, after: { ...before, ...moved, revision: before.revision + 1 }, events };
}

export interface DecisionInput {
  readonly actor: Actor;
  readonly reason: string | null;
  readonly now: Date;
  /** Set when an MCP client asked its person for the decision. */
  readonly via?: "elicitation";
  /** For a cancel: nobody rejected the request. See `isWithdrawal`. */
  readonly isWithdrawal?: boolean;
}

export interface ApprovalInput extends DecisionInput {
  /** `requestDigest` of the action: the approval holds for exactly these bytes. */
  readonly digest: string;
}

/** Releases a held action, which is due at once or at its `run_at`. This also applies to later runs: it is what was approved. */
export function approve(action: Action, input: ApprovalInput): Change | DomainError {
  const { actor, now, digest } = input;
  const status = nextStatus(action.status, "approve");
  if (status === null) return notAllowed("approve", action);
  if (isExpired(action, now)) return expired("approve", action);
  const dueAt = firstDueAt(action, now);
  return step(action, { status, dueAt, approvedAt: now, approvedBy: actor, approvedDigest: digest }, [
    { type: "approved", ...decisionEvent(input) },
  ]);
}

/**
 * Whether this run still awaits approval. A rejection must not end an action that another person has approved meanwhile,
 * and an approval of one run must not release the next.
 */
export function isHeldIn(action: Action, run: number): boolean {
  return action.status === "awaiting_approval" && action.run === run;
}

/** The run that a decision is meant for. */
interface ExpectedRun {
  readonly run: number;
  /** The decision applies only while that run awaits approval. */
  readonly isHeld: boolean;
  /** The service's `actionDigest` the action that was shown; absent: whatever is stored. */
  readonly digest?: string;
}

/** The error for a decision meant for another run, or for a run that is no longer held. Null: the decision applies. */
export function staleDecision(operation: Operation, action: Action, { run, isHeld }: ExpectedRun): DomainError | null {
  if (isHeld ? isHeldIn(action, run) : action.run === run) return null;
  const { id, status } = action;
  const message =
    action.run === run
      ? `Action ${id} no longer awaits this decision: it is ${status} by now.`
      : `This decision is for run ${run} of action ${id}, which is in run ${action.run} and ${status}.`;
  return new DomainError(NOT_ALLOWED[operation], message);
}

/** Rejects a held action, or cancels one that waits to be sent or that its requester withdraws. */
export function cancel(action: Action, input: DecisionInput): Change | DomainError {
  const status = nextStatus(action.status, "cancel");
  if (status === null) return notAllowed("cancel", action);
  const type = action.status === "awaiting_approval" && input.isWithdrawal !== true ? "rejected" : "cancelled";
  return step(action, { status, dueAt: null, finishedAt: input.now }, [{ type, ...decisionEvent(input) }]);
}

/** Starts a new run of the same action. An approval releases one run only, so an action that needed one is held again. */
export function retry(action: Action, { actor, reason, now }: DecisionInput): Change | DomainError {
  const status = nextStatus(action.status, action.approve ? "hold" : "retry");
  if (status === null) return notAllowed("retry", action);
  if (isExpired(action, now)) return expired("retry", action);
  const retried: TimelineEvent = { type: "retried", actor, reason };
  const { lateResult } = action;
  const moved = { ...firstState(action.approve, now), status, run: action.run + 1, lateResult };
  return step(action, moved, action.approve ? [retried, { type: "held", ...heldBy(action.policy) }] : [retried]);
}

/**
 * Whether an earlier run may have sent the request. Never false if one has: of each run there are at least two revisions, its
 * end and the retry, and of one that claimed an attempt at least three.
 */
export function mayBeSentBefore(action: Pick<Action, "run" | "revision" | "status" | "approvedAt">): boolean {
  const { run, revision, status, approvedAt } = action;
  const ofThisRun = (approvedAt === null ? 0 : 1) + (status === "cancelled" ? 1 : 0);
  return run > 1 && revision - ofThisRun >= 2 * run;
}

/** The operations that an action allows at this time: the `actions` field. */
export function allowedOperations(action: Action, now: Date): readonly Operation[] {
  const operations = operationsIn(action.status);
  return isExpired(action, now) ? operations.filter((operation) => operation === "cancel") : operations;
}

/** Makes a waiting action due now, whether it waits for its `run_at` or for its next attempt. */
export function sendNow(action: Action, input: DecisionInput): Change | DomainError {
  const { status, dueAt } = action;
  const { now } = input;
  if (status !== "pending" || dueAt === null || dueAt <= now) {
    const why =
      status === "pending" ? "is already due, and waits for its turn or for the end of a pause" : `is ${status}`;
    const message = `Action ${action.id} ${why}; only a pending action that waits for its time can be sent now.`;
    return new DomainError("not_retryable", message);
  }
  if (isExpired(action, now)) return expired("retry", action);
  return step(action, { dueAt: now }, [{ type: "sent_now", ...decisionEvent(input) }]);
}

function expired(operation: "approve" | "retry", { id, expiresAt }: Action): DomainError {
  const at = expiresAt?.toISOString() ?? "";
  return new DomainError(NOT_ALLOWED[operation], `Action ${id} expired at ${at}; create a new one.`);
}

function decisionEvent({ actor, reason, via }: DecisionInput) {
  return via === undefined ? { actor, reason } : { actor, reason, via };
}

/** Thrown for a decision on another request than the stored one. */
export class OtherRequest extends DomainError {
  constructor(operation: Operation, { id }: Pick<Action, "id">) {
    const message = `The request of action ${id} is not the one that was shown. Read it again before you decide.`;
    super(NOT_ALLOWED[operation], message);
  }
}

const NOT_ALLOWED = {
  approve: "not_approvable",
  cancel: "not_cancellable",
  retry: "not_retryable",
} as const satisfies Record<Operation, ErrorCode>;

const VERBS = { approve: "approved", cancel: "cancelled", retry: "retried" } as const satisfies Record<
  Operation,
  string
>;

function notAllowed(operation: Operation, { id, status }: Action): DomainError {
  const allowed = sources(operation).join(" or ");
  return new DomainError(
    NOT_ALLOWED[operation],
    `Action ${id} is ${status} and cannot be ${VERBS[operation]}; only an action that is ${allowed} can.`,
  );
}

/** Cancels what has expired while it waited. Null: it doesn't wait, or has not expired. */
export function expireUnsent(action: Action, now: Date): Change | null {
  return isExpired(action, now) ? cancelBySystem(action, EXPIRED, now) : null;
}

/** A held run and how long it may wait. */
interface HeldRun {
  readonly run: number;
  readonly heldAt: Date;
  readonly hoursMax: number;
}

/** Cancels a run that has awaited approval for too long. Null: the run is no longer held, or its time is not over. */
export function expire(action: Action, { run, heldAt, hoursMax }: HeldRun, now: Date): Change | null {
  if (!isHeldIn(action, run) || now.getTime() < heldAt.getTime() + hoursMax * HOUR_MS) return null;
  return cancelBySystem(action, `No one decided within ${hoursMax === 1 ? "an hour" : `${hoursMax} hours`}.`, now);
}

/** Cancels in the name of the service, which is no rejection. */
function cancelBySystem(action: Action, reason: string, now: Date): Change | null {
  const status = nextStatus(action.status, "cancel");
  if (status === null) return null;
  return step(action, { status, dueAt: null, finishedAt: now }, [{ type: "cancelled", actor: SYSTEM, reason }]);
}

/**
 * Decides on an action. `expected`: decides only if the action is still in the run that the decider saw. `terms`: an approval
 * also lets more calls like this one pass.
 */
export type Decide = (
  caller: Caller,
  id: string,
  reason: string | null,
  expected?: ExpectedRun,
  terms?: GrantTerms,
) => Promise<Action>;

/**
 * Which counts of rules a change gives back: those of a run that is cancelled, or ends with a call that was not sent, unless
 * an earlier attempt of the run may have reached the target.
 */
export function givesBack({ before, after, events }: Change): readonly StoredCount[] {
  if (after.status === before.status) return [];
  const isNotSent = events.some((event) => event.type === "attempt" && event.outcome === "not_sent");
  return after.status === "cancelled" || (after.status === "failed" && isNotSent) ? after.counted : [];
}

/** The part of an attempt's response that the timeline doesn't have. */
export interface KeptResponse {
  readonly run: number;
  readonly attempt: number;
  readonly responseHeaders: string | null;
  /** JSON text. */
  readonly responseBody: string | null;
  readonly responseTruncated: boolean;
}

/** One attempt that has ended. */
export interface PastAttempt extends KeptResponse {
  readonly at: Date;
  readonly made: Extract<TimelineEvent, { readonly type: "attempt" }>;
}

/**
 * The response that this change stores outside the action's row, which has only the last one: of an attempt that ends and will
 * be followed by another, of a run's last attempt when the next run begins, or of a late result. Null: none, as for nearly all
 * actions.
 */
export function responseToKeep({ before, after, kept }: Omit<Change, "events">): KeptResponse | null {
  if (kept !== undefined) return unlessEmpty(kept);
  if (after.run !== before.run) return before.result === null ? null : keptResponse(before, before.result);
  if (after.result === null || after.result === before.result || after.status !== "pending") return null;
  return keptResponse(after, after.result);
}

function keptResponse({ run, attempts }: Action, result: Result): KeptResponse | null {
  const { responseHeaders, responseBody, responseTruncated } = result;
  return unlessEmpty({ run, attempt: attempts, responseHeaders, responseBody, responseTruncated });
}

function unlessEmpty(response: KeptResponse): KeptResponse | null {
  if (response.responseHeaders === null && response.responseBody === null) return null;
  return { ...response, ...shortened(response) };
}

/** Whether an action may have more stored responses than are shown, so that the oldest must be deleted. */
export function mayHaveTooMany({ run, attempt }: Pick<KeptResponse, "run" | "attempt">): boolean {
  return run > 1 || attempt > ATTEMPTS_KEPT;
}

/**
 * The newest ended attempts of an action, oldest first, each with its own response. `action` must not be older than `entries`
 * and `kept`: then, at worst, a response is missing, but it is never another attempt's.
 */
export function pastAttempts(
  action: Action,
  entries: readonly TimelineEntry[],
  kept: readonly KeptResponse[],
): readonly PastAttempt[] {
  const made = entries.flatMap(({ run, at, event }) => (event.type === "attempt" ? [{ run, at, made: event }] : []));
  return made.slice(-ATTEMPTS_KEPT).map((past) => {
    const { attempt } = past.made;
    const own = kept.find((one) => one.run === past.run && one.attempt === attempt);
    return { ...(responseTo(action, past, own) ?? NO_RESPONSE), ...past, attempt };
  });
}

/** The response to an attempt. If it was closed as unknown, a later entry may have it. */
function responseTo(
  action: Action,
  { run, made }: Pick<PastAttempt, "run" | "made">,
  kept: KeptResponse | undefined,
): KeptResponse | null {
  const { result } = action;
  if (made.outcome !== "answered") return null;
  return result !== null && isOfResult(action, { run, made }) ? keptResponse(action, result) : (kept ?? null);
}

/**
 * Whether the action's result is from this attempt. A claim keeps the result of the attempt before, and a late answer may not
 * have become the result.
 */
function isOfResult({ status, run, attempts, result }: Action, of: Pick<PastAttempt, "run" | "made">): boolean {
  const isNewest = of.run === run && of.made.attempt === (status === "active" ? attempts - 1 : attempts);
  return isNewest && result?.responseCode === of.made.response_code;
}

/** The attempt with its whole response, if the action has it. Of other responses, only a part is stored. */
export function wholeAttempt(action: Action, past: PastAttempt): PastAttempt {
  const { lateResult } = action;
  const isLate = past.made.late === "result" && lateResult?.run === past.run && lateResult.attempt === past.attempt;
  const result = isOfResult(action, past) ? action.result : null;
  const whole = isLate ? lateResult : result;
  if (whole === null) return past;
  return { ...past, responseBody: whole.responseBody, responseTruncated: whole.responseTruncated };
}

const NO_RESPONSE = { responseHeaders: null, responseBody: null, responseTruncated: false };

type Body = Pick<Result, "responseBody" | "responseTruncated">;

/** Cuts a body to the bound. A cut body is a text or bytes, so that it is never taken for a JSON value. */
function shortened({ responseBody: json, responseTruncated }: Body): Body {
  if (json === null || Buffer.byteLength(json) <= ATTEMPT_BODY_BYTES_MAX)
    return { responseBody: json, responseTruncated };
  if (json.startsWith(BASE64_START)) {
    const data = json.slice(BASE64_START.length, ATTEMPT_BODY_BYTES_MAX);
    // Keep whole groups of four base64 characters.
    return {
      responseBody: `${BASE64_START}${data.slice(0, data.length - (data.length % 4))}"}`,
      responseTruncated: true,
    };
  }
  let text = (json.startsWith('"') ? String(JSON.parse(json)) : json).slice(0, ATTEMPT_BODY_BYTES_MAX);
  // Escapes and multi-byte characters can make it up to six times as long.
  while (Buffer.byteLength(JSON.stringify(text)) > ATTEMPT_BODY_BYTES_MAX) {
    text = text.slice(0, Math.floor(text.length * SHRINK));
  }
  return { responseBody: JSON.stringify(text.toWellFormed()), responseTruncated: true };
}

/** The share of a text that each step keeps while it is too long. */
const SHRINK = 0.8;
