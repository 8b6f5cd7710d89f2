import type { SigningUse } from "../domain/signing-use.ts";
import type { AuditEntry } from "../domain/audit.ts";

/** What the signing secrets of an account are derived from since a rotation (decisions 6). */
export interface SigningSeed {
  readonly id: string;
  readonly accountId: string;
  /** Null: the secrets of all origins. */
  readonly origin: string | null;
  /** Null, of all origins only: the secrets of calls and of callbacks. */
  readonly use: SigningUse | null;
  /** Sealed by `Secrets`. */
  readonly sealedSeed: string;
  readonly rotatedAt: Date;
}

export interface SigningStore {
  /** Adds a seed and forgets those of the same place that two newer ones have put out of use. */
  rotate(seed: SigningSeed, audit?: AuditEntry): Promise<void>;
  /** The two seeds at most that an origin's secrets come from now, its own or those of all origins: the newest first. */
  seeds(accountId: string, origin: string, use: SigningUse): Promise<readonly SigningSeed[]>;
  /**
   * Until when the secret of calls signs callbacks to an origin too, because it got some while that was the only secret;
   * null: it never did.
   */
  callbackOverlap(accountId: string, origin: string): Promise<Date | null>;
}
