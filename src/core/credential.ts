import { type CachedSettingsStore, AccountCache } from "./account-settings.ts";
import type { AuditEntry } from "./audit.ts";
import type { Actor, Role, Caller } from "./roles.ts";
import { DAY_MS } from "./limits.ts";
import type { HttpMethod } from "./target.ts";
import type { CredentialAlert, NewNotification } from "./notification-events.ts";

/** How long before its end people are notified. */
const CREDENTIAL_ALERT_MS = 7 * DAY_MS;

/** Where a credential may go. */
export interface CredentialBounds {
  /** Hosts as they are sent, with the port unless it is the scheme's default; `*.example.com` is every name below it. */
  readonly hosts: readonly string[];
  /** Prefixes of the path, by whole segments; null: any path. */
  readonly paths: readonly string[] | null;
  /** Null: any method. */
  readonly methods: readonly HttpMethod[] | null;
}

export const CREDENTIAL_KINDS = ["bearer", "header", "basic", "hmac"] as const;

export type CredentialKind = (typeof CREDENTIAL_KINDS)[number];

export const HMAC_ALGORITHMS = ["sha256", "sha512", "sha1"] as const;

export const HMAC_ENCODINGS = ["hex", "base64", "base64url"] as const;

export const HMAC_TIMES = ["seconds", "milliseconds", "iso"] as const;

/** How a request is signed. The texts contain placeholders such as `{timestamp}`. */
export interface HmacScheme {
  readonly kind: "hmac";
  readonly header: string;
  readonly algorithm: (typeof HMAC_ALGORITHMS)[number];
  readonly encoding: (typeof HMAC_ENCODINGS)[number];
  /** What is signed: `{timestamp}.{body}`. */
  readonly signs: string;
  /** The value of the header: `{signature}`. */
  readonly value: string;
  readonly time: (typeof HMAC_TIMES)[number];
  /** The header that has the time; null: none. */
  readonly timeHeader: string | null;
}

/** How a credential is added to a request, without the secret. */
export type CredentialSettings =
  | { readonly kind: "bearer" }
  | { readonly kind: "header"; readonly header: string; readonly scheme: string | null }
  | { readonly kind: "basic"; readonly username: string }
  | HmacScheme;

/** A credential without its secret, which only a send opens. */
export interface Credential extends CredentialBounds {
  readonly id: string;
  readonly accountId: string;
  /** Unique in the account, in lower case. */
  readonly name: string;
  readonly settings: CredentialSettings;
  /** The last characters of the secret, for people; null: it is too short to show any. */
  readonly hint: string | null;
  /** Ids of the keys of agents that may use it. Owners need no entry. */
  readonly keys: readonly string[];
  readonly enabled: boolean;
  /** Refused from then on; null: never. */
  readonly expiresAt: Date | null;
  /** Counts changes. A use names the revision that it has read. */
  readonly revision: number;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** When its secret was set last. */
  readonly replacedAt: Date;
  readonly lastUsedAt: Date | null;
  /** Hosts that have sent the secret back in an answer. */
  readonly echoes: readonly string[];
}

/** With the secret as it is stored. */
export interface SealedCredential extends Credential {
  readonly sealedSecret: string;
}

/** What an action stores about its credential, with the bounds as they were at the request. */
export interface RequestedCredential {
  readonly id: string;
  readonly name: string;
  readonly kind: CredentialKind;
  readonly hint?: string;
  readonly hosts: string[];
  readonly paths?: string[];
  readonly methods?: string[];
}

/** The members that a change sets. Absent members stay. */
export interface CredentialPatch {
  readonly settings?: CredentialSettings;
  readonly secret?: { readonly sealedSecret: string; readonly hint: string | null; readonly replacedAt: Date };
  readonly hosts?: readonly string[];
  readonly paths?: readonly string[] | null;
  readonly methods?: readonly HttpMethod[] | null;
  readonly keys?: readonly string[];
  readonly enabled?: boolean;
  readonly expiresAt?: Date | null;
}

/** A credential whose end an alert reports. */
interface CredentialEnd {
  readonly accountId: string;
  readonly id: string;
  readonly expiresAt: Date;
}

/** A row of the outbox that reports the end of a credential. */
interface AlertRow {
  readonly id: string;
  /** The host of its lane. */
  readonly host: string;
  readonly message: NewNotification;
}

