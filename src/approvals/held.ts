import type { Action } from "../actions/action.ts";
import { authorize, type Caller } from "../accounts/roles.ts";
import { type DecisionHistory, NO_HISTORY, hostOfKey } from "./facts.ts";
import { HELD_LISTED_MAX } from "../config/limits.ts";
import { rejectionDigest, type RejectionStore } from "./rejections.ts";
import type { HashOf } from "../actions/dedupe.ts";
import type { Clock } from "../runtime/clock.ts";
import type { ActionStore, HeldPage, Requester } from "../../db/store.ts";

/** Histories by action id. */
type Histories = ReadonlyMap<string, DecisionHistory>;

/** A page of the inbox. */
interface Inbox extends HeldPage {
  readonly histories: Histories;
  /** The keys with held actions. */
  readonly requesters: readonly Requester[];
}

/**
 * One page of held actions, oldest first, so that new ones never move those that the reader is looking at. Several keys
 * take turns on a page; with `keyId` it lists the actions of that key alone.
 */
export function createHeld(deps: HistoryDeps & { readonly actions: Pick<ActionStore, "held" | "requesters"> }) {
  const { actions } = deps;
  const historiesOf = createHistoriesOf(deps);
  return async (caller: Caller, after: string | null, keyId?: string): Promise<Inbox> => {
    authorize(caller, "read");
    const [page, requesters] = await Promise.all([
      actions.held(caller.accountId, after, HELD_LISTED_MAX, keyId),
      actions.requesters(caller.accountId),
    ]);
    return { ...page, requesters, histories: await historiesOf(caller.accountId, page.actions) };
  };
}

export interface HistoryDeps {
  readonly actions: Pick<ActionStore, "approvedHosts">;
  readonly rejections: Pick<RejectionStore, "earlier">;
  readonly clock: Clock;
  readonly hashOf: HashOf;
}

/** Reads the history of one action. It does not authorize: the caller has to. */
export type HistoryOf = (action: Action) => Promise<DecisionHistory>;

export function createHistoryOf(deps: HistoryDeps): HistoryOf {
  const historiesOf = createHistoriesOf(deps);
  return async (action) => (await historiesOf(action.accountId, [action])).get(action.id) ?? NO_HISTORY;
}

function createHistoriesOf({ actions, rejections, clock, hashOf }: HistoryDeps) {
  return async (accountId: string, some: readonly Action[]): Promise<Histories> => {
    const now = clock.now();
    const [approved, requests] = await Promise.all([
      actions.approvedHosts(accountId, some),
      Promise.all(some.map((action) => rejections.earlier(action, rejectionDigest(action, hashOf), now))),
    ]);
    const histories = some.map((action, at) => {
      return [action.id, { ...NO_HISTORY, ...requests[at], isNewHost: !approved.has(hostOfKey(action)) }] as const;
    });
    return new Map(histories);
  };
}
