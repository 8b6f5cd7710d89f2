import { type Action, isTerminal } from "../domain/action.ts";
import { authorize, type Caller, holderOf } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import { WAITERS_PER_ACCOUNT_MAX } from "../domain/limits.ts";
import { countByHolder, whoMakesRoom } from "../domain/share.ts";
import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { ActionStore } from "../ports/store.ts";

export interface WaitDeps {
  readonly actions: ActionStore;
  readonly clock: Clock;
  readonly bus: Bus;
}

export interface Waiting {
  readonly waitMs: number;
  /** The caller went away, or the service stops: the wait ends, the action does not. */
  readonly stop?: AbortSignal;
}

/**
 * Resolves when the action is final, or with what it is when the wait is over. It subscribes first and reads second, so
 * that no change falls between; at the deadline it reads again, because memory is only a hint. Where the account has no
 * place left the key with the most makes room for one with few: its oldest wait is over at once, and so is this one where
 * there is none. Throws `unauthorized` as soon as the caller's key is revoked.
 */
export function createWait({ actions, clock, bus }: WaitDeps) {
  const waiting = new Map<string, Set<Waiter>>();

  return async (caller: Caller, id: string, { waitMs, stop }: Waiting): Promise<Action> => {
    authorize(caller, "read");
    const { accountId } = caller;
    const read = async (): Promise<Action> => {
      const action = await actions.find(accountId, id);
      if (action === null) throw new DomainError("not_found", "There is no such action.");
      return action;
    };
    const waiters = waiting.get(accountId) ?? new Set();
    const end = Promise.withResolvers<Action | null>();
    const onStop = () => end.resolve(null);
    const waiter: Waiter = { holder: holderOf(caller), end: onStop };
    if (waiters.size >= WAITERS_PER_ACCOUNT_MAX && !makeRoom(waiters, waiter.holder)) return read();

    waiting.set(accountId, waiters.add(waiter));
    const unwatch = bus.watch(id, (action) => isTerminal(action.status) && end.resolve(action));
    const cancelTimer = clock.after(waitMs, onStop);
    stop?.addEventListener("abort", onStop);
    caller.revoked?.addEventListener("abort", onStop);
    try {
      const now = await read();
      if (isTerminal(now.status) || stop?.aborted === true) return now;
      const ended = await end.promise;
      // By now the key may be worth nothing, and then it is shown nothing.
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

interface Waiter {
  readonly holder: string;
  readonly end: () => void;
}

/** Ends the oldest wait of whoever has the most, or tells that nobody has too many. */
function makeRoom(waiters: Set<Waiter>, holder: string): boolean {
  const victim = whoMakesRoom(countByHolder(waiters), holder);
  const oldest = waiters.values().find((waiter) => waiter.holder === victim);
  if (oldest === undefined) return false;
  waiters.delete(oldest);
  oldest.end();
  return true;
}
