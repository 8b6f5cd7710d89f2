import type { Action } from "../domain/action.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { type DecisionContext, NO_CONTEXT } from "../domain/decision-facts.ts";
import { hostOfKey } from "../domain/host-of-key.ts";
import { HELD_LISTED_MAX } from "../domain/limits.ts";
import type { Requester } from "../domain/requester.ts";
import type { ActionStore, HeldPage } from "../ports/store.ts";

/** What the store knows of some actions beside themselves, by their ids. */
export type Contexts = ReadonlyMap<string, DecisionContext>;

/** A page of what waits, with what is to be known of each. */
export interface Waiting extends HeldPage {
  readonly contexts: Contexts;
  /** Who has something waiting. */
  readonly requesters: readonly Requester[];
}

/**
 * What waits for a person, oldest first: whoever has waited longest is on top, and what comes meanwhile moves nothing
 * under the reader's hand. Of several keys that ask each has its turn on a page; with `keyId` it is what that key asks for.
 */
export function createHeld(actions: Pick<ActionStore, "held" | "requesters"> & ContextStore) {
  const contextsOf = createContextsOf(actions);
  return async (caller: Caller, after: string | null, keyId?: string): Promise<Waiting> => {
    authorize(caller, "read");
    const [page, requesters] = await Promise.all([
      actions.held(caller.accountId, after, HELD_LISTED_MAX, keyId),
      actions.requesters(caller.accountId),
    ]);
    return { ...page, requesters, contexts: await contextsOf(caller.accountId, page.actions) };
  };
}

type ContextStore = Pick<ActionStore, "approvedHosts" | "timeline">;

/** What is to be known of one action, for its facts. */
export type ContextOf = (action: Action) => Promise<DecisionContext>;

export function createContextOf(actions: ContextStore): ContextOf {
  const contextsOf = createContextsOf(actions);
  return async (action) => (await contextsOf(action.accountId, [action])).get(action.id) ?? NO_CONTEXT;
}

function createContextsOf(actions: ContextStore) {
  return async (accountId: string, some: readonly Action[]): Promise<Contexts> => {
    const approved = await actions.approvedHosts(accountId, some);
    const contexts = some.map(async (action) => {
      const told = action.run === 1 ? NO_CONTEXT : await runsBefore(actions, action);
      return [action.id, { ...told, isNewHost: !approved.has(hostOfKey(action)) }] as const;
    });
    return new Map(await Promise.all(contexts));
  };
}

/** What its timeline tells: who rejected a run before this one, and why this one was asked for. */
async function runsBefore(actions: ContextStore, { accountId, id, run }: Action): Promise<DecisionContext> {
  const entries = (await actions.timeline(accountId, id)).toReversed();
  const again = entries.find((entry) => entry.run === run && entry.happening.type === "retried")?.happening;
  return {
    isNewHost: false,
    reason: again?.type === "retried" ? (again.reason ?? null) : null,
    rejections: entries.flatMap(({ run: of, at, happening }) =>
      of < run && happening.type === "rejected"
        ? [{ at, actor: happening.actor, reason: happening.reason ?? null }]
        : [],
    ),
  };
}
