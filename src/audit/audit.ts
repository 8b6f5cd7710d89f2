import { type Actor, SYSTEM, type Caller, authorize } from "../accounts/roles.ts";
import { AUDIT_STEP_ROWS, LIST_LIMIT_DEFAULT } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";

/** What the audit log tells of. A name is never given another meaning: exports keep it for years. */
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

/** Who did it. `anonymous`: somebody who was not let in. */
type AuditActor = Actor | "anonymous";

/** How it came in. */
type AuditWay = "api" | "page" | "mail" | "mcp" | "elicitation" | "system";

/** More about an entry, in a few members of its kind. Never a secret. */
export type AuditDetail = Readonly<Record<string, string | number | boolean | null>>;

/** Something that somebody did to an account. It is written once and never changed. */
export interface AuditEntry {
  readonly at: Date;
  readonly accountId: string;
  readonly actor: AuditActor;
  readonly kind: AuditKind;
  /** What it was done to: the id of an action, key or pause, an origin, an address; empty: the account. */
  readonly subject: string;
  /** The network address that it came from; empty: from the service itself or its machine. */
  readonly client: string;
  readonly detail: AuditDetail;
}

/** What an entry says beside who did it, when and from where. */
export interface Audited {
  readonly kind: AuditKind;
  readonly subject: string;
  readonly detail?: AuditDetail;
}

/** The entry of something that a caller does now. */
export function auditOf(caller: Caller, { kind, subject, detail = {} }: Audited, at: Date): AuditEntry {
  const { accountId, actor, client = "" } = caller;
  return { at, accountId, actor, kind, subject, client, detail: { via: wayOf(caller), ...detail } };
}

/** The entry of something that the service does by itself, or an operator on its machine. */
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

/** An entry as it is kept. */
export interface AuditRow extends AuditEntry {
  /** Grows with every entry of the store. */
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
  /** Where the next page begins; null when there is none. A page may hold fewer than `limit` and still go on. */
  readonly before: number | null;
}

/** Who did what to an account. Entries are added, with the change that they tell of, and never changed. */
export interface AuditStore {
  /** An entry of something that changes nothing else. It is durable when this resolves. */
  record(entry: AuditEntry): Promise<void>;
  page(query: AuditQuery): Promise<AuditPage>;
  /** Forgets entries of this time or before, some at a time; true when there may be more. */
  prune(until: Date): Promise<boolean>;
}

/** What is asked of the log; `limit` null: a page, or of an export everything. */
type AuditRequest = Omit<AuditQuery, "accountId" | "limit"> & { readonly limit: number | null };

/** Every use case of the audit log. */
export type AuditService = ReturnType<typeof createAuditService>;

export function createAuditService(audit: AuditStore, clock: Pick<Clock, "now">) {
  return {
    /**
     * Writes down what a caller does now where it changes nothing that is stored; what changes something is written with the
     * change. Durable when it resolves.
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
     * All of it, some entries at a time, newest first; for owners. What is written meanwhile is not among it. Throws
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
