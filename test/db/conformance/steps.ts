import { setImmediate as nextTurn } from "node:timers/promises";
import type { Action, ActionStatus } from "../../../src/core/action.ts";
import type { AuditFilter, AuditKind, AuditRow } from "../../../src/core/audit.ts";
import { type approve, cancel } from "../../../src/core/changes.ts";
import type { Outcome } from "../../../src/core/outcome.ts";
import type { AttemptEnd } from "../../../src/core/settle.ts";
import { ATTEMPTS_KEPT, CLAIM_BYTES_MAX } from "../../../src/core/limits.ts";
import type { ActionStore, Claim, LaneName, Queue, Store } from "../../../src/core/store.ts";
import {
  aDecision,
  anAction,
  anAuditEntry,
  anAuditQuery,
  answered,
  aSession,
  aSignUp,
  creationOf,
  later,
  NOON,
  settled,
  writeOf,
} from "../../support/factory.ts";

/** The lease of every claim in the suite. */
export const LEASE = { now: NOON, leaseUntil: later(45_000) };

/** Creates an action and says what is stored of it. */
export async function createdAction(actions: ActionStore, overrides: Partial<Action> = {}): Promise<Action> {
  const action = anAction(overrides);
  const created = await actions.create(creationOf(action));
  if (created.kind !== "created") throw new Error("The create matched an older action.");
  return stored(actions, action);
}

/** What the engine asks for: due rows of one lane. */
export function claimOf({ accountId, host, keyId }: LaneName, claim: Partial<Claim> & { limit?: number } = {}): Claim {
  const { limit = 256, ...given } = claim;
  return {
    lanes: [{ accountId, host, keyId, limit }],
    bytesMax: CLAIM_BYTES_MAX,
    takesLarge: true,
    lease: LEASE,
    ...given,
  };
}

/** Claims the due rows of a lane. */
export async function claimDue<Row>(queue: Queue<Row>, ...claim: Parameters<typeof claimOf>): Promise<readonly Row[]> {
  return (await queue.claimDue(claimOf(...claim))).rows.map(({ row }) => row);
}

/** Claims a pending action, which must be the first of its lane, whenever it is due. */
export async function claimed(actions: ActionStore, action: Action, at = LEASE): Promise<Action> {
  const now = new Date(Math.max(at.now.getTime(), action.dueAt?.getTime() ?? 0));
  const [won] = await claimDue(actions, action, { limit: 1, lease: { ...at, now } });
  if (won?.id !== action.id) throw new Error(`The action ${action.id} was not there to be claimed.`);
  return won;
}

/** One whole attempt with its end. */
export async function attempted(
  actions: ActionStore,
  action: Action,
  outcome: Outcome,
  end: Partial<AttemptEnd> = {},
): Promise<Action> {
  return ended(actions, await claimed(actions, action), outcome, end);
}

async function ended(
  actions: ActionStore,
  active: Action,
  outcome: Outcome,
  end: Partial<AttemptEnd>,
): Promise<Action> {
  if (!(await actions.apply(settled(active, outcome, end)))) throw new Error("The attempt could not be settled.");
  return stored(actions, active);
}

/** An action that its create has claimed, whatever else its lane has. */
export async function activeAction(actions: ActionStore, overrides: Partial<Action> = {}): Promise<Action> {
  const created = await actions.create({ ...creationOf(anAction(overrides)), claim: LEASE });
  if (created.kind !== "created" || created.claimed === null) throw new Error("The create claimed nothing.");
  return created.claimed;
}

/** An action with one attempt. */
export async function attemptedAction(
  actions: ActionStore,
  outcome: Outcome,
  overrides: Partial<Action> = {},
  end: Partial<AttemptEnd> = {},
): Promise<Action> {
  return ended(actions, await activeAction(actions, overrides), outcome, end);
}

/** An action whose only attempt was answered with 500. */
export async function failedAction(actions: ActionStore, overrides: Partial<Action> = {}): Promise<Action> {
  return attemptedAction(actions, answered(500), { ...overrides, retries: 1 });
}

/** An action that has come to this status by the way that it has in life. */
export async function actionInStatus(
  actions: ActionStore,
  status: ActionStatus,
  overrides: Partial<Action> = {},
): Promise<Action> {
  if (status === "failed") return failedAction(actions, overrides);
  if (status === "completed")
    return attemptedAction(actions, answered(200, '{"ok":true}'), { ...overrides, retries: 3 });
  if (status === "active") return activeAction(actions, { ...overrides, retries: 3 });
  const action = await createdAction(actions, { ...overrides, approve: status === "awaiting_approval", retries: 3 });
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

/** What the audit log says of a change. */
export const entry = (kind: AuditKind, subject: string) => anAuditEntry({ kind, subject });

/** The newest entries of the audit log, of the account unless it is said otherwise. */
export async function audited({ audit }: Store, filter: Partial<AuditFilter> = {}): Promise<readonly AuditRow[]> {
  return (await audit.page(anAuditQuery(filter))).rows;
}

/** A session of an owner that was not used since it began. */
export const FRESH = { role: "owner", secretHash: null, lastSeenAt: null, hasOthers: false } as const;

/** Somebody who has signed up, and how they begin more sessions. */
export async function signedUp({ people }: Store) {
  const signUp = aSignUp();
  const { account, person, session } = signUp;
  await people.signUp(signUp);
  const begin = async (overrides: Parameters<typeof aSession>[0] = {}) => {
    const more = aSession({ personId: person.id, accountId: account.id, ...overrides });
    if (!(await people.addSession(more, person.passwordHash))) throw new Error("The session was refused.");
    return more;
  };
  return { person, session, account, accountId: account.id, begin };
}

/** The types of what happened to an action, oldest first. */
export async function happeningsOf(actions: ActionStore, { accountId, id }: Action): Promise<readonly string[]> {
  return (await actions.timeline(accountId, id)).map(({ event }) => event.type);
}

/** Lets so many turns of the event loop pass. */
export async function nextTurns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

/** Runs all of them at once, spread over so many turns of the event loop. */
export function racing<Item, Result>(
  items: readonly Item[],
  turns: number,
  run: (item: Item, at: number) => Promise<Result>,
): Promise<readonly Result[]> {
  return Promise.all(
    items.map(async (item, at) => {
      await nextTurns(at % turns);
      return run(item, at);
    }),
  );
}

/** As many attempts as make the oldest response go. */
export async function settleMany(actions: ActionStore): Promise<void> {
  let action = await createdAction(actions, { url: "https://many.example/", retries: 9 });
  for (let n = 0; n <= ATTEMPTS_KEPT; n += 1) action = await attempted(actions, action, answered(500, "{}"));
}

const RACING = 15;

/**
 * Runs the items in groups and the last of them at once, so that these race for what is left. Hundreds at once would wait for each other
 * longer than a busy machine is given for a commit.
 */
export async function racingAtLast<Item, Result>(
  items: readonly Item[],
  run: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const first = items.slice(0, -RACING);
  for (let at = 0; at < first.length; at += RACING) {
    results.push(...(await Promise.all(first.slice(at, at + RACING).map(run))));
  }
  return [...results, ...(await Promise.all(items.slice(-RACING).map(run)))];
}
