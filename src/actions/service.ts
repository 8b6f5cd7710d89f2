import { createApprove, createCancel, type DecideDeps, createDecide, type Decide } from "../approvals/decide.ts";
import { type CreateDeps, createCreate } from "./create.ts";
import { createGet, createList, createTimeline, type TimelineDeps, createWait, type ListQuery } from "./read.ts";
import { type ContextDeps, createContextOf, createHeld } from "../approvals/held.ts";
import type { Action, ActionStatus } from "./action.ts";
import { isRefusal, type Refusal, retry, isHeldIn } from "./changes.ts";
import { HELD_PER_KEY_MAX, COUNTED_MAX, RETRY_BATCH_MAX } from "../config/limits.ts";
import { noteOfCreate, refusalOfAsking } from "../approvals/rejections.ts";
import { isHeld, authorize, type Caller } from "../accounts/roles.ts";
import { DomainError } from "../api/domain-error.ts";
import { sources } from "./status.ts";
import type { ActionStore, Counted } from "../../db/store.ts";

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
