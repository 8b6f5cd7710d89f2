import { setImmediate as nextTurn } from "node:timers/promises";
import { LIST_LIMIT_DEFAULT, AUDIT_SCANS_MAX, AUDIT_STEP_ROWS } from "../core/limits.ts";
import { type Caller, authorize } from "../core/roles.ts";
import type { Clock } from "../core/clock.ts";
import {
  type AuditFilter,
  type AuditStore,
  type Audited,
  auditOf,
  type AuditPage,
  type AuditRow,
} from "../core/audit.ts";

/** `limit` null: the default of a page, or everything for an export. */
type AuditRequest = Omit<AuditFilter, "accountId" | "limit"> & { readonly limit: number | null };

/** Every use case of the audit log. */
export type AuditService = ReturnType<typeof createAuditService>;

export function createAuditService(audit: Pick<AuditStore, "record" | "page">, clock: Pick<Clock, "now">) {
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
