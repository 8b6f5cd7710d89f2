import { approve } from "../domain/change.ts";
import { createDecide, type Decide, type DecideDeps } from "./decide.ts";

/** Releases a held action (spec "approve"). Throws `not_approvable` unless it awaits approval. */
export function createApprove(deps: DecideDeps): Decide {
  return createDecide(deps, "approve", approve);
}
