import type { Connection } from "../commands/command.ts";
import type { HeaderSeal, OnUnreadable } from "./rows.ts";
import { type Action, largeBytesOf } from "../../src/core/action.ts";

/** What those of actions have besides. */
export interface StoreContext extends Connection {
  readonly seal: HeaderSeal;
  readonly written: WrittenActions;
  readonly onUnreadable: OnUnreadable;
}

/** 32 MiB at most: large actions are read again at the claim. */
const WRITTEN_ACTIONS_MAX = 2_000;

/**
 * Actions that were just written and will be claimed next: reading them back, and opening their headers, would cost more
 * than the rest of a claim (0.04 of the bench's share). A revision never changes, so an entry of the claimed one is never stale.
 */
export class WrittenActions {
  readonly #actions = new Map<string, Action>();

  /** Keeps a pending action without its last result, which a claim does not return and which may be large. */
  keep(action: Action): void {
    if (action.dueAt === null || largeBytesOf(action) !== undefined) return;
    this.#actions.set(action.id, action.result === null ? action : { ...action, result: null });
    if (this.#actions.size <= WRITTEN_ACTIONS_MAX) return;
    for (const oldest of this.#actions.keys()) {
      this.#actions.delete(oldest);
      return;
    }
  }

  /** Removes and returns an action of exactly this revision. */
  take(id: string, revision: number): Action | null {
    const action = this.#actions.get(id);
    if (action === undefined) return null;
    this.#actions.delete(id);
    return action.revision === revision ? action : null;
  }
}
