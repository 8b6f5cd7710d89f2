/** An action that waits for a person. */
export interface HeldAction {
  readonly id: string;
  readonly accountId: string;
  /** The run that is held. */
  readonly run: number;
  readonly heldAt: Date;
}

/** One step of deleting what is old. */
export interface PruneStep {
  readonly deleted: number;
  /** Where the next step begins; null: everything has been looked at. */
  readonly next: string | null;
}

export interface PruneTimes {
  readonly now: Date;
  /** What finished at this time or before may go. */
  readonly finishedUntil: Date;
}

/** What the service does for itself by the clock. Each call is a bounded step that holds up nobody for long. */
export interface UpkeepStore {
  /**
   * Held actions that were created at this time or before, and perhaps some that are a little younger, by id, behind the
   * one given (empty: from the first).
   */
  held(createdUntil: Date, after: string, limit: number): Promise<readonly HeldAction[]>;
  /**
   * Deletes actions that finished at this time or before, with everything that hangs on them, behind the id given (empty:
   * from the first). Never one that is not finished, that still owes a notification or that an Idempotency-Key may still
   * mean, and never a position of the event stream that could be given out again.
   */
  prune(times: PruneTimes, after: string): Promise<PruneStep>;
}
