import { type Action, type ActionState, firstState } from "./action.ts";
import { type Actor, SYSTEM } from "../accounts/roles.ts";
import type { ErrorCode, Issue } from "../api/domain-error.ts";
import type { TimelineEvent } from "./timeline.ts";
import { nextStatus, type Operation, sources } from "./status.ts";

/**
 * One legal step of an action: the whole action after it and what is told of it. The store writes it only while the
 * action still has the revision that the step was decided on.
 */
export interface Change {
  readonly before: Action;
  /** One revision further. */
  readonly after: Action;
  readonly events: readonly TimelineEvent[];
}

/** The step that moves these parts of an action's state and leaves the others as they are. */
export function step(before: Action, moved: Partial<ActionState>, events: readonly TimelineEvent[]): Change {
  return { before, after: { ...before, ...moved, revision: before.revision + 1 }, events };
}

/** Why a step is not allowed from where the action is now. */
export interface Refusal {
  readonly refused: ErrorCode;
  readonly message: string;
  readonly issues?: readonly Issue[];
}

/** Who decides, why, and when. */
export interface DecisionInput {
  readonly actor: Actor;
  readonly reason: string | null;
  readonly now: Date;
  /** How it came to the actor, when it came in a way that says so. */
  readonly via?: "elicitation";
}

/** A yes is given to a request, byte for byte. */
export interface ApprovalInput extends DecisionInput {
  /** `requestDigest` of the action. */
  readonly digest: string;
}

/** A yes: the held action is due at once. */
export function approve(action: Action, input: ApprovalInput): Change | Refusal {
  const { actor, now, digest } = input;
  const status = nextStatus(action.status, "approve");
  if (status === null) return refuse("approve", action);
  return step(action, { status, dueAt: now, approvedAt: now, approvedBy: actor, approvedDigest: digest }, [
    { type: "approved", ...toldOf(input) },
  ]);
}

/**
 * Whether the action still awaits the decision that somebody was asked for: a no to a held action must not end what
 * another has approved meanwhile, nor a yes to one run release the next.
 */
export function isHeldIn(action: Action, run: number): boolean {
  return action.status === "awaiting_approval" && action.run === run;
}

/** Which run a decision is about. */
export interface OfRun {
  readonly run: number;
  /** It is a decision on what awaits approval, and on nothing else. */
  readonly isHeld: boolean;
}

/** Why a decision about another run, or about one that is no longer held, is not taken; null: it is about this one. */
export function tooLate(operation: Operation, action: Action, { run, isHeld }: OfRun): Refusal | null {
  if (isHeld ? isHeldIn(action, run) : action.run === run) return null;
  const { id, status } = action;
  const now =
    action.run === run
      ? `it is ${status} by now`
      : `that was run ${run}, and the action is in run ${action.run} and ${status} by now`;
  return {
    refused: REFUSED[operation],
    message: `Action ${id} no longer awaits the decision that was asked for; ${now}.`,
  };
}

/** A no to what waits for a person, or the end of what waits to be sent. */
export function cancel(action: Action, input: DecisionInput): Change | Refusal {
  const status = nextStatus(action.status, "cancel");
  if (status === null) return refuse("cancel", action);
  const type = action.status === "awaiting_approval" ? "rejected" : "cancelled";
  return step(action, { status, dueAt: null, finishedAt: input.now }, [{ type, ...toldOf(input) }]);
}

/** A new run of the same action. One yes releases one run: what needed a person's yes needs another one. */
export function retry(action: Action, { actor, reason, now }: DecisionInput): Change | Refusal {
  const status = nextStatus(action.status, action.approve ? "hold" : "retry");
  if (status === null) return refuse("retry", action);
  const retried: TimelineEvent = { type: "retried", actor, reason };
  const moved = { ...firstState(action.approve, now), status, run: action.run + 1 };
  return step(action, moved, action.approve ? [retried, { type: "held" }] : [retried]);
}

/** What the timeline tells of a decision. */
function toldOf({ actor, reason, via }: DecisionInput) {
  return via === undefined ? { actor, reason } : { actor, reason, via };
}

export function isRefusal(value: Change | Refusal): value is Refusal {
  return "refused" in value;
}

const REFUSED = {
  approve: "not_approvable",
  cancel: "not_cancellable",
  retry: "not_retryable",
} as const satisfies Record<Operation, ErrorCode>;

const VERBS = { approve: "approved", cancel: "cancelled", retry: "retried" } as const satisfies Record<
  Operation,
  string
>;

function refuse(operation: Operation, action: Action): Refusal {
  const allowed = sources(operation).join(" or ");
  return {
    refused: REFUSED[operation],
    message: `Action ${action.id} is ${action.status} and cannot be ${VERBS[operation]}; only an action that is ${allowed} can.`,
  };
}

/** What a held run waited for, and how long it may. */
export interface Waited {
  readonly run: number;
  readonly heldAt: Date;
  readonly hoursMax: number;
}

const HOUR_MS = 3_600_000;

/**
 * The end of a wait for a person that took too long (decisions 10): cancelled by the service itself. It is no rejection,
 * for nobody said no. Null: the run is not held any more, or its time is not over.
 */
export function expire(action: Action, { run, heldAt, hoursMax }: Waited, now: Date): Change | null {
  const status = nextStatus(action.status, "cancel");
  if (status === null || !isHeldIn(action, run)) return null;
  if (now.getTime() < heldAt.getTime() + hoursMax * HOUR_MS) return null;
  const reason = `Nobody decided within ${hoursMax === 1 ? "an hour" : `${hoursMax} hours`}.`;
  const event = { type: "cancelled", actor: SYSTEM, reason } as const;
  return step(action, { status, dueAt: null, finishedAt: now }, [event]);
}
