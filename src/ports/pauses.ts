import type { Actor } from "../domain/actor.ts";
import type { AuditEntry } from "../domain/audit.ts";
import type { Pause } from "../domain/pause.ts";

/** How a pause ends. */
export interface PauseEnd {
  readonly at: Date;
  readonly by: Actor;
  readonly audit: AuditEntry;
}

/** What became of a pause: made, found in force already, or refused. */
export type Paused =
  | { readonly kind: "paused" | "found"; readonly pause: Pause }
  | { readonly kind: "no_such_key" | "too_many" };

/** What a key has left behind. */
export interface Unfinished {
  /** Actions that are neither final nor with their target: waiting to be sent, or for a person. */
  readonly ids: readonly string[];
  /** Some are being sent in this moment, and may come back. */
  readonly isSending: boolean;
}

/** What owners have stopped. From the commit of a pause on nothing that it covers is claimed. */
export interface PauseStore {
  /** Of one subject one is in force at most. Of a key only where the account has it. */
  pause(pause: Pause, audit: AuditEntry): Promise<Paused>;
  /** Ends a pause; one that has ended stays as it is. False: the account has none of this id. */
  end(accountId: string, id: string, end: PauseEnd): Promise<boolean>;
  find(accountId: string, id: string): Promise<Pause | null>;
  /** Those in force, of one account or of all, oldest first. */
  inForce(accountId: string | null): Promise<readonly Pause[]>;
  /** Every pause that ever covered an action, oldest first; beyond `PAUSES_TOLD_MAX` the newest. */
  ofAction(accountId: string, actionId: string): Promise<readonly Pause[]>;
  /** What a key of an account has left unfinished, so many at most. */
  unfinished(accountId: string, keyId: string, limit: number): Promise<Unfinished>;
  /** Forgets pauses that ended at this time or before, some at a time; true when there may be more. */
  prune(endedUntil: Date): Promise<boolean>;
}
