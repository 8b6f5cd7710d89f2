import type { Action } from "../actions/action.ts";

type Listener = (action: Action) => void;

/** The bus of one process. A listener must not throw and must not take long: it runs in the publisher's turn. */
export function createBus(): Bus {
  const all = new Set<Listener>();
  const byAction = new Map<string, Set<Listener>>();

  return {
    publish(action) {
      for (const listener of all) listener(action);
      for (const listener of byAction.get(action.id) ?? []) listener(action);
    },
    subscribe(listener) {
      all.add(listener);
      return () => void all.delete(listener);
    },
    watch(actionId, listener) {
      const listeners = byAction.get(actionId) ?? new Set();
      byAction.set(actionId, listeners.add(listener));
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && byAction.get(actionId) === listeners) byAction.delete(actionId);
      };
    },
  };
}

/** News that an action changed, after its commit. Memory only: whoever misses it finds the truth in the store. */
export interface Bus {
  publish(action: Action): void;
  /** Hears of every change; returns how to stop. */
  subscribe(listener: (action: Action) => void): () => void;
  /** Hears of one action; returns how to stop. */
  watch(actionId: string, listener: (action: Action) => void): () => void;
}
