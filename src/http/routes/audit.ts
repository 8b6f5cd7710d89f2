import { setImmediate as nextTurn } from "node:timers/promises";
import type { AuditService } from "../../accounts/audit.ts";
import { auditJson, auditLines, AuditQuery, checkAudit } from "../../contract/audit.ts";
import { API } from "../../contract/operations.ts";
import { compileQuery } from "../../contract/query.ts";
import type { AuditRow } from "../../ports/audit.ts";
import { namesNdjson } from "../accept.ts";
import { json } from "../answer.ts";
import { readQuery } from "../query.ts";
import { type Route, routeOf } from "../route.ts";
import { callerOf } from "../visit.ts";

export interface AuditRouteDeps {
  readonly auditService: Pick<AuditService, "export" | "list" | "record">;
}

const QUERY = compileQuery(AuditQuery);
/** What a cache may keep of a log is nothing. */
const UNKEPT = { "cache-control": "no-store", vary: "Accept" } as const;
const UTF_8 = new TextEncoder();

/** Who did what: a page as JSON, or all of it as lines of JSON. */
export function auditRoutes({ auditService }: AuditRouteDeps): readonly Route[] {
  return [
    routeOf(API.listAudit, async (context) => {
      const caller = callerOf(context);
      const asked = checkAudit(readQuery(context.search, QUERY));
      if (namesNdjson(context.request)) {
        return new Response(streamOf(auditService.export(caller, asked)), {
          headers: { "content-type": "application/x-ndjson", ...UNKEPT },
        });
      }
      const { rows, before } = await auditService.list(caller, asked);
      return json(auditJson(rows, before), 200, UNKEPT);
    }),
  ];
}

/** One step is read when the reader has taken the one before, so that memory holds two at most. */
function streamOf(steps: AsyncGenerator<readonly AuditRow[]>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      // A database without a thread of its own would hold everybody up for as long as the export lasts.
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
