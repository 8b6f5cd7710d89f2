/** What the signing secrets of an account are derived from since a rotation (decisions 6). */
export interface SigningSeed {
  readonly id: string;
  readonly accountId: string;
  /** Null: the secrets of all origins. */
  readonly origin: string | null;
  /** Sealed by `Secrets`. */
  readonly sealedSeed: string;
  readonly rotatedAt: Date;
}

export interface SigningStore {
  /** Adds a seed and forgets those of the same origin that two newer ones have put out of use. */
  rotate(seed: SigningSeed): Promise<void>;
  /** The two seeds at most that an origin's secrets come from now, its own or those of all origins: the newest first. */
  seeds(accountId: string, origin: string): Promise<readonly SigningSeed[]>;
}
