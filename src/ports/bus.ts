import type { Action } from "../domain/action.ts";

/** News that an action changed, after its commit. Memory only: whoever misses it finds the truth in the store. */
export interface Bus {
  publish(action: Action): void;
  /** Hears of every change; returns how to stop. */
  subscribe(listener: (action: Action) => void): () => void;
  /** Hears of one action; returns how to stop. */
  watch(actionId: string, listener: (action: Action) => void): () => void;
}
