import type { Action } from "./action.ts";
import { next } from "./transition.ts";

/** When an action was claimed, and until when the claim holds. */
export interface Claimed {
  readonly now: Date;
  readonly leaseUntil: Date;
}

/** A pending action once it is claimed: active, with one attempt counted before anything is sent (decisions 3). */
export function dispatched(action: Action, { now, leaseUntil }: Claimed): Action {
  const status = next(action.status, "dispatch");
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
