import type { AuditEntry } from "./audit.ts";
import type { CredentialKind, SealedCredential } from "./credential.ts";
import type { Actor, Role } from "./roles.ts";
import type { HttpMethod } from "./target.ts";

/** What a key asks for: a credential for a host. All but the host is a suggestion. */
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
  /** In the words of whoever asks. */
  readonly reason: string;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  /** Nobody can decide on it from then on. */
  readonly expiresAt: Date;
  /** Null: nobody has decided. */
  readonly decision: CredentialDecision | null;
  readonly decidedAt: Date | null;
  readonly decidedBy: Actor | null;
  readonly decisionReason: string | null;
  /** The name of the credential that it got. */
  readonly credential: string | null;
}

/** The same with what is known of its key, whose end ends it too. */
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

/** What became of a new request. */
export type AskedCredential =
  | { readonly kind: "written" }
  /** The key has one for this host that is open, or that was declined a while ago. */
  | { readonly kind: "matched"; readonly id: string }
  /** `retryAt`: when the key may ask again, of the number in a day. */
  | { readonly kind: "full"; readonly of: "key" | "account" }
  | { readonly kind: "daily"; readonly retryAt: Date };

/** Tells an owner or a channel of a new request; the event has the place of its recipient. */
export interface RequestNotice {
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
  /** Counts those of its key and account in the same commit, and notifies those who may answer. `declinedSince`: a decline since then still answers the same request. */
  ask(
    request: CredentialRequest,
    declinedSince: Date,
    notices: readonly RequestNotice[],
    audit: AuditEntry,
  ): Promise<AskedCredential>;
  find(accountId: string, id: string): Promise<ListedCredentialRequest | null>;
  /** Newest first. */
  list(accountId: string, page: ListedRequests): Promise<readonly ListedCredentialRequest[]>;
  /** Those that somebody can decide on now, oldest first; an account has at most `CREDENTIAL_REQUESTS_PENDING_MAX`. */
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
