import { setImmediate as nextTurn } from "node:timers/promises";
import Type from "typebox";
import {
  AuditLog,
  AuditQuery,
  type AuditRow,
  type AuditService,
  checkAudit,
  serializeAuditEntry,
  serializeAuditPage,
} from "./audit.ts";
import { compileQuery, encodeCursor } from "../api/schema-helpers.ts";
import { prefersNdjson, json, page } from "../http/response.ts";
import { readQuery } from "../http/request.ts";
import { createPersonRoutes, type PersonOf } from "../http/session.ts";
import { API_ERRORS, createApiRoutes, operation } from "../http/operation.ts";
import { AUDIT_PATH, auditPage } from "../pages/audit.tsx";

export interface AuditRouteDeps {
  readonly auditService: Pick<AuditService, "export" | "list" | "record">;
}

const UNCACHED = { "cache-control": "no-store", vary: "Accept" } as const;

const UTF_8 = new TextEncoder();

/** A page of the log as JSON, or all of it as newline-delimited JSON. */
export function auditRoutes({ auditService }: AuditRouteDeps) {
  return createApiRoutes().get(
    "/v1/audit",
    async ({ context, caller, query }) => {
      const asked = checkAudit(query);
      if (prefersNdjson(context.request)) {
        return new Response(streamOf(auditService.export(caller, asked)), {
          headers: { "content-type": "application/x-ndjson", ...UNCACHED },
        });
      }
      return json(JSON.stringify(serializeAuditPage(await auditService.list(caller, asked))), 200, UNCACHED);
    },
    operation({
      operationId: "listAudit",
      permission: "manage",
      tag: "Auth",
      summary: "Read the audit log, newest first, or export it",
      description:
        "Who did what, when and from where. A page as JSON, with next_cursor for the next page; with Accept: application/x-ndjson the whole log, one entry per line.",
      query: AuditQuery,
      answers: {
        200: {
          description: "A page of the log; with `Accept: application/x-ndjson` all of it, an entry a line.",
          schema: AuditLog,
          onRequestAs: {
            mediaType: "application/x-ndjson",
            schema: Type.String({ description: "Entries as JSON, one a line, newest first.", examples: ["{}\n"] }),
          },
          headers: ["Cache-Control"],
        },
      },
      errors: API_ERRORS,
    }),
  );
}

/** Reads a batch when the client has taken the one before, so that memory holds two at most. */
function streamOf(steps: AsyncGenerator<readonly AuditRow[]>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      // A database in this thread would otherwise block the event loop for the whole export.
      await nextTurn();
      const step: IteratorResult<readonly AuditRow[], unknown> = await steps.next();
      if (step.done === true) controller.close();
      else controller.enqueue(UTF_8.encode(linesOf(step.value)));
    },
    async cancel() {
      await steps.return(undefined);
    },
  });
}

function linesOf(rows: readonly AuditRow[]): string {
  return rows.map((row) => `${JSON.stringify(serializeAuditEntry(row))}\n`).join("");
}

export interface AuditPageDeps {
  readonly auditService: Pick<AuditService, "list">;
  readonly personOf: PersonOf;
}

const PAGE_QUERY = compileQuery(AuditQuery);

/** The audit log for people, filtered by the parameters of /v1/audit. */
export function auditPages({ auditService, personOf }: AuditPageDeps) {
  return createPersonRoutes(personOf).get(AUDIT_PATH, async ({ context, person }) => {
    const search = withoutEmpty(context.search);
    const asked = checkAudit(readQuery(search, PAGE_QUERY));
    const { rows, before } = await auditService.list(person.caller, asked);
    const next = new URLSearchParams(search);
    if (before !== null) next.set("cursor", encodeCursor(String(before)));
    const older = before === null ? null : `${AUDIT_PATH}?${next.toString()}`;
    return page("own", auditPage({ user: person, entries: rows, kind: asked.kinds[0] ?? null, older }));
  });
}

/** Without empty fields, which forms send too. */
function withoutEmpty(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([, value]) => value !== "")).toString();
}
