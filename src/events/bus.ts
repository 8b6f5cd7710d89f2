import type { Action } from "../domain/action.ts";
import type { Bus } from "../ports/bus.ts";

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
