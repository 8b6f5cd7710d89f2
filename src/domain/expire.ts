import type { Action } from "./action.ts";
import { SYSTEM } from "./actor.ts";
import { type Change, isHeldIn, step } from "./change.ts";
import { nextStatus } from "./transition.ts";

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
