import type { ApiKey } from "./account-store.ts";
import type { AuditEntry } from "./audit.ts";
import type { Actor } from "./roles.ts";

/** What the authorization server stores, by the names that `oidc-provider` gives its models. */
export const OAUTH_KINDS = [
  "Interaction",
  "Grant",
  "AuthorizationCode",
  "AccessToken",
  "RefreshToken",
  "Client",
  "ReplayDetection",
] as const;

export type OAuthKind = (typeof OAUTH_KINDS)[number];

/**
 * One artifact of the authorization server: a login that waits for consent, a connection (`Grant`), a code, a token, a client
 * that registered itself or that an account has added, or an assertion that a client has signed and may send once. It is stored
 * by a hash, so that nobody who reads the table can use it.
 */
export interface OAuthArtifact {
  /** Hash of its kind and its secret. */
  readonly id: string;
  readonly kind: OAuthKind;
  /** Empty: it belongs to no account, such as a client that registered itself. */
  readonly accountId: string;
  /** The key that the connection is; null: not known yet. */
  readonly keyId: string | null;
  /** The `id` of its connection; null: it belongs to none. */
  readonly grantId: string | null;
  readonly sealedPayload: string;
  readonly createdAt: Date;
  /** When it was used, for what may be used once; null: not yet. */
  readonly consumedAt: Date | null;
  readonly expiresAt: Date;
}

/** The connection that an access token belongs to. */
export interface TokenKey {
  readonly key: ApiKey;
  readonly expiresAt: Date;
}

export interface OAuthStore {
  /**
   * Writes an artifact, or replaces the one with its id. Beyond a bound, the oldest of a connection or an account are deleted.
   * False, and nothing is written: its connection has ended, there are `OAUTH_CLIENTS_MAX` clients that are new or connected,
   * the key of a new connection was revoked or its maker no longer owns the account, or it is an assertion that was stored
   * before, since each may be used once.
   */
  put(artifact: OAuthArtifact): Promise<boolean>;
  /** Finds an artifact, even a consumed or expired one, until it is pruned. */
  find(id: string): Promise<OAuthArtifact | null>;
  /** Uses an artifact that may be used once. False: it was used before, or is gone. Of racing uses, one gets true. */
  consume(id: string, at: Date): Promise<boolean>;
  remove(id: string): Promise<void>;
  /** Ends a connection: its artifacts are deleted and its key is revoked. Null: there is no such connection. */
  endGrant(grantId: string, end: ConnectionEnd): Promise<ApiKey | null>;
  /** The key of an access token that has not expired. The key may be revoked or expired: the caller must check. */
  keyByToken(id: string, now: Date): Promise<TokenKey | null>;
  /** The connections of an account whose keys are not revoked, newest first. */
  connections(accountId: string, now: Date): Promise<readonly OAuthArtifact[]>;
  /** Adds a client of an account. False: the account has `OAUTH_CLIENTS_PER_ACCOUNT_MAX`. */
  addClient(client: OAuthArtifact, audit: AuditEntry): Promise<boolean>;
  /** The clients that an account has added, oldest first. */
  clients(accountId: string): Promise<readonly OAuthArtifact[]>;
  /** Replaces the contents of a client of an account. False: there is none. */
  changeClient(client: OAuthArtifact, audit: AuditEntry): Promise<boolean>;
  /** Removes a client of an account, not its connections. False: there was none. */
  removeClient(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
  /** Deletes what has expired, and revokes keys of connections whose code nobody has fetched or used; true when there are more. */
  prune(now: Date): Promise<boolean>;
}

interface ConnectionEnd {
  readonly at: Date;
  readonly by: Actor;
  readonly audit: AuditEntry;
}
