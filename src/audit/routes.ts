import { AuditQuery, AuditLogJson, checkAudit, serializeAuditPage, serializeAuditEntry } from "./schemas.ts";
import type { AuditService } from "./service.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import { plainText } from "../api/schema-helpers.ts";
import type { AuditRow } from "../core/audit.ts";
import { jsonOf, prefersNdjson } from "../http/response.ts";
import { createApiRoutes, operation } from "../http/operation.ts";

interface AuditRouteDeps {
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
      return jsonOf(serializeAuditPage(await auditService.list(caller, asked)), 200, UNCACHED);
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
      query: AuditQuery,
      answers: {
        200: {
          description: "A page of the log; with `Accept: application/x-ndjson` all of it, an entry a line.",
          schema: AuditLogJson,
          onRequestAs: {
            mediaType: "application/x-ndjson",
            schema: plainText(
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

/** Reads a batch when the client has taken the one before, so that memory holds two at most. */
function streamOf(steps: AsyncGenerator<readonly AuditRow[]>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      // A database in this thread would otherwise block the event loop for the whole export.
      await nextTurn();
      const step: IteratorResult<readonly AuditRow[], unknown> = await steps.next();
      if (step.done === true) controller.close();
      else {
        const lines = step.value.map((row) => `${JSON.stringify(serializeAuditEntry(row))}\n`);
        controller.enqueue(UTF_8.encode(lines.join("")));
      }
    },
    async cancel() {
      await steps.return(undefined);
    },
  });
}
