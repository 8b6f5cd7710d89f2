import type { Action } from "../actions/action.ts";
import { authorize, type Caller } from "../accounts/roles.ts";
import { type DecisionHistory, NO_HISTORY, hostOfKey } from "./facts.ts";
import { HELD_LISTED_MAX } from "../config/limits.ts";
import { rejectionDigest, type RejectionStore } from "./rejections.ts";
import type { HashOf } from "../actions/dedupe.ts";
import type { Requester } from "./creator.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ActionStore, HeldPage } from "../../db/store.ts";

/** What the store knows of some actions beside themselves, by their ids. */
type Contexts = ReadonlyMap<string, DecisionHistory>;

/** A page of what waits, with what is to be known of each. */
interface Waiting extends HeldPage {
  readonly contexts: Contexts;
  /** Who has something waiting. */
  readonly requesters: readonly Requester[];
}

/**
 * What waits for a person, oldest first: whoever has waited longest is on top, and what comes meanwhile moves nothing
 * under the reader's hand. Of several keys that ask each has its turn on a page; with `keyId` it is what that key asks for.
 */
export function createHeld(deps: ContextDeps & { readonly actions: Pick<ActionStore, "held" | "requesters"> }) {
  const { actions } = deps;
  const historiesOf = createHistoriesOf(deps);
  return async (caller: Caller, after: string | null, keyId?: string): Promise<Waiting> => {
    authorize(caller, "read");
    const [page, requesters] = await Promise.all([
      actions.held(caller.accountId, after, HELD_LISTED_MAX, keyId),
      actions.requesters(caller.accountId),
    ]);
    return { ...page, requesters, contexts: await historiesOf(caller.accountId, page.actions) };
  };
}

export interface ContextDeps {
  readonly actions: Pick<ActionStore, "approvedHosts">;
  readonly rejections: Pick<RejectionStore, "earlier">;
  readonly clock: Clock;
  readonly hashOf: HashOf;
}

/** What is to be known of one action, for its facts. Who may see it is for the caller to have asked. */
export type ContextOf = (action: Action) => Promise<DecisionHistory>;

export function createContextOf(deps: ContextDeps): ContextOf {
  const historiesOf = createHistoriesOf(deps);
  return async (action) => (await historiesOf(action.accountId, [action])).get(action.id) ?? NO_HISTORY;
}

function createHistoriesOf({ actions, rejections, clock, hashOf }: ContextDeps) {
  return async (accountId: string, some: readonly Action[]): Promise<Contexts> => {
    const now = clock.now();
    const [approved, histories] = await Promise.all([
      actions.approvedHosts(accountId, some),
      Promise.all(some.map((action) => rejections.earlier(action, rejectionDigest(action, hashOf), now))),
    ]);
    const contexts = some.map((action, at) => {
      return [action.id, { ...NO_HISTORY, ...histories[at], isNewHost: !approved.has(hostOfKey(action)) }] as const;
    });
    return new Map(contexts);
  };
}
