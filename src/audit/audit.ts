import { type Actor, SYSTEM, type Caller, authorize } from "../accounts/roles.ts";
import { AUDIT_STEP_ROWS, LIST_LIMIT_DEFAULT } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";

/** The kinds of audit entries. Never change the meaning of a name: exports keep it for years. */
export const AUDIT_KINDS = [
  "signed_up",
  "signed_in",
  "sign_in_failed",
  "sign_in_throttled",
  "signed_out",
  "password_changed",
  "key_created",
  "key_revoked",
  "revealed",
  "approved",
  "rejected",
  "cancelled",
  "retried",
  "paused",
  "resumed",
  "signing_secret_rotated",
  "callback_hosts_changed",
  "signups_closed",
  "account_allowed",
] as const;

export type AuditKind = (typeof AUDIT_KINDS)[number];

/** `anonymous`: somebody whose sign-in failed. */
type AuditActor = Actor | "anonymous";

/** How the request arrived. */
type AuditWay = "api" | "page" | "mail" | "mcp" | "elicitation" | "system";

/** Details of an entry, by its kind. Never secrets. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null>>;

/** An entry of the audit log. It is written once and never changed. */
export interface AuditEntry {
  readonly at: Date;
  readonly accountId: string;
  readonly actor: AuditActor;
  readonly kind: AuditKind;
  /** The object: the id of an action, key or pause, an origin, or an address; empty: the account. */
  readonly subject: string;
  /** Network address of the client; empty: the service itself or a command on its machine. */
  readonly client: string;
  readonly detail: AuditDetail;
}

/** The part of an entry that the caller of `auditOf` chooses. */
export interface Audited {
  readonly kind: AuditKind;
  readonly subject: string;
  readonly detail?: AuditDetail;
}

/** The entry of an operation by a caller. */
export function auditOf(caller: Caller, { kind, subject, detail = {} }: Audited, at: Date): AuditEntry {
  const { accountId, actor, client = "" } = caller;
  return { at, accountId, actor, kind, subject, client, detail: { via: wayOf(caller), ...detail } };
}

/** The entry of an operation by the service itself or by an operator on its machine. */
export function auditOfSystem(accountId: string, { kind, subject, detail = {} }: Audited, at: Date): AuditEntry {
  return { at, accountId, actor: SYSTEM, kind, subject, client: "", detail: { via: "system", ...detail } };
}

function wayOf({ actor, via, isAgentCall }: Pick<Caller, "actor" | "via" | "isAgentCall">): AuditWay {
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

export interface AuditQuery {
  readonly accountId: string;
  /** Empty: any. */
  readonly kinds: readonly AuditKind[];
  readonly actor: string | null;
  /** At this time or later. */
  readonly since: Date | null;
  /** Before this time. */
  readonly until: Date | null;
  /** Only entries older than this number. */
  readonly before: number | null;
  readonly limit: number;
}

interface AuditPage {
  /** Newest first. */
  readonly rows: readonly AuditRow[];
  /** Where the next page begins; null: no more. A page may have fewer than `limit` rows and still not be the last. */
  readonly before: number | null;
}

/** Stores audit entries. Entries of a change are written in the transaction of that change. */
export interface AuditStore {
  /** Adds an entry that belongs to no other write. Durable when it resolves. */
  record(entry: AuditEntry): Promise<void>;
  page(query: AuditQuery): Promise<AuditPage>;
  /** Deletes some entries of this time or earlier; true: there may be more. */
  prune(until: Date): Promise<boolean>;
}

/** `limit` null: the default of a page, or everything for an export. */
type AuditRequest = Omit<AuditQuery, "accountId" | "limit"> & { readonly limit: number | null };

/** Every use case of the audit log. */
export type AuditService = ReturnType<typeof createAuditService>;

export function createAuditService(audit: AuditStore, clock: Pick<Clock, "now">) {
  return {
    /**
     * Adds an entry for an operation that writes nothing else, such as revealing a secret. Durable when it resolves.
     */
    record(caller: Caller, audited: Audited): Promise<void> {
      return audit.record(auditOf(caller, audited, clock.now()));
    },

    /** One page of the account's log, newest first; for owners. */
    async list(caller: Caller, { limit, ...request }: AuditRequest): Promise<AuditPage> {
      authorize(caller, "manage");
      return audit.page({ ...request, accountId: caller.accountId, limit: limit ?? LIST_LIMIT_DEFAULT });
    },

    /**
     * All matching entries, newest first, in batches; for owners. It omits entries written after its start. Throws
     * `unauthorized` as soon as the caller's key is revoked.
     */
    async *export(caller: Caller, { limit, ...request }: AuditRequest): AsyncGenerator<readonly AuditRow[]> {
      let left = limit ?? Number.POSITIVE_INFINITY;
      let { before } = request;
      do {
        authorize(caller, "manage");
        const step = Math.min(AUDIT_STEP_ROWS, left);
        const page: AuditPage = await audit.page({ ...request, accountId: caller.accountId, before, limit: step });
        left -= page.rows.length;
        before = page.before;
        if (page.rows.length > 0) yield page.rows;
      } while (before !== null && left > 0);
    },
  };
}
