import { type HeldFilter, hostOfKey, NO_FILTER } from "../core/store.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { createYield } from "../runtime/fair-share.ts";
import type { Action } from "../core/action.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { type DecisionHistory, NO_HISTORY } from "./facts.ts";
import type { CredentialState, KeyEnd } from "./risks.ts";
import { HELD_COUNTED_MAX, HELD_HOSTS_SHOWN_MAX, HELD_LISTED_MAX } from "../core/limits.ts";
import { requestDigests } from "../core/rejections.ts";
import type { HashText } from "../core/dedupe.ts";
import type { Log } from "../observability/log.ts";
import type { ApiKey } from "../core/account-store.ts";

/** Logs that an action awaits approval: the one event of its life on which somebody must act. */
export function logHeld(log: Pick<Log, "info">, { id, accountId, method, host, run, keyId }: Action): void {
  log.info("action.held", { action_id: id, account_id: accountId, method, host, run, key_id: keyId });
}

/** Histories by action id. */
type Histories = ReadonlyMap<string, DecisionHistory>;

/** Reads the history of one action. It does not authorize; the caller must. */
export type ReadHistory = (action: Action) => Promise<DecisionHistory>;

export type Held = ReturnType<typeof createHeld>;

/** A page of the inbox. */
export type Inbox = Awaited<ReturnType<Held["held"]>>;

/** Reads held actions with their histories. */
export function createHeld(
  { clock, store }: AppContext,
  hashText: HashText,
  credentials: { readonly findCredentialState: (action: Action) => CredentialState | null },
) {
  const { actions, accounts, rejections } = store;
  const readHistories = async (accountId: string, some: readonly Action[]): Promise<Histories> => {
    const now = clock.now();
    const yieldTurn = createYield(clock);
    const known: (readonly [Action, ReturnType<typeof requestDigests>])[] = [];
    for (const action of some) {
      known.push([action, requestDigests(action, hashText)]);
      await yieldTurn();
    }
    const countRequest = async ([action, digests]: (typeof known)[number]) => {
      const { keyId } = action;
      const [earlier, similarRejections] = await Promise.all([
        rejections.earlier(action, digests.digest, now),
        rejections.similar({ accountId, keyId, ...digests }, now),
      ]);
      return { ...earlier, similarRejections };
    };
    const keyIds = [...new Set(some.map(({ keyId }) => keyId).filter((keyId) => keyId !== ""))];
    const [approved, requests, keys] = await Promise.all([
      actions.approvedHosts(accountId, some),
      Promise.all(known.map(countRequest)),
      Promise.all(keyIds.map((keyId) => accounts.findKey(accountId, keyId))),
    ]);
    const ends = new Map(keys.map((key, at) => [keyIds[at], key === null ? null : findKeyEnd(key, now)]));
    const histories = some.map((action, at) => {
      const isNewHost = !approved.has(hostOfKey(action));
      const keyEnd = ends.get(action.keyId) ?? null;
      return [
        action.id,
        { ...NO_HISTORY, ...requests[at], isNewHost, keyEnd, credentialState: credentials.findCredentialState(action) },
      ] as const;
    });
    return new Map(histories);
  };

  const readHistory: ReadHistory = async (action) =>
    (await readHistories(action.accountId, [action])).get(action.id) ?? NO_HISTORY;

  return {
    readHistory,

    /**
     * One page of held actions, oldest first, so that new ones never move those that the reader is looking at. On a page,
     * several keys take turns.
     */
    async held(caller: Caller, after: string | null, filter: HeldFilter) {
      authorize(caller, "read");
      const { accountId } = caller;
      const isAll = filter.keyId === null && filter.host === null && filter.before === null;
      const [page, total, found, requesters, hosts] = await Promise.all([
        actions.held(accountId, after, HELD_LISTED_MAX, filter),
        actions.heldTotal(accountId, NO_FILTER, HELD_COUNTED_MAX),
        isAll ? null : actions.heldTotal(accountId, filter, HELD_COUNTED_MAX),
        actions.requesters(accountId),
        actions.heldHosts(accountId),
      ]);
      return {
        ...page,
        // `total` and `matching` are counted up to `HELD_COUNTED_MAX`.
        total,
        matching: found ?? total,
        /** The keys with held actions. */
        requesters,
        /** The hosts with held actions, most first. */
        hosts: hosts.slice(0, HELD_HOSTS_SHOWN_MAX).toSorted((a, b) => b.count - a.count),
        hasMoreHosts: hosts.length > HELD_HOSTS_SHOWN_MAX,
        histories: await readHistories(accountId, page.actions),
      };
    },

    /** Which of these actions are still held, oldest first, with their histories. */
    async heldAmong(caller: Caller, ids: readonly string[]) {
      authorize(caller, "read");
      const found = await actions.heldAmong(caller.accountId, ids);
      return { actions: found, histories: await readHistories(caller.accountId, found) };
    },
  };
}

/** How a key has ended; null: it is live. */
function findKeyEnd({ revokedAt, revokedBy, expiresAt }: ApiKey, now: Date): KeyEnd | null {
  if (revokedAt !== null) return { kind: "revoked", by: revokedBy, agoMs: now.getTime() - revokedAt.getTime() };
  if (expiresAt === null || expiresAt > now) return null;
  return { kind: "expired", by: null, agoMs: now.getTime() - expiresAt.getTime() };
}
