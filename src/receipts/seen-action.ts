import type { Action, Result } from "../core/action.ts";
import type { Viewer } from "../core/roles.ts";

/** A body of bytes as a viewer may see it. */
export interface SeenBytes {
  readonly size: number;
  /** Its beginning as text; null: it is no text, or hidden from this viewer. */
  readonly start: string | null;
  /** Whether `start` is all of it. */
  readonly isWhole: boolean;
}

/** A brand in types only. As a private member, it is lost in a copy by `...`, which could put back what was masked. */
declare class Seen {
  private readonly seen: never;
}

/** An action as somebody may see it, whole or masked. What renders actions takes nothing else. */
export type SeenAction = Action & Seen & Partial<Masked>;

export type MaskedAction = Action & Seen & Masked;

/** What a masked action says about its masks. */
interface Masked {
  readonly viewer: Viewer;
  /** How many values of the request are hidden. */
  readonly hiddenValues: number;
  /** How many of them are in its headers; left out: none. */
  readonly hiddenInHeaders?: number;
  /** The visible part of a body of bytes. */
  readonly bytes?: SeenBytes;
  /** The answers that were masked with it. */
  readonly answers?: readonly Result[];
}

/** A masked action without its brand, as it comes from the thread. */
export type MaskedMembers = Action & Masked;

/** The stored action of each masked one. */
const STORED = new WeakMap<SeenAction, Action>();

/** Brands the result of masking an action. Only masking may call it. */
export function markMasked(masked: MaskedMembers, stored: Action): MaskedAction {
  // Safe: the brand is in the type alone.
  const seen = masked as MaskedAction;
  STORED.set(seen, stored);
  return seen;
}

/** The stored action behind a seen one, to compute risks and sizes from real values. Never show it. */
export function storedAction(seen: SeenAction): Action {
  return STORED.get(seen) ?? seen;
}

/** A copy with other members, which must be as the reader may see them. */
export function seenWith<Seen extends SeenAction>(seen: Seen, members: Partial<Action>): Seen {
  const copy = Object.assign({}, seen, members);
  STORED.set(copy, storedAction(seen));
  return copy;
}
