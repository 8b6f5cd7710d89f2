import { createDecisions, type Decide, type DecideDeps } from "../approvals/decide.ts";
import { type CreateDeps, createCreate } from "./create.ts";
import { createWait, type WaitDeps } from "./wait.ts";
import { type HistoryDeps, createHistoryOf, createHeld } from "../approvals/held.ts";
import type { Action, ActionStatus } from "./action.ts";
import { isHeldIn } from "./changes.ts";
import { COUNTED_MAX, RETRY_BATCH_MAX } from "../config/limits.ts";
import { authorize, type Caller } from "../accounts/roles.ts";
import { DomainError } from "../api/domain-error.ts";
import { type PauseStore, withPauses } from "../pauses/pause.ts";
import { sources } from "./status.ts";
import type { TimelineEntry } from "./timeline.ts";
import type { ActionRows, ActionQuery, ActionStore, Counted, OutboxEntry, OutboxStore } from "../../db/store.ts";

type ActionServiceDeps = CreateDeps &
  DecideDeps &
  HistoryDeps &
  WaitDeps & { readonly actions: ActionStore; readonly pauses: Pick<PauseStore, "ofAction"> };

/** All use cases of actions, for REST, pages and MCP tools. */
export type ActionService = ReturnType<typeof createActionService>;

export type ListFilter = Omit<ActionQuery, "accountId">;

export function createActionService(deps: ActionServiceDeps) {
  const { actions, pauses } = deps;
  const decisions = createDecisions(deps);

  /** Throws `not_found`, also for actions of other accounts. */
  const get = async (caller: Caller, id: string): Promise<Action> => {
    authorize(caller, "read");
    const action = await actions.find(caller.accountId, id);
    if (action === null) throw new DomainError("not_found", "There is no such action.");
    return action;
  };

  /** One page of the account's actions, newest first. */
  const list = async (caller: Caller, query: ListFilter): Promise<ActionRows> => {
    authorize(caller, "read");
    return actions.list({ ...query, accountId: caller.accountId });
  };

  /** The timeline of one action, oldest first, with the pauses that kept it from being sent. Throws `not_found`. */
  const timeline = async (caller: Caller, id: string): Promise<readonly TimelineEntry[]> => {
    authorize(caller, "read");
    const [entries, covering] = await Promise.all([
      actions.timeline(caller.accountId, id),
      pauses.ofAction(caller.accountId, id),
    ]);
    // Every action has the row of its creation.
    if (entries.length === 0) throw new DomainError("not_found", "There is no such action.");
    return withPauses(entries, covering);
  };

  return {
    create: createCreate(deps),
    get,
    list,
    timeline,
    wait: createWait(deps),
    ...decisions,
    held: createHeld(deps),
    historyOf: createHistoryOf(deps),
    retryMany: createRetryMany(actions, decisions.retry),
    countRetryable: createCountRetryable(actions),
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
  return async (caller: Caller, query: ListFilter): Promise<Counted> => {
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

interface NotificationPage {
  /** Newest first. */
  readonly entries: readonly OutboxEntry[];
  /** Where the next page begins; null when there is none. */
  readonly before: string | null;
}

/** The callbacks and mails of the caller's account, newest first, with the state of each; for owners. */
export type ListNotifications = (caller: Caller, before: string | null, limit: number) => Promise<NotificationPage>;

export function createListNotifications(outbox: Pick<OutboxStore, "list">): ListNotifications {
  return async (caller, before, limit) => {
    authorize(caller, "manage");
    const found = await outbox.list(caller.accountId, before, limit + 1);
    const entries = found.slice(0, limit);
    return { entries, before: found.length > limit ? (entries.at(-1)?.id ?? null) : null };
  };
}