/** Rows by account, in the order of their names; an account has at most `CREDENTIALS_MAX`. */
export interface CredentialStore extends Pick<CachedSettingsStore<Credential>, "list" | "version"> {
  /** With its secret, still sealed; null: there is none. */
  find(accountId: string, id: string): Promise<SealedCredential | null>;
  /** `taken`: the account has one of this name. */
  add(credential: SealedCredential, audit: AuditEntry): Promise<"written" | "full" | "taken">;
  /** Changes one of this revision. False: there is none, or it was changed meanwhile. */
  change(
    credential: Pick<Credential, "accountId" | "id" | "revision">,
    patch: CredentialPatch,
    audit: AuditEntry,
  ): Promise<boolean>;
  /** False: there was none. */
  remove(accountId: string, id: string, audit: AuditEntry): Promise<boolean>;
  /** Lets a key use these credentials, too. Ids that don't exist any more are ignored. */
  allow(accountId: string, keyId: string, ids: readonly string[]): Promise<void>;
  /** Notes a use before anything is sent. False: the credential was changed since this revision was read. */
  use(credential: Pick<Credential, "accountId" | "id" | "revision">, at: Date, audit: AuditEntry): Promise<boolean>;
  /**
   * Stores notifications about the end of a credential. False: they were stored before, there are none, or the credential is
   * disabled or no longer ends at that time.
   */
  addAlert(end: CredentialEnd, rows: readonly AlertRow[], at: Date): Promise<boolean>;
  /** Deletes old notifications about ends. True: there may be more. */
  pruneAlerts(now: Date): Promise<boolean>;
  /** Notes that a host has sent the secret back. Returns whether this is the first time. */
  noteEcho(accountId: string, id: string, host: string, audit: AuditEntry): Promise<boolean>;
}

/** The credentials of all accounts, without their secrets, for creates. A send asks the store again. */
export class KnownCredentials extends AccountCache<Credential, ReadonlyMap<string, Credential>> {
  constructor(store: Pick<CredentialStore, "list" | "version">) {
    super(store, (rows) => new Map(rows.map((row) => [row.name, row])));
  }

  /** Finds a credential by name. Null: none is known here. */
  readonly find = (accountId: string, name: string): Credential | null => this.view(accountId)?.get(name) ?? null;

  /** The credentials of an account, by name. */
  readonly of = (accountId: string): readonly Credential[] => [...(this.view(accountId)?.values() ?? [])];
}

/** Owners may use every credential; agents only those that list their key. Others create nothing. */
export function mayUse({ role, keyId }: Pick<Caller, "role" | "keyId">, { keys }: Pick<Credential, "keys">): boolean {
  return role === "owner" || (role === "agent" && keyId !== null && keys.includes(keyId));
}

/** Whether owners should renew it, because its end is near. */
export function expiresSoon(expiresAt: Date, now: Date): boolean {
  const leftMs = expiresAt.getTime() - now.getTime();
  return leftMs > 0 && leftMs <= CREDENTIAL_ALERT_MS;
}

/** The name of a credential in words, as people see it with a request. */
export function describeCredential({ name, kind, hint }: Pick<RequestedCredential, "name" | "kind" | "hint">): string {
  return `${name} (${KIND_WORDS[kind]}${hint === undefined ? "" : `, ••••${hint}`})`;
}

export const KIND_WORDS: Readonly<Record<CredentialKind, string>> = {
  bearer: "Bearer",
  header: "Header",
  basic: "Basic",
  hmac: "HMAC",
};

/**
 * Which alert about a credential is due now; null: none. If it was made to end within the time of the first alert, there is no
 * such alert, since its maker knows. An end that passed while the service was stopped is reported for as long.
 */
export function alertDue(
  { enabled, createdAt, expiresAt }: Pick<Credential, "enabled" | "createdAt" | "expiresAt">,
  now: Date,
): CredentialAlert | null {
  if (!enabled || expiresAt === null) return null;
  const leftMs = expiresAt.getTime() - now.getTime();
  if (leftMs <= 0) return leftMs > -CREDENTIAL_ALERT_MS ? { stage: "expired", expiresAt } : null;
  const isKnown = expiresAt.getTime() - createdAt.getTime() <= CREDENTIAL_ALERT_MS;
  return leftMs > CREDENTIAL_ALERT_MS || isKnown ? null : { stage: "expiring", expiresAt };
}

