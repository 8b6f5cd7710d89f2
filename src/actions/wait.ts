import type { AppContext } from "../runtime/app-context.ts";
import { type Action, isTerminal } from "../core/action.ts";
import { authorize, type Caller, holderId } from "../core/roles.ts";
import { notFound } from "../core/domain-error.ts";
import { StoreUnavailable } from "../core/store.ts";
import { WAITERS_PER_ACCOUNT_MAX } from "../core/limits.ts";
import { countByHolder, holderToEvict } from "../runtime/fair-share.ts";

interface WaitOptions {
  readonly waitMs: number;
  /** Aborted when the client disconnects or the service stops. It ends the wait, not the action. */
  readonly stop?: AbortSignal;
}

/**
 * Creates the wait for an action, which resolves when the action is final, or with its state at the deadline. It subscribes
 * before it reads, so that it misses no change, and reads the store again at the deadline. Beyond `WAITERS_PER_ACCOUNT_MAX`, it
 * ends the oldest wait of the key with the most waits, or answers at once if that is the caller's key. Throws `not_found`, and
 * `unauthorized` as soon as the caller's key is revoked.
 */
export function createWait({ clock, bus, store: { actions } }: AppContext) {
  const waiting = new Map<string, Set<Waiter>>();

  return async (caller: Caller, id: string, { waitMs, stop }: WaitOptions): Promise<Action> => {
    authorize(caller, "read");
    const { accountId } = caller;
    const read = async (): Promise<Action> => {
      const action = await actions.find(accountId, id);
      if (action === null) throw notFound("action");
      return action;
    };
    const waiters = waiting.get(accountId) ?? new Set();
    const end = Promise.withResolvers<Action | null>();
    const onStop = () => end.resolve(null);
    const waiter: Waiter = { holder: holderId(caller), end: onStop };
    if (waiters.size >= WAITERS_PER_ACCOUNT_MAX && !makeRoom(waiters, waiter.holder)) return read();

    waiting.set(accountId, waiters.add(waiter));
    const unwatch = bus.watch(id, (action) => isTerminal(action.status) && end.resolve(action));
    const cancelTimer = clock.after(waitMs, onStop);
    stop?.addEventListener("abort", onStop);
    caller.revoked?.addEventListener("abort", onStop);
    try {
      const now = await read();
      if (isTerminal(now.status) || stop?.aborted === true) return now;
      bus.saw(id, now.revision);
      const ended = await end.promise;
      // The key may have been revoked during the wait.
      authorize(caller, "read");
      return ended ?? (await read());
    } finally {
      unwatch();
      cancelTimer();
      stop?.removeEventListener("abort", onStop);
      caller.revoked?.removeEventListener("abort", onStop);
      waiters.delete(waiter);
      if (waiters.size === 0 && waiting.get(accountId) === waiters) waiting.delete(accountId);
    }
  };
}

/**
 * For the wait of a create: if the store goes away meanwhile, returns the action as it was created. An error would hide its id
 * and ask for the create again, which sends it twice if it has no key.
 */
export function createdIfAway(created: Action) {
  return (error: unknown): Action => {
    if (error instanceof StoreUnavailable) return created;
    throw error;
  };
}

interface Waiter {
  readonly holder: string;
  readonly end: () => void;
}

/** Ends the oldest wait of the key with the most waits. False: that is the caller's own key. */
function makeRoom(waiters: Set<Waiter>, holder: string): boolean {
  const victim = holderToEvict(countByHolder(waiters), holder);
  const oldest = waiters.values().find((waiter) => waiter.holder === victim);
  if (oldest === undefined) return false;
  waiters.delete(oldest);
  oldest.end();
  return true;
}
