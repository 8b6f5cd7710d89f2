import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action, ActionStatus } from "../../../src/actions/action.ts";
import { type approve, cancel } from "../../../src/actions/changes.ts";
import type { Outcome } from "../../../src/actions/outcome.ts";
import type { AttemptEnd } from "../../../src/actions/settle.ts";
import type { ActionStore } from "../../../db/store.ts";
import { aDecision, anAction, answered, creationOf, later, NOON, settled, writeOf } from "../../support/factory.ts";

/** The lease of every claim in the suite. */
export const LEASE = { now: NOON, leaseUntil: later(45_000) };

/** Creates an action and says what is stored of it. */
export async function createdAction(actions: ActionStore, overrides: Partial<Action> = {}): Promise<Action> {
  const action = anAction(overrides);
  const created = await actions.create(creationOf(action));
  if (created.kind !== "created") throw new Error("The create matched an older action.");
  return stored(actions, action);
}

/** Claims a pending action as the engine does; throws when somebody else was faster. */
export async function claimed(actions: ActionStore, { id, revision }: Action, at = LEASE): Promise<Action> {
  const [action] = await actions.claim([{ id, revision, dueAt: at.now }], at);
  if (action === undefined) throw new Error(`The action ${id} was not there to be claimed.`);
  return action;
}

/** One whole attempt with its end. */
export async function attempted(
  actions: ActionStore,
  action: Action,
  outcome: Outcome,
  end: Partial<AttemptEnd> = {},
): Promise<Action> {
  const active = await claimed(actions, action);
  if (!(await actions.apply(settled(active, outcome, end)))) throw new Error("The attempt could not be settled.");
  return stored(actions, action);
}

/** An action whose only attempt was answered with 500. */
export async function failedAction(actions: ActionStore, overrides: Partial<Action> = {}): Promise<Action> {
  return attempted(actions, await createdAction(actions, { ...overrides, retries: 1 }), answered(500));
}

/** An action that has come to this status by the way that it has in life. */
export async function actionInStatus(
  actions: ActionStore,
  status: ActionStatus,
  overrides: Partial<Action> = {},
): Promise<Action> {
  const action = await createdAction(actions, {
    ...overrides,
    approve: status === "awaiting_approval",
    retries: status === "failed" ? 1 : 3,
  });
  if (status === "active") await claimed(actions, action);
  if (status === "completed") await attempted(actions, action, answered(200, '{"ok":true}'));
  if (status === "failed") await attempted(actions, action, answered(500));
  if (status === "cancelled") await actions.apply(writeOf(cancel(action, aDecision())));
  return stored(actions, action);
}

/** Approves or rejects, whatever came before; tells whether it won. */
export function decided(
  actions: ActionStore,
  decide: typeof approve | typeof cancel,
  action: Action,
): Promise<boolean> {
  return actions.apply(writeOf(decide(action, aDecision())));
}

/** What the store has of an action. */
export async function stored(actions: ActionStore, { accountId, id }: Action): Promise<Action> {
  const action = await actions.find(accountId, id);
  if (action === null) throw new Error(`The action ${id} is not stored.`);
  return action;
}

/** The types of what happened to an action, oldest first. */
export async function happeningsOf(actions: ActionStore, { accountId, id }: Action): Promise<readonly string[]> {
  return (await actions.timeline(accountId, id)).map(({ event }) => event.type);
}

/** Lets so many turns of the event loop pass. */
export async function nextTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}
