import type { AuditEntry } from "../domain/audit.ts";
import type { Pause } from "../domain/pause.ts";
import type { Hold, KeyScope, Role } from "../domain/roles.ts";
import type { PauseEnd } from "./pauses.ts";
import type { WelcomeLink } from "./welcome-link.ts";

export interface Account {
  readonly id: string;
  /** Sealed by `Secrets`; signing secrets are derived from it. */
  readonly sealedRootSecret: string;
  readonly createdAt: Date;
}

/** An account as the operator of the service sees it. */
export interface ListedAccount {
  readonly id: string;
  /** Of its first person; null: it has none. */
  readonly email: string | null;
  readonly createdAt: Date;
  /** It is the one that the first start made. */
  readonly isFirst: boolean;
  /** Its keys do nothing, and nothing of it is sent, until it is allowed. */
  readonly isStopped: boolean;
  readonly allowedAt: Date | null;
}

/** The stop of the accounts that nobody has allowed. */
export interface AccountStop {
  readonly at: Date;
  /** Shown with everything of theirs that waits for that. */
  readonly reason: string;
}

/** What is written along with a key that has a hold. */
export interface HoldStop extends AccountStop {
  /** Written where the key is the first that has one. */
  readonly audit: AuditEntry;
}

/** An API key as it is kept: never the key itself. */
export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
  readonly scope: KeyScope;
  /** Id of the key whose actions were handed over to it. */
  readonly replaces: string | null;
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
  /** `stop`: in the same commit every account is stopped that nobody has allowed. */
  addKey(key: ApiKey, audit?: AuditEntry, stop?: HoldStop): Promise<void>;
  /**
   * The keys whose actions were handed over to one: the key that it replaces, the one that that replaced, and so on, at most
   * `REPLACED_KEYS_MAX`.
   */
  replacedBy(keyId: string): Promise<readonly string[]>;
  /** One key of an account, revoked or not. */
  findKey(accountId: string, keyId: string): Promise<ApiKey | null>;
  /** Whether the first account has, or had, a key with a hold. */
  hasHold(): Promise<boolean>;
  /** Stops every account but the first that nobody has allowed, and tells how many were not stopped before. */
  stopOthers(stop: AccountStop): Promise<number>;
  /** Those that are stopped first, then the newest; at most so many. */
  list(limit: number): Promise<readonly ListedAccount[]>;
  /** Allows an account, and ends its stop. One that is allowed already stays as it is. False: there is no such account. */
  allow(accountId: string, end: PauseEnd): Promise<boolean>;
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
