import { type Action, isTerminal } from "../domain/action.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import { WAITERS_PER_ACCOUNT_MAX } from "../domain/limits.ts";
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
 * that no change falls between; at the deadline it reads again, because memory is only a hint. Throws `unauthorized` as
 * soon as the caller's key is revoked.
 */
export function createWait({ actions, clock, bus }: WaitDeps) {
  const waiting = new Map<string, number>();

  return async (caller: Caller, id: string, { waitMs, stop }: Waiting): Promise<Action> => {
    authorize(caller, "read");
    const { accountId } = caller;
    const read = async (): Promise<Action> => {
      const action = await actions.find(accountId, id);
      if (action === null) throw new DomainError("not_found", "There is no such action.");
      return action;
    };
    const others = waiting.get(accountId) ?? 0;
    if (others >= WAITERS_PER_ACCOUNT_MAX) return read();

    waiting.set(accountId, others + 1);
    const end = Promise.withResolvers<Action | null>();
    const unwatch = bus.watch(id, (action) => isTerminal(action.status) && end.resolve(action));
    const unring = clock.after(waitMs, () => end.resolve(null));
    const onStop = () => end.resolve(null);
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
      unring();
      stop?.removeEventListener("abort", onStop);
      caller.revoked?.removeEventListener("abort", onStop);
      const left = (waiting.get(accountId) ?? 1) - 1;
      if (left === 0) waiting.delete(accountId);
      else waiting.set(accountId, left);
    }
  };
}
