import { setImmediate as nextTurn } from "node:timers/promises";
import { type Actor, SYSTEM, type Caller, authorize } from "../accounts/roles.ts";
import Type, { type Static } from "typebox";
import { checkListQuery, dateTime, encodeCursor, nullable, plainText } from "../api/schema-helpers.ts";
import {
  ACTOR_CHARS_MAX,
  AUDIT_SCANS_MAX,
  AUDIT_STEP_ROWS,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
} from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";

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

/** How the request arrived. */
function wayOf({ actor, via, isAgentCall }: Caller): "api" | "page" | "mail" | "mcp" | "elicitation" | "system" {
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

/** What to find, newest first. */
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
  page(filter: AuditFilter): Promise<AuditPage>;
  /** Deletes some entries of this time or earlier; true: there may be more. */
  prune(until: Date): Promise<boolean>;
}

/** `limit` null: the default of a page, or everything for an export. */
type AuditRequest = Omit<AuditFilter, "accountId" | "limit"> & { readonly limit: number | null };

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

    /**
     * One page of the account's log, newest first; for owners. Where few entries match, it looks at further ones until the
     * page is full, `AUDIT_SCANS_MAX` times.
     */
    async list(caller: Caller, { limit, ...request }: AuditRequest): Promise<AuditPage> {
      authorize(caller, "manage");
      const wanted = limit ?? LIST_LIMIT_DEFAULT;
      const rows: AuditRow[] = [];
      let { before } = request;
      for (let scans = 0; scans < AUDIT_SCANS_MAX; scans += 1) {
        const asked = { ...request, accountId: caller.accountId, before, limit: wanted - rows.length };
        const page: AuditPage = await audit.page(asked);
        rows.push(...page.rows);
        before = page.before;
        if (before === null || rows.length === wanted) break;
        // A database in this thread would otherwise block the event loop for all of them.
        await nextTurn();
      }
      return { rows, before };
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

const CURSOR_EXAMPLE = "NDcxMQ";

export const AuditQuery = Type.Object(
  {
    kind: Type.Optional(
      Type.Array(Type.Enum([...AUDIT_KINDS], { type: "string" }), {
        description: "Any of these; may repeat.",
        examples: [["key_created", "key_revoked"]],
      }),
    ),
    actor: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: ACTOR_CHARS_MAX,
        description: "The `actor` of an entry.",
        examples: ["user:ann@example.com"],
      }),
    ),
    since: Type.Optional(dateTime("At this time or later.")),
    until: Type.Optional(dateTime("Earlier than this.")),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIST_LIMIT_MAX,
        description: `Most entries. Default: ${LIST_LIMIT_DEFAULT} for a page, all for an export.`,
        examples: [100],
      }),
    ),
    cursor: Type.Optional(plainText("The next_cursor of the page before.", CURSOR_EXAMPLE)),
  },
  { additionalProperties: false },
);

export type AuditQuery = Static<typeof AuditQuery>;

export const AuditEntryJson = Type.Object(
  {
    seq: Type.Integer({ minimum: 1, description: "Increasing number, with gaps.", examples: [4711] }),
    at: dateTime("When it happened."),
    account_id: plainText("The account.", "acc_01kjwa5v00e7v8c9x2m4n6p8qr"),
    actor: plainText("Who did it; anonymous: somebody whose sign-in failed.", "user:ann@example.com"),
    kind: Type.Enum([...AUDIT_KINDS], { type: "string", description: "What was done.", examples: ["key_revoked"] }),
    subject: plainText(
      "What it was done to: the id of an action, key or pause, an origin, or an address; empty: the account, or every origin.",
      "key_01kjwa5v00e7v8c9x2m4n6p8qr",
    ),
    client: nullable(
      plainText("Network address of the client: IPv4, or the /64 of IPv6; null: the service itself.", "192.0.2.7"),
    ),
    detail: Type.Unsafe<Readonly<Record<string, string | number | boolean | null>>>({
      type: "object",
      additionalProperties: { type: ["string", "number", "boolean", "null"] },
      description: "Details, depending on `kind`; `via` is how the request arrived. Never secrets.",
      examples: [{ via: "page", unfinished: "pause" }],
    }),
  },
  { title: "AuditEntry", description: "One entry of the audit log." },
);

export type AuditEntryJson = Static<typeof AuditEntryJson>;

export const AuditLog = Type.Object(
  {
    data: Type.Array(AuditEntryJson, { description: "The entries, newest first." }),
    next_cursor: nullable(plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
  },
  { title: "AuditLog", description: "One page of the audit log." },
);

export type AuditLog = Static<typeof AuditLog>;

/** The filter that a query means. Throws `invalid_query` for dates that do not exist and invalid cursors. */
export function checkAudit(query: AuditQuery) {
  const dates = { since: query.since, until: query.until };
  const { before, ...times } = checkListQuery(dates, query.cursor, /^[1-9]\d{0,14}$/);
  return {
    kinds: query.kind ?? [],
    actors: query.actor === undefined ? [] : [query.actor],
    limit: query.limit ?? null,
    ...times,
    before: before === null ? null : Number(before),
  };
}

/** A page as the API shows it. */
export function serializeAuditPage({ rows, before }: AuditPage): AuditLog {
  return { data: rows.map(serializeAuditEntry), next_cursor: before === null ? null : encodeCursor(String(before)) };
}

export function serializeAuditEntry({ seq, at, accountId, client, ...row }: AuditRow): AuditEntryJson {
  return {
    seq,
    at: at.toISOString(),
    account_id: accountId,
    actor: row.actor,
    kind: row.kind,
    subject: row.subject,
    client: client === "" ? null : client,
    detail: row.detail,
  };
}
