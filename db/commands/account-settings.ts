import { and, eq, ne } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import { CALLBACK_HOSTS_MAX, HOST_SETTINGS_MAX } from "../../src/core/limits.ts";
import { hasValues } from "../sql/dialect.ts";
import { accountLock } from "../sql/locks.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command, countRows, type Tables, type Tx } from "./command.ts";
import { HOST_SETTINGS_VERSION, setFact } from "./facts.ts";

/** What accounts set for hosts: each kind has a table, and a write counts its rows and is audited. */

interface Audited {
  readonly audit: AuditEntry;
}

interface Place {
  readonly accountId: string;
  readonly host: string;
}

/** Lists a host for callbacks; one that is listed keeps its time. `full`: the account has as many others as it may. */
export const putCallbackHost = command(
  async (tx, { row, audit }: Audited & { readonly row: Tables["callbackHosts"]["$inferInsert"] }) => {
    const { callbackHosts } = tx.tables;
    const isOther = and(eq(callbackHosts.accountId, row.accountId), ne(callbackHosts.host, row.host));
    if ((await countRows(tx, callbackHosts, isOther)) >= CALLBACK_HOSTS_MAX) return "full";
    await tx.db.insert(callbackHosts).values(row).onConflictDoNothing();
    await addToAudit(tx, audit);
    return "written";
  },
  ({ row }) => [accountLock(row.accountId)],
);

/** Returns whether the host was listed. */
export const removeCallbackHost = command(async (tx, { accountId, host, audit }: Audited & Place) => {
  const { callbackHosts } = tx.tables;
  const isHost = hasValues(callbackHosts, { accountId, host });
  const removed = await tx.db.delete(callbackHosts).where(isHost).returning({ host: callbackHosts.host });
  return addIfWritten(tx, removed, audit);
});

interface Versioned extends Audited {
  /** A new random value. */
  readonly version: string;
}

/** Writes the settings for a host, or for all where it is empty. `full`: the account has as many other hosts with settings as it may. */
export const putHostSettings = command(
  async (tx, { row, ...written }: Versioned & { readonly row: Tables["hostSettings"]["$inferInsert"] }) => {
    const { hostSettings } = tx.tables;
    const { accountId, host, ...values } = row;
    const isOther = and(eq(hostSettings.accountId, accountId), ne(hostSettings.host, host), ne(hostSettings.host, ""));
    if (host !== "" && (await countRows(tx, hostSettings, isOther)) >= HOST_SETTINGS_MAX) return "full";
    const target = [hostSettings.accountId, hostSettings.host];
    await tx.db.insert(hostSettings).values(row).onConflictDoUpdate({ target, set: values });
    await tell(tx, written);
    return "written";
  },
  ({ row }) => [accountLock(row.accountId)],
);

/** Removes the settings for a host; returns whether there were some. */
export const removeHostSettings = command(async (tx, { accountId, host, ...written }: Versioned & Place) => {
  const { hostSettings } = tx.tables;
  const isRow = hasValues(hostSettings, { accountId, host });
  const removed = await tx.db.delete(hostSettings).where(isRow).returning({ host: hostSettings.host });
  if (removed.length > 0) await tell(tx, written);
  return removed.length > 0;
});

async function tell(tx: Tx, { audit, version }: Versioned): Promise<void> {
  await addToAudit(tx, audit);
  await setFact(tx, HOST_SETTINGS_VERSION, version);
}