/** What a key asks for: a credential for a host. Everything but the host is a suggestion. */
interface RequestedBounds {
  /** In normal form, with the port unless it is the scheme's default. */
  readonly host: string;
  readonly name: string | null;
  readonly kind: CredentialKind | null;
  readonly paths: readonly string[] | null;
  readonly methods: readonly HttpMethod[] | null;
}

export const CREDENTIAL_REQUEST_STATUSES = ["pending", "granted", "declined", "expired", "cancelled"] as const;

/** `cancelled`: its key has ended. */
export type CredentialRequestStatus = (typeof CREDENTIAL_REQUEST_STATUSES)[number];

/** A decision on a request; absent while nobody has decided. */
export type CredentialDecision = Extract<CredentialRequestStatus, "granted" | "declined">;

/** A request of a key for a credential, as it is stored. What is asked for never changes. */
export interface CredentialRequest extends RequestedBounds {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  /** In the requester's words. */
  readonly reason: string;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** From this time on, nobody can decide on it. */
  readonly expiresAt: Date;
  /** Null: nobody has decided. */
  readonly decision: CredentialDecision | null;
  readonly decidedAt: Date | null;
  readonly decidedBy: Actor | null;
  readonly decisionReason: string | null;
  /** The name of the credential that it got. */
  readonly credential: string | null;
}

/** A request with what is known of its key. If the key ends, so does the request. */
export interface ListedCredentialRequest extends CredentialRequest {
  readonly keyRole: Role | null;
  readonly keyRevokedAt: Date | null;
  readonly keyExpiresAt: Date | null;
}

export function statusOfRequest(request: ListedCredentialRequest, now: Date): CredentialRequestStatus {
  const { decision, expiresAt, keyRevokedAt, keyExpiresAt } = request;
  if (decision !== null) return decision;
  const end = expiresAt <= now ? expiresAt : now;
  const isKeyOver = [keyRevokedAt, keyExpiresAt].some((at) => at !== null && at <= end);
  if (isKeyOver) return "cancelled";
  return expiresAt <= now ? "expired" : "pending";
}

/** The result of asking for a credential. */
export type AskedCredential =
  | { readonly kind: "written" }
  /** The key has an open request for this host, or a similar one that was declined recently. */
  | { readonly kind: "matched"; readonly id: string }
  /** `retryAt`: when the key may ask again, after reaching its daily number. */
  | { readonly kind: "full"; readonly of: "key" | "account" }
  | { readonly kind: "daily"; readonly retryAt: Date };

/** Tells an owner or a channel of a new request; the event has the place of its recipient. */
interface RequestNotice {
  readonly id: string;
  readonly host: string;
  readonly message: {
    readonly kind: "mail" | "message";
    readonly event: `credential_requested:${number}`;
    readonly target: string;
  };
}

export interface ListedRequests {
  /** Null: of every key. */
  readonly keyId: string | null;
  /** As it is at `now`; null: whatever it is. */
  readonly status: CredentialRequestStatus | null;
  readonly now: Date;
  /** Only older ones; null: from the newest. */
  readonly before: string | null;
  readonly limit: number;
}

export interface CredentialRequestStore {
  /** Adds a request, within the limits of its key and account, with notices. A decline since `declinedSince` still applies. */
  ask(
    request: CredentialRequest,
    declinedSince: Date,
    notices: readonly RequestNotice[],
    audit: AuditEntry,
  ): Promise<AskedCredential>;
  find(accountId: string, id: string): Promise<ListedCredentialRequest | null>;
  /** Newest first. */
  list(accountId: string, page: ListedRequests): Promise<readonly ListedCredentialRequest[]>;
  /** The requests that can be decided now, oldest first; an account has at most `CREDENTIAL_REQUESTS_PENDING_MAX`. */
  pending(accountId: string, now: Date): Promise<readonly ListedCredentialRequest[]>;
  /** Adds the credential and ends the request in one commit. `gone`: nobody can decide on it any more. */
  grant(
    id: string,
    credential: SealedCredential,
    audit: AuditEntry,
    granted: AuditEntry,
  ): Promise<"written" | "full" | "taken" | "gone">;
  /** False: nobody can decide on it any more. */
  decline(request: DeclinedRequest, audit: AuditEntry): Promise<boolean>;
  /** Deletes some that would have expired by then; true: there may be more. */
  prune(until: Date): Promise<boolean>;
}

export interface DeclinedRequest {
  readonly accountId: string;
  readonly id: string;
  readonly at: Date;
  readonly by: Actor;
  readonly reason: string | null;
}
