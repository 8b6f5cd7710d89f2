import { and, eq, ne } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import { ALL_HOSTS } from "../../src/core/host-settings.ts";
import { HOST_SETTINGS_MAX } from "../../src/core/limits.ts";
import { hostSettingsLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, countRows, type Tables } from "./command.ts";
import { HOST_SETTINGS_VERSION, setFact } from "./facts.ts";

interface Written {
  readonly audit: AuditEntry;
  /** A new random value. */
  readonly version: string;
}

/** Writes the settings for a host; `full`: the account has as many other hosts with settings as it may. */
export const put = command(
  async (tx, { row, audit, version }: Written & { readonly row: Tables["hostSettings"]["$inferInsert"] }) => {
    const { hostSettings } = tx.tables;
    const { accountId, host, ...values } = row;
    const isOther = and(
      eq(hostSettings.accountId, accountId),
      ne(hostSettings.host, host),
      ne(hostSettings.host, ALL_HOSTS),
    );
    const others = host === ALL_HOSTS ? 0 : await countRows(tx, hostSettings, isOther);
    if (others >= HOST_SETTINGS_MAX) return "full";
    const target = [hostSettings.accountId, hostSettings.host];
    await tx.db.insert(hostSettings).values(row).onConflictDoUpdate({ target, set: values });
    await addToAudit(tx, audit);
    await setFact(tx, HOST_SETTINGS_VERSION, version);
    return "written";
  },
  ({ row }) => [hostSettingsLock(row.accountId)],
);

interface Place {
  readonly accountId: string;
  readonly host: string;
}

/** Removes the settings for a host; returns whether there were some. */
export const remove = command(async (tx, { accountId, host, audit, version }: Written & Place) => {
  const { hostSettings } = tx.tables;
  const isRow = and(eq(hostSettings.accountId, accountId), eq(hostSettings.host, host));
  const removed = await tx.db.delete(hostSettings).where(isRow).returning({ host: hostSettings.host });
  if (removed.length === 0) return false;
  await addToAudit(tx, audit);
  await setFact(tx, HOST_SETTINGS_VERSION, version);
  return true;
});
