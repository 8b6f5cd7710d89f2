import type { AuditEntry } from "../../src/core/audit.ts";
import type { Tx } from "./command.ts";

/** Adds an entry to the audit log; none if it is undefined. */
export async function addToAudit({ db, tables: { audit } }: Tx, entry: AuditEntry | undefined): Promise<void> {
  if (entry !== undefined) await db.insert(audit).values(entry);
}
