import { ACTION_STATUSES, type ActionStatus } from "./action.ts";

/**
 * The triggers of the state machine. `hold` is the retry of an action that needs approval; `unclaim` returns a claim whose
 * attempt never began; `set_aside` fails an action whose stored row was altered.
 */
export type Trigger =
  | "approve"
  | "cancel"
  | "dispatch"
  | "unclaim"
  | "succeed"
  | "reschedule"
  | "exhaust"
  | "set_aside"
  | "retry"
  | "hold";

/** The state machine: every allowed transition. */
const TRANSITIONS: Readonly<Record<ActionStatus, Partial<Record<Trigger, ActionStatus>>>> = {
  awaiting_approval: { approve: "pending", cancel: "cancelled", set_aside: "failed" },
  pending: { dispatch: "active", cancel: "cancelled", set_aside: "failed" },
  active: { unclaim: "pending", succeed: "completed", reschedule: "pending", exhaust: "failed", set_aside: "failed" },
  failed: { retry: "pending", hold: "awaiting_approval" },
  cancelled: { retry: "pending", hold: "awaiting_approval" },
  completed: {},
};

/** The status after a trigger; null: the trigger is not allowed in this status. */
export function nextStatus(status: ActionStatus, trigger: Trigger): ActionStatus | null {
  return TRANSITIONS[status][trigger] ?? null;
}

/** The same where the trigger must be allowed; throws where it is not. */
export function statusAfter(
  action: { readonly id: string; readonly status: ActionStatus },
  trigger: Trigger,
): ActionStatus {
  const status = nextStatus(action.status, trigger);
  if (status === null)
    throw new Error(`Action ${action.id} is ${action.status}, in which "${trigger}" is not allowed.`);
  return status;
}

/** The statuses in which a trigger is allowed. */
export function sources(trigger: Trigger): readonly ActionStatus[] {
  return ACTION_STATUSES.filter((status) => nextStatus(status, trigger) !== null);
}

export const OPERATIONS = ["approve", "cancel", "retry"] as const;

export type Operation = (typeof OPERATIONS)[number];

/** The operations that a status allows: the `actions` field. */
export function operationsIn(status: ActionStatus): readonly Operation[] {
  return OPERATIONS.filter((operation) => nextStatus(status, operation) !== null);
}

/** The decisions on a held action. */
export const DECISIONS = ["approve", "reject"] as const;

export type Decision = (typeof DECISIONS)[number];

/** One of the two links of an approval mail. Both open the same page, except with `APPROVAL_LINKS=one_click`. */
export interface ApprovalLink {
  readonly actionId: string;
  /** A link decides on this run only: after a retry the links of the earlier run have no effect. */
  readonly run: number;
  readonly decision: Decision;
}
