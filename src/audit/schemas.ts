import Type, { type Static } from "typebox";
import { AUDIT_KINDS, type AuditEntry as Entry } from "./audit.ts";
import { DomainError, type Issue } from "../api/domain-error.ts";
import { ACTOR_CHARS_MAX, LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../config/limits.ts";
import { dateTime, nullable, plainText } from "../api/schema-helpers.ts";

const CURSOR_EXAMPLE = "NDcxMQ";

const kind = (description: string) =>
  Type.Enum([...AUDIT_KINDS], { type: "string", description, examples: ["key_revoked"] });

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

const DETAIL = "Details, depending on `kind`; `via` is how the request arrived. Never secrets.";

export const AuditItem = Type.Object(
  {
    seq: Type.Integer({ minimum: 1, description: "Increasing number, with gaps.", examples: [4711] }),
    at: dateTime("When it happened."),
    account_id: plainText("The account.", "acc_01kjwa5v00e7v8c9x2m4n6p8qr"),
    actor: plainText("Who did it; anonymous: somebody whose sign-in failed.", "user:ann@example.com"),
    kind: kind("What was done."),
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
      description: DETAIL,
      examples: [{ via: "page", unfinished: "pause" }],
    }),
  },
  { title: "AuditEntry", description: "One entry of the audit log." },
);

export type AuditItem = Static<typeof AuditItem>;

export const AuditLog = Type.Object(
  {
    data: Type.Array(AuditItem, { description: "The entries, newest first." }),
    next_cursor: nullable(plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
  },
  { title: "AuditLog", description: "One page of the audit log." },
);

export type AuditLog = Static<typeof AuditLog>;

/** The query of the audit service. Throws `invalid_query` for dates that do not exist and invalid cursors. */
export function checkAudit(query: AuditQuery) {
  const since = dateOf(query.since);
  const until = dateOf(query.until);
  const before = query.cursor === undefined ? null : readCursor(query.cursor);
  const issues: Issue[] = [
    ...(since === undefined ? [{ field: "since", message: NO_DATE }] : []),
    ...(until === undefined ? [{ field: "until", message: NO_DATE }] : []),
    ...(before === undefined ? [{ field: "cursor", message: "Is not the next_cursor of a page." }] : []),
  ];
  if (since === undefined || until === undefined || before === undefined) {
    throw new DomainError("invalid_query", "The query is not valid.", issues);
  }
  return { kinds: query.kind ?? [], actor: query.actor ?? null, since, until, before, limit: query.limit ?? null };
}

export interface NumberedEntry extends Entry {
  readonly seq: number;
}

/** A page as JSON text. */
export function auditJson(rows: readonly NumberedEntry[], before: number | null): string {
  return JSON.stringify({ data: rows.map(itemOf), next_cursor: before === null ? null : auditCursor(before) });
}

/** Entries as lines of JSON. */
export function auditLines(rows: readonly NumberedEntry[]): string {
  return rows.map((row) => `${JSON.stringify(itemOf(row))}\n`).join("");
}

/** The opaque cursor of the next page. */
export function auditCursor(before: number): string {
  return Buffer.from(String(before)).toString("base64url");
}

function itemOf({ seq, at, accountId, actor, kind: what, subject, client, detail }: NumberedEntry): AuditItem {
  return {
    seq,
    at: at.toISOString(),
    account_id: accountId,
    actor,
    kind: what,
    subject,
    client: client === "" ? null : client,
    detail,
  };
}

function readCursor(cursor: string): number | undefined {
  const text = Buffer.from(cursor, "base64url").toString("latin1");
  // Decoding is lenient, so accept only what encodes to the same text again.
  const isOurs = /^[1-9]\d{0,14}$/.test(text) && Buffer.from(text).toString("base64url") === cursor;
  return isOurs ? Number(text) : undefined;
}

const NO_DATE = "Is not a date and time.";

function dateOf(text: string | undefined): Date | null | undefined {
  if (text === undefined) return null;
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? undefined : at;
}
