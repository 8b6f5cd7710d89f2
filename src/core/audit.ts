import { type Actor, SYSTEM, type Caller } from "./roles.ts";

/** The kinds of audit entries. Never change the meaning of a name: exports keep it for years. */
export const AUDIT_KINDS = [
  "signed_up",
  "signed_in",
  "sign_in_failed",
  "sign_in_throttled",
  "signed_out",
  "password_changed",
  "password_link_sent",
  "key_created",
  "key_revoked",
  "revealed",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "bulk_started",
  "bulk_stopped",
  "sent_now",
  "paused",
  "resumed",
  "signing_secret_rotated",
  "callback_hosts_changed",
  "host_settings_changed",
  "rules_changed",
  "refused_by_rule",
  "beyond_rule",
  "grant_used",
  "grant_ended",
  "credential_added",
  "credential_changed",
  "credential_removed",
  "credential_used",
  "credential_echoed",
  "credential_tested",
  "oauth_client_added",
  "oauth_client_changed",
  "oauth_client_removed",
  "credential_requested",
  "credential_request_granted",
  "credential_request_declined",
  "channel_added",
  "channel_changed",
  "channel_removed",
  "channel_tested",
  "callback_tested",
  "signups_closed",
  "account_allowed",
  "member_invited",
  "invitation_withdrawn",
  "member_joined",
  "member_role_changed",
  "member_removed",
  "member_left",
  "sessions_ended",
  "identity_linked",
  "account_renamed",
] as const;

export type AuditKind = (typeof AUDIT_KINDS)[number];

/** Details of an entry, by its kind. Never secrets. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null>>;

/** An entry of the audit log. It is written once and never changed. */
export interface AuditEntry {
  readonly at: Date;
  readonly accountId: string;
  /** `anonymous`: somebody whose sign-in failed. */
  readonly actor: Actor | "anonymous";
  readonly kind: AuditKind;
  /** The object: the id of an action, key or pause, an origin, or an address; empty: the account. */
  readonly subject: string;
  /** Network address of the client; empty: the service itself or a command on its machine. */
  readonly client: string;
  readonly detail: AuditDetail;
}

/** The part of an entry that the caller of `auditEntry` chooses. */
export interface Audited {
  readonly kind: AuditKind;
  readonly subject: string;
  readonly detail?: AuditDetail;
}

export function auditEntry(caller: Caller, { kind, subject, detail = {} }: Audited, at: Date): AuditEntry {
  const { accountId, actor, client = "" } = caller;
  return { at, accountId, actor, kind, subject, client, detail: { via: decisionWay(caller), ...detail } };
}

/** The entry of an operation by the service itself or by an operator on its machine. */
export function auditOfSystem(accountId: string, { kind, subject, detail = {} }: Audited, at: Date): AuditEntry {
  return { at, accountId, actor: SYSTEM, kind, subject, client: "", detail: { via: "system", ...detail } };
}

/** How the request arrived. */
function decisionWay({ actor, via, isAgentCall }: Caller): "api" | "page" | "mail" | "mcp" | "elicitation" | "system" {
  if (via !== undefined) return via;
  if (isAgentCall === true) return "mcp";
  if (actor === SYSTEM) return "system";
  if (actor.startsWith("user:")) return "page";
  return actor.startsWith("email:") ? "mail" : "api";
}

/** An entry as stored. */
export interface AuditRow extends AuditEntry {
  /** Increases with every entry. */
  readonly seq: number;
}

/** Which entries to find, newest first. */
export interface AuditFilter {
  readonly accountId: string;
  /** Empty: any. */
  readonly kinds: readonly AuditKind[];
  /** Empty: anybody. */
  readonly actors: readonly string[];
  /** At this time or later. */
  readonly since: Date | null;
  /** Before this time. */
  readonly until: Date | null;
  /** Only entries older than this number. */
  readonly before: number | null;
  readonly limit: number;
}

export interface AuditPage {
  /** Newest first. */
  readonly rows: readonly AuditRow[];
  /** Where the next page begins; null: no more. A page may have fewer than `limit` rows and still not be the last. */
  readonly before: number | null;
}

/** Which entries to count: those within `days` times 24 hours before `until`. */
interface AuditSpan {
  readonly accountId: string;
  readonly kinds: readonly AuditKind[];
  readonly until: Date;
  readonly days: number;
}

/** How many entries each subject has. */
export interface AuditCounts {
  readonly counts: readonly {
    readonly subject: string;
    /** 0: in the last 24 hours. */
    readonly daysAgo: number;
    readonly count: number;
  }[];
  /** Whether all entries were counted, not only those among the account's newest ones. */
  readonly isWhole: boolean;
}

/** Stores audit entries. Entries of a change are written in the transaction of that change. */
export interface AuditStore {
  /** Adds an entry that belongs to no other write. Durable when it resolves. */
  record(entry: AuditEntry): Promise<void>;
  page(filter: AuditFilter): Promise<AuditPage>;
  /** Counts entries. Reads at most as many as a page does. */
  count(span: AuditSpan): Promise<AuditCounts>;
  /** Deletes some entries of this time or earlier; true: there may be more. */
  prune(until: Date): Promise<boolean>;
}
