import { ACTION_STATUSES, type ActionStatus } from "./action.ts";

/**
 * What can happen to an action. `hold` is the retry of an action that needs a yes: one yes releases one run. `unclaim` is
 * the end of a claim whose attempt never began; `set_aside` ends an action whose row was altered where it is stored.
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

/** The state machine (spec "States and transitions"). What is not in this table cannot happen. */
const TRANSITIONS: Readonly<Record<ActionStatus, Partial<Record<Trigger, ActionStatus>>>> = {
  awaiting_approval: { approve: "pending", cancel: "cancelled", set_aside: "failed" },
  pending: { dispatch: "active", cancel: "cancelled", set_aside: "failed" },
  active: { unclaim: "pending", succeed: "completed", reschedule: "pending", exhaust: "failed", set_aside: "failed" },
  failed: { retry: "pending", hold: "awaiting_approval" },
  cancelled: { retry: "pending", hold: "awaiting_approval" },
  completed: {},
};

/** Where the trigger leads from a status; null when it is not allowed there. */
export function nextStatus(status: ActionStatus, trigger: Trigger): ActionStatus | null {
  return TRANSITIONS[status][trigger] ?? null;
}

/** The statuses from which a trigger is allowed: what an error message and a guard in SQL name. */
export function sources(trigger: Trigger): readonly ActionStatus[] {
  return ACTION_STATUSES.filter((status) => nextStatus(status, trigger) !== null);
}

export const OPERATIONS = ["approve", "cancel", "retry"] as const;

export type Operation = (typeof OPERATIONS)[number];

/** What a person or program may do with an action now: the `actions` field (spec "Allowed operations"). */
export function operationsIn(status: ActionStatus): readonly Operation[] {
  return OPERATIONS.filter((operation) => nextStatus(status, operation) !== null);
}

/** What a person may say to a held action. */
export const DECISIONS = ["approve", "reject"] as const;

export type Decision = (typeof DECISIONS)[number];

/** One of the two links of an approval mail. Both open the same page; they differ in what `one_click` does with them. */
export interface ApprovalLink {
  readonly actionId: string;
  /** One yes releases one run: the links of the run before a retry decide nothing (decisions 3). */
  readonly run: number;
  readonly decision: Decision;
}
