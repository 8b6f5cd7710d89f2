import type { Action } from "../actions/action.ts";

type Listener = (action: Action) => void;

/** The bus of one process. A listener must not throw and must return quickly: `publish` calls it synchronously. */
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

/** Announces changes of actions after their commit. In memory only: a missed change is still in the store. */
export interface Bus {
  publish(action: Action): void;
  /** Calls the listener for every change; returns how to unsubscribe. */
  subscribe(listener: (action: Action) => void): () => void;
  /** Calls the listener for changes of one action; returns how to unsubscribe. */
  watch(actionId: string, listener: (action: Action) => void): () => void;
}
