import type { CachedSettingsStore } from "./account-settings.ts";
import type { AuditEntry } from "./audit.ts";
import type { Actor } from "./roles.ts";
import { CREDENTIAL_ALERT_MS } from "./limits.ts";
import type { HttpMethod } from "./target.ts";
import type { CredentialAlert, NewNotification } from "./notification-events.ts";

/** Where a credential may go. */
export interface CredentialBounds {
  /** Hosts as they are sent, with the port unless it is the scheme's default; `*.example.com` is every name below. */
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

/** How a request is signed. The texts hold places such as `{timestamp}`. */
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

/** How a credential is put on a request, as far as that is no secret. */
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
  /** Counts the changes: a use names the one that it has read. */
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

/** What an action keeps of its credential: the bounds as they were when it was requested. */
export interface RequestedCredential {
  readonly id: string;
  readonly name: string;
  readonly kind: CredentialKind;
  readonly hint?: string;
  readonly hosts: string[];
  readonly paths?: string[];
  readonly methods?: string[];
}

/** What a change sets; what is absent stays. */
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

/** A credential whose end is reported. */
interface CredentialEnd {
  readonly accountId: string;
  readonly id: string;
  readonly expiresAt: Date;
}

/** A row of the outbox that reports the end of a credential. */
interface AlertRow {
  readonly id: string;
  /** Of its lane. */
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
  /** Lets a key use these too; those that are gone are left out. */
  allow(accountId: string, keyId: string, ids: readonly string[]): Promise<void>;
  /** Notes a use, before anything is sent. False: it was changed since this revision was read. */
  use(credential: Pick<Credential, "accountId" | "id" | "revision">, at: Date, audit: AuditEntry): Promise<boolean>;
  /**
   * Stores these notifications about its end. False: they were stored before, there are none, or it does not end then (any more), or
   * is disabled.
   */
  addAlert(end: CredentialEnd, rows: readonly AlertRow[], at: Date): Promise<boolean>;
  /** Forgets notifications about ends that were stored long before; true: there may be more. */
  pruneAlerts(now: Date): Promise<boolean>;
  /** Notes that a host has sent the secret back; true: for the first time. */
  noteEcho(accountId: string, id: string, host: string, audit: AuditEntry): Promise<boolean>;
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
 * Which alert of a credential is due now; null: none. Whoever makes one that ends within the time of the first alert knows of its
 * end. An end that passed while nothing ran is reported for as long.
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
