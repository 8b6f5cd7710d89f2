import { setImmediate as nextTurn } from "node:timers/promises";
import type { AuditDesk } from "../../accounts/audit.ts";
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
  readonly auditDesk: Pick<AuditDesk, "export" | "list" | "record">;
}

const QUERY = compileQuery(AuditQuery);
/** What a cache may keep of a log is nothing. */
const UNKEPT = { "cache-control": "no-store", vary: "Accept" } as const;
const UTF_8 = new TextEncoder();

/** Who did what: a page as JSON, or all of it as lines of JSON. */
export function auditRoutes({ auditDesk }: AuditRouteDeps): readonly Route[] {
  return [
    routeOf(API.listAudit, async (visit) => {
      const caller = callerOf(visit);
      const asked = checkAudit(readQuery(visit.search, QUERY));
      if (namesNdjson(visit.request)) {
        return new Response(streamOf(auditDesk.export(caller, asked)), {
          headers: { "content-type": "application/x-ndjson", ...UNKEPT },
        });
      }
      const { rows, before } = await auditDesk.list(caller, asked);
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
