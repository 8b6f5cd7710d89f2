import { type Action, type ActionRequest, firstState } from "../domain/action.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { differs } from "../domain/dedupe.ts";
import type { Happening } from "../domain/timeline.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Dispatcher } from "../ports/dispatcher.ts";
import type { Ids } from "../ports/ids.ts";
import type { Metrics } from "../ports/metrics.ts";
import type { ActionStore } from "../ports/store.ts";
import type { Owe } from "./owe.ts";

export interface CreateDeps {
  readonly actions: ActionStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly bus: Bus;
  readonly metrics: Metrics;
  readonly owe: Owe;
  readonly dispatcher: Dispatcher;
}

/** The action that a create made or found. `differs` is there only when it was found (decisions 3). */
export interface CreateAnswer {
  readonly action: Action;
  readonly differs?: readonly string[];
}

/**
 * Stores an action that has passed every check, or finds the one that its key means (spec "POST /v1/actions"). It is
 * durable when this resolves, and the answer shows it as it was created, whatever has happened by then: where a slot is
 * free the commit that creates it claims it too, so that it is sent one commit sooner.
 */
export function createCreate({ actions, clock, ids, bus, metrics, owe, dispatcher }: CreateDeps) {
  return async (caller: Caller, request: ActionRequest): Promise<CreateAnswer> => {
    authorize(caller, "create");
    const now = clock.now();
    const action: Action = {
      ...request,
      ...firstState(request.approve, now),
      id: ids.action(now),
      accountId: caller.accountId,
      revision: 1,
      createdAt: now,
      createdBy: caller.actor,
    };
    const seat = action.approve ? null : dispatcher.reserve(action);
    const happenings = firstHappenings(action);
    const creation = {
      action,
      happenings,
      outbox: owe(action, now, happenings),
      claim: seat?.claim ?? null,
    };
    const created = await actions.create(creation).catch((error: unknown) => {
      seat?.leave();
      throw error;
    });
    metrics.created(created.kind);
    if (created.kind === "matched") {
      seat?.leave();
      return { action: created.action, differs: differs(created.action, request) };
    }
    if (seat !== null && created.claimed !== null) {
      seat.board(action, created.claimed);
      return { action };
    }
    seat?.leave();
    bus.publish(action);
    return { action };
  };
}

function firstHappenings(action: Action): readonly Happening[] {
  const created: Happening = { type: "created", actor: action.createdBy };
  return action.approve ? [created, { type: "held" }] : [created];
}
