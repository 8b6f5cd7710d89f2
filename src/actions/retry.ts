import { retry, type Refusal } from "../domain/change.ts";
import type { Action } from "../domain/action.ts";
import { createDecide, type Decide, type DecideDeps } from "./decide.ts";

/**
 * Begins a new run of a failed or cancelled action (decisions 3). Throws `not_retryable` from any other status, and where
 * another live action holds the same `dedupe` key by now.
 */
export function createRetry(deps: DecideDeps): Decide {
  return createDecide(deps, "retry", async (action, input) => {
    if (action.dedupe === null) return retry(action, input);
    const holder = await deps.actions.holderOf(action.accountId, "dedupe", action.dedupe, input.now);
    return holder === null || holder.id === action.id ? retry(action, input) : dedupeTaken(action, holder);
  });
}

function dedupeTaken(action: Action, holder: Action): Refusal {
  return {
    refused: "not_retryable",
    message: `Action ${action.id} cannot be retried: action ${holder.id} holds its dedupe key by now and is ${holder.status}.`,
  };
}
