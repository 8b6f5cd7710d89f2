import { setImmediate as nextTurn } from "node:timers/promises";
import Type, { type Static } from "typebox";
import * as t from "../api/schema-helpers.ts";
import { checkListQuery, encodeCursor } from "../api/cursor.ts";
import { toJson } from "../api/serializer.ts";
import {
  AUDIT_KINDS,
  type AuditFilter,
  type AuditStore,
  type Audited,
  auditEntry,
  type AuditPage,
  type AuditRow,
} from "../core/audit.ts";
import type { Clock } from "../core/clock.ts";
import {
  ACTOR_CHARS_MAX,
  AUDIT_SCANS_MAX,
  AUDIT_STEP_ROWS,
  LIST_LIMIT_DEFAULT,
  LIST_LIMIT_MAX,
} from "../core/limits.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { createApiRoutes, operation } from "../http/operation.ts";
import { jsonResponse, prefersNdjson, toStream } from "../http/response.ts";

/** `limit` null: the default of a page, or everything for an export. */
type AuditRequest = Omit<AuditFilter, "accountId" | "limit"> & { readonly limit: number | null };

/** Every use case of the audit log. */
type AuditService = ReturnType<typeof createAuditService>;

export function createAuditService({
  store: { audit },
  clock,
}: {
  readonly store: { readonly audit: Pick<AuditStore, "record" | "page"> };
  readonly clock: Pick<Clock, "now">;
}) {
  return {
    /** Adds an entry for an operation that writes nothing else, such as revealing a secret. Durable when it resolves. */
    record(caller: Caller, audited: Audited): Promise<void> {
      return audit.record(auditEntry(caller, audited, clock.now()));
    },

    /**
     * One page of the account's log, newest first; for owners. If few entries match, it reads on until the page is full, at
     * most `AUDIT_SCANS_MAX` times.
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

export const AuditParameters = t.closedObject({
  kind: Type.Optional(
    Type.Array(Type.Enum([...AUDIT_KINDS], { type: "string" }), {
      description: "Any of these; may repeat.",
      examples: [["key_created", "key_revoked"]],
    }),
  ),
  actor: Type.Optional(t.shortText(ACTOR_CHARS_MAX, "The `actor` of an entry.", "user:ann@example.com")),
  since: Type.Optional(t.dateTime("At this time or later.")),
  until: Type.Optional(t.dateTime("Earlier than this.")),
  limit: Type.Optional(
    t.integer(1, LIST_LIMIT_MAX, `Most entries. Default: ${LIST_LIMIT_DEFAULT} for a page, all for an export.`, 100),
  ),
  cursor: Type.Optional(t.plainText("The next_cursor of the page before.", CURSOR_EXAMPLE)),
});

const AuditEntryJson = t.answerObject("AuditEntry", "One entry of the audit log.", {
  seq: t.positive("Increasing number, with gaps.", 4711),
  at: t.dateTime("When it happened."),
  account_id: t.plainText("The account.", "acc_01kjwa5v00e7v8c9x2m4n6p8qr"),
  actor: t.plainText("Who did it; anonymous: someone whose sign-in failed.", "user:ann@example.com"),
  kind: t.choice(AUDIT_KINDS, "What was done.", "key_revoked"),
  subject: t.plainText(
    "What it was done to: the id of an action, key or pause, an origin, or an address; empty: the account, or every origin.",
    "key_01kjwa5v00e7v8c9x2m4n6p8qr",
  ),
  client: t.nullable(
    t.plainText("Network address of the client: IPv4, or the /64 of IPv6; null: the service itself.", "192.0.2.7"),
  ),
  detail: Type.Unsafe<Readonly<Record<string, string | number | boolean | null>>>({
    type: "object",
    additionalProperties: { anyOf: ["string", "number", "boolean", "null"].map((type) => ({ type })) },
    description: "Details, depending on `kind`; `via` is how the request arrived. Never secrets.",
    examples: [{ via: "page", unfinished: "pause" }],
  }),
});

export const AuditLogJson = t.answerObject("AuditLog", "One page of the audit log.", {
  data: Type.Array(AuditEntryJson, { description: "The entries, newest first." }),
  next_cursor: t.nullable(t.plainText("Asks for the next page; null: there is none.", CURSOR_EXAMPLE)),
});

/** The filter that a query means. Throws `invalid_query` for dates that do not exist and invalid cursors. */
export function checkAudit(query: Static<typeof AuditParameters>) {
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

const serialize = ({ client, ...row }: AuditRow) =>
  toJson(AuditEntryJson, { ...row, client: client === "" ? null : client });

const UNCACHED = { "cache-control": "no-store", vary: "Accept" } as const;

/** A page of the log as JSON, or all of it as newline-delimited JSON. */
export function auditRoutes({ auditService }: { readonly auditService: AuditService }) {
  return createApiRoutes().get(
    "/v1/audit",
    async ({ context, caller, query }) => {
      const asked = checkAudit(query);
      if (prefersNdjson(context.request)) {
        return new Response(await toStream(auditLines(auditService.export(caller, asked))), {
          headers: { "content-type": "application/x-ndjson", ...UNCACHED },
        });
      }
      const { rows, before } = await auditService.list(caller, asked);
      const next = before === null ? null : encodeCursor(String(before));
      return jsonResponse({ data: rows.map(serialize), next_cursor: next }, 200, UNCACHED);
    },
    operation({
      operationId: "listAudit",
      permission: "manage",
      summary: "Read the audit log, newest first, or export it",
      description: "Lists who did what, when and from where.",
      notes: [
        "A page as JSON, with `next_cursor` for the next page.",
        "With `Accept: application/x-ndjson` the whole log, one entry per line.",
      ],
      query: AuditParameters,
      answers: {
        200: {
          description: "A page of the log; with `Accept: application/x-ndjson` all of it, an entry a line.",
          schema: AuditLogJson,
          onRequestAs: {
            mediaType: "application/x-ndjson",
            schema: t.plainText(
              "Entries as JSON, one a line, newest first.",
              '{"kind":"key_created","actor":"user:ann@example.com", …}\n',
            ),
          },
          headers: ["Cache-Control"],
        },
      },
    }),
  );
}

async function* auditLines(batches: AsyncGenerator<readonly AuditRow[]>): AsyncGenerator<string> {
  for await (const rows of batches) {
    yield rows.map((row) => `${JSON.stringify(serialize(row))}\n`).join("");
    // A database in this thread would otherwise block the event loop for the whole export.
    await nextTurn();
  }
}
