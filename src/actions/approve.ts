import type { Action } from "../domain/action.ts";
import { approve, type Refusal } from "../domain/change.ts";
import { mayApproveIt } from "../domain/creator.ts";
import { requestDigest } from "../domain/request-digest.ts";
import { createDecide, type Decide, type DecideDeps } from "./decide.ts";

/**
 * Releases a held action (spec "approve"). Throws `not_approvable` unless it awaits approval, and `forbidden` where an
 * agent's key brings its client's answer to what the hold of a key holds.
 */
export function createApprove(deps: DecideDeps): Decide {
  return createDecide(deps, "approve", (action, input, caller) =>
    mayApproveIt(caller.role, action)
      ? approve(action, { ...input, digest: requestDigest(action, deps.hashOf) })
      : beyondElicitation(action),
  );
}

function beyondElicitation({ id }: Action): Refusal {
  return {
    refused: "forbidden",
    message: `Action ${id} is held by the hold of a key: no agent's key may approve it, also where its client asked a person.`,
  };
}
