import { createApprove } from "./approve.ts";
import { createCancel } from "./cancel.ts";
import { type CreateDeps, createCreate } from "./create.ts";
import type { DecideDeps } from "./decide.ts";
import { createGet } from "./get.ts";
import { type ContextDeps, createContextOf, createHeld } from "./held.ts";
import { createList } from "./list.ts";
import { createRetry } from "./retry.ts";
import { createCountRetryable, createRetryMany } from "./retry-many.ts";
import { createTimeline, type TimelineDeps } from "./timeline.ts";
import { createWait } from "./wait.ts";

/** Every use case of actions; what REST, pages and agent tools all call. */
export type ActionService = ReturnType<typeof createActionService>;

/** Puts the verbs on one desk. */
export function createActionService(deps: CreateDeps & DecideDeps & ContextDeps & TimelineDeps) {
  const retryAction = createRetry(deps);
  return {
    create: createCreate(deps),
    get: createGet(deps.actions),
    held: createHeld(deps),
    historyOf: createContextOf(deps),
    list: createList(deps.actions),
    timeline: createTimeline(deps),
    wait: createWait(deps),
    approve: createApprove(deps),
    cancel: createCancel(deps),
    retry: retryAction,
    retryMany: createRetryMany(deps.actions, retryAction),
    countRetryable: createCountRetryable(deps.actions),
  };
}
