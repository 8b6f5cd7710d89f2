import { cancel } from "../domain/change.ts";
import { createDecide, type Decide, type DecideDeps } from "./decide.ts";

/** Ends an action that has not been sent (spec "cancel"). Throws `not_cancellable` once it is active or final. */
export function createCancel(deps: DecideDeps): Decide {
  return createDecide(deps, "cancel", cancel);
}
