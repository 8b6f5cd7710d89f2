import type { AuditEntry } from "../domain/audit.ts";
import type { Pause } from "../domain/pause.ts";
import type { Hold, Role } from "../domain/roles.ts";
import type { WelcomeLink } from "./welcome-link.ts";

export interface Account {
  readonly id: string;
  /** Sealed by `Secrets`; signing secrets are derived from it. */
  readonly sealedRootSecret: string;
  readonly createdAt: Date;
}

/** An API key as it is kept: never the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
  /** SHA-256 of the key, hex. */
  readonly hash: string;
  readonly last4: string;
  readonly createdAt: Date;
  readonly lastUsedAt: Date | null;
  readonly revokedAt: Date | null;
}

/** What is written along with the end of a key. */
export interface Revocation {
  readonly audit?: AuditEntry;
  readonly pause?: { readonly pause: Pause; readonly audit: AuditEntry };
}

/** What the very first account begins with beside its keys. */
export interface FirstAccountExtras {
  /** Makes the account's first person. */
  readonly link: WelcomeLink;
  /** Facts of the store, by name. */
  readonly facts: Readonly<Record<string, string>>;
  /** What the audit log tells of it. */
  readonly audit: readonly AuditEntry[];
}

export interface AccountStore {
  /** The account that the first start made; null before it. */
  first(): Promise<Account | null>;
  find(accountId: string): Promise<Account | null>;
  /** Account, keys and extras in one commit: a crash leaves all of them or none. */
  create(account: Account, keys: readonly ApiKey[], extras?: FirstAccountExtras): Promise<void>;
  addKey(key: ApiKey, audit?: AuditEntry): Promise<void>;
  /** Revoked keys too; the caller judges. */
  keyByHash(hash: string): Promise<ApiKey | null>;
  keyUsed(keyId: string, at: Date): Promise<void>;
  /** Keys of an account: the live ones first, then the revoked, each in the order of time; at most so many. */
  keys(accountId: string, limit: number): Promise<readonly ApiKey[]>;
  /**
   * Revokes a key of this account, for good, and returns it; one that was revoked keeps its time. Null: no such key. What it
   * left unfinished is paused in the same commit where a pause is given, unless it is paused already.
   */
  revokeKey(accountId: string, keyId: string, at: Date, more?: Revocation): Promise<ApiKey | null>;
}
