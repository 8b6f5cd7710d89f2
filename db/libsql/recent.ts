import type { Action } from "../../src/domain/action.ts";

const ACTIONS_MAX = 2_000;
/** A larger body is read from the database when it is claimed, so that memory stays flat: 2,000 of these are 32 MiB. */
const BODY_CHARS_MAX = 16_384;

/**
 * Actions that were written a moment ago and will be claimed in the next. A revision never changes what it holds, so an
 * action of the revision that a claim won is that action: there is nothing here that could be out of date.
 */
export class WrittenActions {
  readonly #actions = new Map<string, Action>();

  /** Keeps a pending action as it was written, but for its last result: a claim does not show it, and it may be large. */
  keep(action: Action): void {
    if (action.dueAt === null || (action.body?.length ?? 0) > BODY_CHARS_MAX) return;
    this.#actions.set(action.id, { ...action, result: null });
    if (this.#actions.size <= ACTIONS_MAX) return;
    for (const oldest of this.#actions.keys()) {
      this.#actions.delete(oldest);
      return;
    }
  }

  /** Gives out an action of this very revision, once. */
  take(id: string, revision: number): Action | null {
    const action = this.#actions.get(id);
    if (action === undefined) return null;
    this.#actions.delete(id);
    return action.revision === revision ? action : null;
  }
}
