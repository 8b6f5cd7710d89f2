import type { Action, ActionStatus } from "./action.ts";
import { isHeldIn } from "./changes.ts";
import type { ListFilter } from "./service.ts";
import { sources } from "./status.ts";
import { authorize, type Caller } from "../accounts/roles.ts";
import { DomainError } from "../api/domain-error.ts";
import type { Decide } from "../approvals/decide.ts";
import { COUNTED_MAX, LIST_SCAN_ROWS_MAX, RETRY_BATCH_MAX } from "../config/limits.ts";
import type { ActionStore, Counted } from "../../db/store.ts";

/** One step of a bulk retry. */
interface RetriedBatch {
  /** Retried, including those that now await approval. */
  readonly retried: number;
  readonly held: number;
  readonly refused: readonly { readonly id: string; readonly message: string }[];
  /** Cursor of the next step; null: this was the last one. */
  readonly before: string | null;
  readonly left: Counted;
}

const NONE: Counted = { count: 0, isMore: false };

/**
 * How many actions of a list a bulk retry would retry. Only statuses that the list filters by: a bulk retry of failed
 * actions must not retry cancelled ones.
 */
export function createCountRetryable(actions: Pick<ActionStore, "count">) {
  return async (caller: Caller, query: ListFilter): Promise<Counted> => {
    authorize(caller, "read");
    const statuses = retryableIn(query.statuses);
    if (statuses.length === 0) return NONE;
    const asked = { ...query, statuses, accountId: caller.accountId, limit: COUNTED_MAX };
    const { count, isMore } = await actions.count(asked, LIST_SCAN_ROWS_MAX);
    return { count, isMore };
  };
}

/**
 * Retries the next actions of a list, newest first. The cursor moves on with each step, so that no action is retried
 * twice, not even one that fails again meanwhile.
 */
export function createRetryMany(actions: Pick<ActionStore, "list" | "count">, retryAction: Decide) {
  const count = createCountRetryable(actions);
  return async (caller: Caller, query: ListFilter, reason: string | null): Promise<RetriedBatch> => {
    authorize(caller, "retry");
    const statuses = retryableIn(query.statuses);
    if (statuses.length === 0) return { retried: 0, held: 0, refused: [], before: null, left: NONE };
    const page = await actions.list({ ...query, statuses, accountId: caller.accountId, limit: RETRY_BATCH_MAX });
    // Concurrently, so that they share commits.
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

type RetryEnd = Action | { readonly id: string; readonly message: string };

/** An action that may not be retried is reported and does not stop the others. */
async function retryOne(retryAction: Decide, caller: Caller, id: string, reason: string | null): Promise<RetryEnd> {
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
