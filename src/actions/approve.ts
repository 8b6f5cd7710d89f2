import { approve } from "../domain/change.ts";
import { type HashOf, requestDigest } from "../domain/request-digest.ts";
import { createDecide, type Decide, type DecideDeps } from "./decide.ts";

export interface ApproveDeps extends DecideDeps {
  readonly hashOf: HashOf;
}

/** Releases a held action (spec "approve"). Throws `not_approvable` unless it awaits approval. */
export function createApprove(deps: ApproveDeps): Decide {
  return createDecide(deps, "approve", (action, input) =>
    approve(action, { ...input, digest: requestDigest(action, deps.hashOf) }),
  );
}
