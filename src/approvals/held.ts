import type { Action } from "../actions/action.ts";
import { authorize, type Caller } from "../accounts/roles.ts";
import { type DecisionHistory, NO_HISTORY, hostOfKey } from "./facts.ts";
import { HELD_COUNTED_MAX, HELD_HEADS_MAX, HELD_LISTED_MAX, HELD_REQUESTERS_SHOWN_MAX } from "../config/limits.ts";
import { firstActionId } from "../runtime/ids.ts";
import { rejectionDigest, type RejectionStore } from "./rejections.ts";
import type { HashOf } from "../actions/dedupe.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Log } from "../observability/log.ts";
import type { ActionStore, HeldHead, HeldPage, Requester } from "../../db/store.ts";

/** Says in the log that an action waits for a person: the one event of its life that somebody must act on. */
export function logHeld(log: Pick<Log, "info">, { id, accountId, method, host, run, keyId }: Action): void {
  log.info("action.held", { action_id: id, account_id: accountId, method, host, run, key_id: keyId });
}

/** Histories by action id. */
type Histories = ReadonlyMap<string, DecisionHistory>;

/** Which requests of the inbox to show. Null: all. */
export interface InboxFilter {
  /** Empty: of no key. */
  readonly keyId: string | null;
  readonly host: string | null;
  /** Created before this time. */
  readonly before: Date | null;
}

/** How many requests wait, by some property of theirs. */
export interface WaitingCount {
  readonly host: string;
  readonly count: number;
}

/** A page of the inbox. */
export interface Inbox extends HeldPage {
  readonly histories: Histories;
  /** The keys with held actions. */
  readonly requesters: readonly Requester[];
  /** The hosts of the oldest `HELD_HEADS_MAX`, those with the most requests first. */
  readonly hosts: readonly WaitingCount[];
  /** How many the account has, up to `HELD_COUNTED_MAX`. */
  readonly total: number;
  /** How many the filter finds among the oldest `HELD_HEADS_MAX`. */
  readonly matching: number;
}

/**
 * One page of held actions, oldest first, so that new ones never move those that the reader is looking at. Several keys
 * take turns on a page; a filter by host or age looks at the oldest `HELD_HEADS_MAX`.
 */
export function createHeld(
  deps: HistoryDeps & {
    readonly actions: Pick<ActionStore, "held" | "requesters" | "heldHeads" | "heldTotal" | "heldAmong">;
  },
) {
  const { actions } = deps;
  const historiesOf = createHistoriesOf(deps);
  return async ({ accountId, ...caller }: Caller, after: string | null, filter: InboxFilter): Promise<Inbox> => {
    authorize({ accountId, ...caller }, "read");
    const [heads, total, requesters] = await Promise.all([
      actions.heldHeads(accountId, HELD_HEADS_MAX),
      actions.heldTotal(accountId, HELD_COUNTED_MAX),
      actions.requesters(accountId),
    ]);
    const matching = heads.filter((head) => isWithin(head, filter));
    const isByKey = filter.host === null && filter.before === null;
    const page = isByKey
      ? await actions.held(accountId, after, HELD_LISTED_MAX, filter.keyId ?? undefined)
      : await pageOf(actions, accountId, matching, after);
    const counts = Map.groupBy(heads, ({ host }) => host);
    const hosts = Array.from(counts, ([host, { length: count }]) => ({ host, count }));
    return {
      ...page,
      total,
      matching: matching.length,
      requesters,
      hosts: hosts.toSorted((a, b) => b.count - a.count).slice(0, HELD_REQUESTERS_SHOWN_MAX),
      histories: await historiesOf(accountId, page.actions),
    };
  };
}

function isWithin({ id, keyId, host }: HeldHead, filter: InboxFilter): boolean {
  if (filter.keyId !== null && filter.keyId !== keyId) return false;
  if (filter.host !== null && filter.host !== host) return false;
  // Ids are in the order of their times.
  return filter.before === null || id < firstActionId(filter.before);
}

async function pageOf(
  actions: Pick<ActionStore, "heldAmong">,
  accountId: string,
  matching: readonly HeldHead[],
  after: string | null,
): Promise<HeldPage> {
  const ids = matching.flatMap(({ id }) => (id > (after ?? "") ? [id] : []));
  const found = await actions.heldAmong(accountId, ids.slice(0, HELD_LISTED_MAX));
  // All of them may have been decided meanwhile.
  const last = found.at(-1)?.id ?? ids.at(HELD_LISTED_MAX - 1) ?? null;
  return { actions: found, after: last !== null && ids.some((id) => id > last) ? last : null };
}

/** Those of the requests that still wait, with their histories, oldest first. */
export function createHeldAmong(deps: HistoryDeps & { readonly actions: Pick<ActionStore, "heldAmong"> }) {
  const historiesOf = createHistoriesOf(deps);
  return async (caller: Caller, ids: readonly string[]): Promise<Pick<Inbox, "actions" | "histories">> => {
    authorize(caller, "read");
    const actions = await deps.actions.heldAmong(caller.accountId, ids);
    return { actions, histories: await historiesOf(caller.accountId, actions) };
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
