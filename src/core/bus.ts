import type { Action } from "./action.ts";

type Listener = (action: Action) => void;

interface Watched {
  readonly listeners: Set<Listener>;
  /** The newest revision that the listeners were told about; 0: none. */
  revision: number;
}

/** Announces changes of actions after their commit. In memory only: a missed change is still in the store. */
export type Bus = ReturnType<typeof createBus>;

/** The bus of one process. A listener must not throw and must return quickly: `publish` calls it synchronously. */
export function createBus() {
  const all = new Set<Listener>();
  const byAction = new Map<string, Watched>();

  const tellWatchers = (action: Action) => {
    const watched = byAction.get(action.id);
    if (watched === undefined) return;
    watched.revision = Math.max(watched.revision, action.revision);
    for (const listener of watched.listeners) listener(action);
  };
  /** Whether somebody watches the action and was not told about this revision or a later one. */
  const isNews = (actionId: string, revision: number) => (byAction.get(actionId)?.revision ?? revision) < revision;

  return {
    publish(action: Action): void {
      for (const listener of all) listener(action);
      tellWatchers(action);
    },
    /**
     * Tells only those who watch the action, and only if it is newer than what they know. For changes by another process, read
     * from the store.
     */
    relay(action: Action): void {
      if (isNews(action.id, action.revision)) tellWatchers(action);
    },
    isNews,
    /** Marks a revision as known to those who watch the action: it was read from the store and changes nothing for them. */
    saw(actionId: string, revision: number): void {
      const watched = byAction.get(actionId);
      if (watched !== undefined) watched.revision = Math.max(watched.revision, revision);
    },
    /** The ids of all actions that somebody watches. */
    watched: (): Iterable<string> => byAction.keys(),
    /** Calls the listener for every change; returns how to unsubscribe. */
    subscribe(listener: Listener): () => void {
      all.add(listener);
      return () => void all.delete(listener);
    },
    /** Calls the listener for changes of one action; returns how to unsubscribe. */
    watch(actionId: string, listener: Listener): () => void {
      const watched = byAction.get(actionId) ?? { listeners: new Set<Listener>(), revision: 0 };
      byAction.set(actionId, watched);
      watched.listeners.add(listener);
      return () => {
        watched.listeners.delete(listener);
        if (watched.listeners.size === 0 && byAction.get(actionId) === watched) byAction.delete(actionId);
      };
    },
  };
}
