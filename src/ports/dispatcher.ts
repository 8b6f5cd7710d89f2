import type { Action } from "../domain/action.ts";
import type { Claimed } from "../domain/dispatch.ts";
import type { LaneName } from "./store.ts";

/** A slot held for an action that is about to be stored: it is claimed in the commit that creates it. */
export interface Reservation {
  readonly claim: Claimed;
  /** The action was stored and claimed: tells the bus of both and sends it. */
  commit(created: Action, claimed: Action): void;
  /** Nothing was claimed; the slot is free again. */
  release(): void;
  /** The store did not say whether the action is there and claimed; the slot is free again. */
  fail(action: Action): void;
}

/** What a create may ask of the engine. */
export interface Dispatcher {
  /**
   * A slot in the lane of this action, or null when others are before it, it is full, the action is large, or nothing is being
   * claimed now.
   */
  reserve(action: LaneName & { readonly id: string }, largeBytes: number | undefined): Reservation | null;
  /** Hears that what is paused of an account has changed. */
  pauseChanged(accountId: string): void;
}
