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

/** All use cases of actions, for REST, pages and MCP tools. */
export type ActionService = ReturnType<typeof createActionService>;

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
 * Starts a new run of a failed or cancelled action. Throws
 * - `not_retryable`: another status, another action has taken its `dedupe` key, too many actions of its key await approval,
 *   or it was requested again too often after a rejection,
 * - `invalid_request`: a person rejected it and the reason is missing,
 * - `forbidden`: the hold of the caller's key covers it and the action needs no approval. Otherwise a key could bypass its
 *   hold by retrying actions of other keys.
 */
function createRetry(deps: DecideDeps): Decide {
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
    message: `${method} calls of this key need approval, and action ${id} was created without it. Create it again, which holds it for approval, or retry it with a key without this hold.`,
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
    message: `Action ${action.id} cannot be retried: action ${holder.id} now has its dedupe key and is ${holder.status}.`,
  };
}

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
function createCountRetryable(actions: Pick<ActionStore, "count">) {
  return async (caller: Caller, query: ListQuery): Promise<Counted> => {
    authorize(caller, "read");
    const statuses = retryableIn(query.statuses);
    if (statuses.length === 0) return NONE;
    return actions.count({ ...query, statuses, accountId: caller.accountId, limit: COUNTED_MAX });
  };
}

/**
 * Retries the next actions of a list, newest first. The cursor moves on with each step, so that no action is retried
 * twice, not even one that fails again meanwhile.
 */
function createRetryMany(actions: Pick<ActionStore, "list" | "count">, retryAction: Decide) {
  const count = createCountRetryable(actions);
  return async (caller: Caller, query: ListQuery, reason: string | null): Promise<RetriedBatch> => {
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
