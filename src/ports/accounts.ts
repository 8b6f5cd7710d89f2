import type { Hold, Role } from "../domain/roles.ts";

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

export interface AccountStore {
  /** The account that the first start made; null before it. */
  first(): Promise<Account | null>;
  find(accountId: string): Promise<Account | null>;
  /** Account and keys in one commit: a crash leaves all of them or none. */
  create(account: Account, keys: readonly ApiKey[]): Promise<void>;
  addKey(key: ApiKey): Promise<void>;
  /** Revoked keys too; the caller judges. */
  keyByHash(hash: string): Promise<ApiKey | null>;
  keyUsed(keyId: string, at: Date): Promise<void>;
  /** Keys of an account: the live ones first, then the revoked, each in the order of time; at most so many. */
  keys(accountId: string, limit: number): Promise<readonly ApiKey[]>;
  /** Revokes a key of this account, for good, and returns it; one that was revoked keeps its time. Null: no such key. */
  revokeKey(accountId: string, keyId: string, at: Date): Promise<ApiKey | null>;
}
