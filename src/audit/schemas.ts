import {
  dateTime,
  plainText,
  nullable,
  checkListQuery,
  encodeCursor,
  choice,
  closedObject,
  answerObject,
  shortText,
  integer,
  positive,
} from "../api/schema-helpers.ts";
import { ACTOR_CHARS_MAX, LIST_LIMIT_MAX, LIST_LIMIT_DEFAULT } from "../core/limits.ts";
import { AUDIT_KINDS, type AuditPage, type AuditRow } from "../core/audit.ts";
import Type, { type Static } from "typebox";

const CURSOR_EXAMPLE = "NDcxMQ";

export const AuditQuery = closedObject({
  kind: Type.Optional(
    Type.Array(Type.Enum([...AUDIT_KINDS], { type: "string" }), {
      description: "Any of these; may repeat.",
      examples: [["key_created", "key_revoked"]],
    }),
  ),
  actor: Type.Optional(shortText(ACTOR_CHARS_MAX, "The `actor` of an entry.", "user:ann@example.com")),
  since: Type.Optional(dateTime("At this time or later.")),
  until: Type.Optional(dateTime("Earlier than this.")),
  limit: Type.Optional(
    integer(1, LIST_LIMIT_MAX, `Most entries. Default: ${LIST_LIMIT_DEFAULT} for a page, all for an export.`, 100),
  ),
  cursor: Type.Optional(plainText("The next_cursor of the page before.", CURSOR_EXAMPLE)),
});

export type AuditQuery = Static<typeof AuditQuery>;

export const AuditEntryJson = answerObject("AuditEntry", "One entry of the audit log.", {
  seq: positive("Increasing number, with gaps.", 4711),
  at: dateTime("When it happened."),
  account_id: plainText("The account.", "acc_01kjwa5v00e7v8c9x2m4n6p8qr"),
  actor: plainText("Who did it; anonymous: somebody whose sign-in failed.", "user:ann@example.com"),
  kind: choice(AUDIT_KINDS, "What was done.", "key_revoked"),
  subject: plainText(
    "What it was done to: the id of an action, key or pause, an origin, or an address; empty: the account, or every origin.",
    "key_01kjwa5v00e7v8c9x2m4n6p8qr",
  ),
  client: nullable(
    plainText("Network address of the client: IPv4, or the /64 of IPv6; null: the service itself.", "192.0.2.7"),
  ),
  detail: Type.Unsafe<Readonly<Record<string, string | number | boolean | null>>>({
    type: "object",
    additionalProperties: { anyOf: ["string", "number", "boolean", "null"].map((type) => ({ type })) },
    description: "Details, depending on `kind`; `via` is how the request arrived. Never secrets.",
    examples: [{ via: "page", unfinished: "pause" }],
  }),
});

export type AuditEntryJson = Static<typeof AuditEntryJson>;

export const AuditLogJson = answerObject("AuditLog", "One page of the audit log.", {
  data: Type.Array(AuditEntryJson, { description: "The entries, newest first." }),
  next_cursor: nullable(plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
});

export type AuditLogJson = Static<typeof AuditLogJson>;

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
export function serializeAuditPage({ rows, before }: AuditPage): AuditLogJson {
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
