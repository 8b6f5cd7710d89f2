import { setImmediate as nextTurn } from "node:timers/promises";
import type { AuditService, AuditRow } from "./audit.ts";
import { auditJson, auditLines, AuditQuery, checkAudit, auditCursor } from "./schemas.ts";
import { API } from "../api/operations.ts";
import { compileQuery } from "../api/schema-helpers.ts";
import { namesNdjson, readQuery } from "../http/query.ts";
import { json } from "../http/errors.ts";
import { type Route, routeOf } from "../http/router.ts";
import { callerOf } from "../http/context.ts";
import { AUDIT_PATH, auditPage } from "../pages/audit.tsx";
import { page } from "../http/page.ts";
import { personPage, type PersonOf } from "../http/session.ts";

export interface AuditRouteDeps {
  readonly auditService: Pick<AuditService, "export" | "list" | "record">;
}

const QUERY = compileQuery(AuditQuery);

const UNCACHED = { "cache-control": "no-store", vary: "Accept" } as const;

const UTF_8 = new TextEncoder();

/** A page of the log as JSON, or all of it as newline-delimited JSON. */
export function auditRoutes({ auditService }: AuditRouteDeps): readonly Route[] {
  return [
    routeOf(API.listAudit, async (context) => {
      const caller = callerOf(context);
      const asked = checkAudit(readQuery(context.search, QUERY));
      if (namesNdjson(context.request)) {
        return new Response(streamOf(auditService.export(caller, asked)), {
          headers: { "content-type": "application/x-ndjson", ...UNCACHED },
        });
      }
      const { rows, before } = await auditService.list(caller, asked);
      return json(auditJson(rows, before), 200, UNCACHED);
    }),
  ];
}

/** Reads a batch when the client has taken the one before, so that memory holds two at most. */
function streamOf(steps: AsyncGenerator<readonly AuditRow[]>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      // A database in this thread would otherwise block the event loop for the whole export.
      await nextTurn();
      const step: IteratorResult<readonly AuditRow[], unknown> = await steps.next();
      if (step.done === true) controller.close();
      else controller.enqueue(UTF_8.encode(auditLines(step.value)));
    },
    async cancel() {
      await steps.return(undefined);
    },
  });
}

export interface AuditPageDeps {
  readonly auditService: Pick<AuditService, "list">;
  readonly personOf: PersonOf;
}

const PAGE_QUERY = compileQuery(AuditQuery);

/** The audit log for people, filtered by the parameters of /v1/audit. */
export function auditPages({ auditService, personOf }: AuditPageDeps): readonly Route[] {
  return [
    personPage(personOf, "GET", AUDIT_PATH, async ({ search }, person) => {
      const asked = checkAudit(readQuery(withoutEmpty(search), PAGE_QUERY));
      const { rows, before } = await auditService.list(person.caller, asked);
      const next = new URLSearchParams(withoutEmpty(search));
      if (before !== null) next.set("cursor", auditCursor(before));
      const older = before === null ? null : `${AUDIT_PATH}?${next.toString()}`;
      return page("own", auditPage({ user: person, entries: rows, kind: asked.kinds[0] ?? null, older }));
    }),
  ];
}

/** Without empty fields, which forms send too. */
function withoutEmpty(search: string): string {
  return new URLSearchParams([...new URLSearchParams(search)].filter(([, value]) => value !== "")).toString();
}
