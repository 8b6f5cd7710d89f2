import { type Audited, auditOf } from "../domain/audit.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { AUDIT_STEP_ROWS, LIST_LIMIT_DEFAULT } from "../domain/limits.ts";
import type { AuditPage, AuditQuery, AuditRow, AuditStore } from "../ports/audit.ts";
import type { Clock } from "../ports/clock.ts";

/** What is asked of the log; `limit` null: a page, or of an export everything. */
export type AuditRequest = Omit<AuditQuery, "accountId" | "limit"> & { readonly limit: number | null };

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
