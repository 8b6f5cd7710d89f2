import type { Action } from "./action.ts";
import { type Change, step } from "./change.ts";
import { nextStatus } from "./transition.ts";

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
