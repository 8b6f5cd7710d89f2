import type { Action } from "../domain/action.ts";
import { isRefusal, type Refusal, retry } from "../domain/change.ts";
import { HELD_PER_KEY_MAX } from "../domain/limits.ts";
import { noteOfCreate, refusalOfAsking } from "../domain/rejections.ts";
import { isHeld } from "../domain/roles.ts";
import { createDecide, type Decide, type DecideDeps } from "./decide.ts";

/**
 * Begins a new run of a failed or cancelled action (decisions 3). Throws `not_retryable` from any other status, and where
 * another live action holds the same `dedupe` key by now, or too many of its key's await approval; `invalid_request` where a person has rejected
 * it and no reason is given; `forbidden` where the caller's key may send nothing like it without a yes, and the action asks for none: no key gets past its hold by what another one has created.
 */
export function createRetry(deps: DecideDeps): Decide {
  return createDecide(deps, "retry", async (action, input, caller) => {
    const change = retry(action, input);
    if (isRefusal(change)) return change;
    if (!action.approve && isHeld(caller.hold, action.method)) return beyondHold(action);
    if (action.approve && (await deps.actions.heldCount(action.accountId, action.keyId)) >= HELD_PER_KEY_MAX) {
      return tooManyHeld(action);
    }
    const note = noteOfCreate(action, { caller, reason: input.reason }, deps.hashOf);
    if (note !== null) {
      const counted = await deps.rejections.count({ ...action, digest: note.digest }, input.now);
      const refusal = refusalOfAsking(counted, note.reason, "not_retryable");
      if (refusal !== null) return refusal;
    }
    if (action.dedupe === null) return change;
    const holder = await deps.actions.holderOf(action.accountId, "dedupe", action.dedupe, input.now);
    return holder === null || holder.id === action.id ? change : dedupeTaken(action, holder);
  });
}

function beyondHold({ id, method }: Action): Refusal {
  return {
    refused: "forbidden",
    message: `Whatever this key sends by ${method} needs a person's yes, and action ${id} asks for none: create it anew, which holds it, or have it retried with a key that has no such hold.`,
  };
}

function tooManyHeld({ id }: Action): Refusal {
  return {
    refused: "not_retryable",
    message: `Action ${id} cannot be retried now: ${HELD_PER_KEY_MAX} actions of the key that created it await approval. Decide on some of them first.`,
  };
}

function dedupeTaken(action: Action, holder: Action): Refusal {
  return {
    refused: "not_retryable",
    message: `Action ${action.id} cannot be retried: action ${holder.id} holds its dedupe key by now and is ${holder.status}.`,
  };
}
