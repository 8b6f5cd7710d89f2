import type { AuditEntry } from "../../src/core/audit.ts";
import type { Tx } from "./command.ts";

/** Adds an entry to the audit log; none if it is undefined. */
export async function addToAudit({ db, tables: { audit } }: Tx, entry: AuditEntry | undefined): Promise<void> {
  if (entry !== undefined) await db.insert(audit).values(entry);
}

/** Adds the entry if any row was written; returns whether. */
export async function addIfWritten(tx: Tx, rows: readonly unknown[], entry: AuditEntry | undefined): Promise<boolean> {
  if (rows.length > 0) await addToAudit(tx, entry);
  return rows.length > 0;
}
