import type { Action } from "../core/action.ts";
import type { Viewer } from "../core/roles.ts";

/** A body of bytes as a viewer may see it. */
export interface SeenBytes {
  readonly size: number;
  /** Its beginning as text; null: it is no text, or not for this viewer. */
  readonly start: string | null;
  /** Whether `start` is all of it. */
  readonly isWhole: boolean;
}

/** No value has it. A private member is lost in a copy by `...`, which could put back what was masked. */
declare class Seen {
  private readonly seen: never;
}

/** An action as somebody may see it, whole or masked. What renders actions takes nothing else. */
export type SeenAction = Action & Seen & Partial<Masked>;

export type MaskedAction = Action & Seen & Masked;

/** What is said of a masked action. */
interface Masked {
  readonly viewer: Viewer;
  /** How many values of the request are hidden. */
  readonly hiddenValues: number;
  /** How many of them are in its headers; left out: none. */
  readonly hiddenInHeaders?: number;
  /** What of a body of bytes may be seen. */
  readonly bytes?: SeenBytes;
}

/** A masked action before it is marked as one, as it comes from the thread. */
export type MaskedMembers = Action & Masked;

/** The actions that were masked, by the result. */
const STORED = new WeakMap<SeenAction, Action>();

/** Marks what masking has made of an action. Nothing else may call it. */
export function markMasked(masked: MaskedMembers, stored: Action): MaskedAction {
  // Safe: the brand is in the type alone.
  const seen = masked as MaskedAction;
  STORED.set(seen, stored);
  return seen;
}

/** The action for whoever may see all of it: its creator, or a person who asked to see its secrets. */
export function seeWhole(action: Action): SeenAction {
  // Safe: the brand is in the type alone.
  return action as SeenAction;
}

/** The action that it was made of: for what is computed from real values, such as risks and sizes, and never to show it. */
export function storedOf(seen: SeenAction): Action {
  return STORED.get(seen) ?? seen;
}

/** The same with other members, which have to be as the reader may see them. */
export function seenWith<Seen extends SeenAction>(seen: Seen, members: Partial<Action>): Seen {
  const copy = Object.assign({}, seen, members);
  STORED.set(copy, storedOf(seen));
  return copy;
}
