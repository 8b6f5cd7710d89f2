import type { Action, ActionStatus } from "../domain/action.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { isHeldIn } from "../domain/change.ts";
import { DomainError } from "../domain/errors.ts";
import { COUNTED_MAX, RETRY_BATCH_MAX } from "../domain/limits.ts";
import { sources } from "../domain/transition.ts";
import type { ActionStore, Counted } from "../ports/store.ts";
import type { Decide } from "./decide.ts";
import type { ListQuery } from "./list.ts";

/** One step of a bulk retry. */
export interface RetriedBatch {
  /** Begun again, those included that wait for a yes by now. */
  readonly retried: number;
  readonly held: number;
  readonly refused: readonly { readonly id: string; readonly message: string }[];
  /** Where the next step begins; null: this was the last one. */
  readonly before: string | null;
  readonly left: Counted;
}

const NONE: Counted = { count: 0, isMore: false };

/**
 * How many actions of a list a bulk retry would begin again. Only of the statuses that the list names: what somebody has
 * cancelled is not begun again by whoever wanted the failed ones.
 */
export function createCountRetryable(actions: Pick<ActionStore, "count">) {
  return async (caller: Caller, query: ListQuery): Promise<Counted> => {
    authorize(caller, "read");
    const statuses = retryableIn(query.statuses);
    if (statuses.length === 0) return NONE;
    return actions.count({ ...query, statuses, accountId: caller.accountId, limit: COUNTED_MAX });
  };
}

/**
 * Begins the next actions of a list again, newest first, each as `retry` does. The cursor goes from step to step, so that
 * each action is visited once: one that fails again meanwhile is not taken twice, nor is one that comes meanwhile.
 */
export function createRetryMany(actions: Pick<ActionStore, "list" | "count">, retryAction: Decide) {
  const count = createCountRetryable(actions);
  return async (caller: Caller, query: ListQuery, reason: string | null): Promise<RetriedBatch> => {
    authorize(caller, "retry");
    const statuses = retryableIn(query.statuses);
    if (statuses.length === 0) return { retried: 0, held: 0, refused: [], before: null, left: NONE };
    const page = await actions.list({ ...query, statuses, accountId: caller.accountId, limit: RETRY_BATCH_MAX });
    // Together, so that they share their commits.
    const ends = await Promise.all(page.actions.map(({ id }) => retryOne(retryAction, caller, id, reason)));
    return {
      retried: ends.filter((end) => "status" in end).length,
      held: ends.filter((end) => "status" in end && isHeldIn(end, end.run)).length,
      refused: ends.flatMap((end) => ("status" in end ? [] : [end])),
      before: page.before,
      left: page.before === null ? NONE : await count(caller, { ...query, before: page.before }),
    };
  };
}

type End = Action | { readonly id: string; readonly message: string };

/** Somebody else may have been first, or have rejected it, or hold its key of deduplication by now: the others go on. */
async function retryOne(retryAction: Decide, caller: Caller, id: string, reason: string | null): Promise<End> {
  try {
    return await retryAction(caller, id, reason);
  } catch (error) {
    if (!(error instanceof DomainError) || !REFUSALS.has(error.code)) throw error;
    return { id, message: error.message };
  }
}

const REFUSALS: ReadonlySet<string> = new Set(["not_retryable", "not_found", "invalid_request"]);

function retryableIn(statuses: readonly ActionStatus[]): readonly ActionStatus[] {
  return sources("retry").filter((status) => statuses.includes(status));
}
