import { type Action, type ActionState, firstState } from "./action.ts";
import type { Actor } from "./actor.ts";
import type { ErrorCode } from "./errors.ts";
import type { Happening } from "./timeline.ts";
import { next, type Operation, sources } from "./transition.ts";

/**
 * One legal step of an action: the whole state after it and what is told of it. The store writes it only while the
 * action still has the revision that the step was decided on.
 */
export interface Change {
  readonly before: Action;
  readonly after: ActionState;
  readonly happenings: readonly Happening[];
}

/** Why a step is not allowed from where the action is now. */
export interface Refusal {
  readonly refused: ErrorCode;
  readonly message: string;
}

/** Who decides, why, and when. */
export interface DecisionInput {
  readonly actor: Actor;
  readonly reason: string | null;
  readonly now: Date;
}

/** A yes: the held action is due at once. */
export function approve(action: Action, { actor, reason, now }: DecisionInput): Change | Refusal {
  const status = next(action.status, "approve");
  if (status === null) return refuse("approve", action);
  return {
    before: action,
    after: { ...stateOf(action), status, dueAt: now, approvedAt: now, approvedBy: actor },
    happenings: [{ type: "approved", actor, reason }],
  };
}

/** A no to what waits for a person, or the end of what waits to be sent. */
export function cancel(action: Action, { actor, reason, now }: DecisionInput): Change | Refusal {
  const status = next(action.status, "cancel");
  if (status === null) return refuse("cancel", action);
  const type = action.status === "awaiting_approval" ? "rejected" : "cancelled";
  return {
    before: action,
    after: { ...stateOf(action), status, dueAt: null, finishedAt: now },
    happenings: [{ type, actor, reason }],
  };
}

/** A new run of the same action. One yes releases one run: what needed a person's yes needs another one. */
export function retry(action: Action, { actor, reason, now }: DecisionInput): Change | Refusal {
  const status = next(action.status, action.approve ? "hold" : "retry");
  if (status === null) return refuse("retry", action);
  const retried: Happening = { type: "retried", actor, reason };
  return {
    before: action,
    after: { ...firstState(action.approve, now), status, run: action.run + 1 },
    happenings: action.approve ? [retried, { type: "held" }] : [retried],
  };
}

/** The part of an action that the state machine moves. */
export function stateOf(action: Action): ActionState {
  return {
    status: action.status,
    run: action.run,
    attempts: action.attempts,
    dueAt: action.dueAt,
    leaseUntil: action.leaseUntil,
    startedAt: action.startedAt,
    finishedAt: action.finishedAt,
    approvedAt: action.approvedAt,
    approvedBy: action.approvedBy,
    result: action.result,
  };
}

/** The action as it is once the change is written. */
export function applied({ before, after }: Change): Action {
  return { ...before, ...after, revision: before.revision + 1 };
}

export function isRefusal(value: Change | Refusal): value is Refusal {
  return "refused" in value;
}

const REFUSED = { approve: "not_approvable", cancel: "not_cancellable", retry: "not_retryable" } as const satisfies Record<
  Operation,
  ErrorCode
>;
const VERBS = { approve: "approved", cancel: "cancelled", retry: "retried" } as const satisfies Record<Operation, string>;

function refuse(operation: Operation, action: Action): Refusal {
  const allowed = sources(operation).join(" or ");
  return {
    refused: REFUSED[operation],
    message: `Action ${action.id} is ${action.status} and cannot be ${VERBS[operation]}; only an action that is ${allowed} can.`,
  };
}
