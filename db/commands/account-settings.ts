/** What owners set for an account: hosts that callbacks may go to, and settings for calls to a host. */
import { and, asc, eq, ne } from "drizzle-orm";
import type { CallbackHostStore } from "../../src/core/account-store.ts";
import type { AuditEntry } from "../../src/core/audit.ts";
import type { HostSettings, HostSettingsRow, HostSettingsStore } from "../../src/core/host-settings.ts";
import { CALLBACK_HOSTS_MAX, HOST_SETTINGS_MAX } from "../../src/core/limits.ts";
import { accountLock } from "../sql/locks.ts";
import { all, countRows, findRow, hasValues, qb } from "../sql/read.ts";
import { addIfWritten, addToAudit } from "./audit.ts";
import { command } from "./command.ts";
import { HOST_SETTINGS_VERSION, readVersion } from "./facts.ts";
import { callbackHosts, hostSettings } from "../tables.ts";
import type { StoreAccess } from "../sql/writer.ts";

/** Lists a callback host. If it is listed already, it keeps its time. */
export const putCallbackHost = command<CallbackHostStore["put"]>(
  async (tx, row, audit) => {
    const isOther = and(eq(callbackHosts.accountId, row.accountId), ne(callbackHosts.host, row.host));
    if ((await countRows(tx, callbackHosts, isOther)) >= CALLBACK_HOSTS_MAX) return "full";
    await tx.db.insert(callbackHosts).values(row).onConflictDoNothing();
    await addToAudit(tx, audit);
    return "written";
  },
  ({ accountId }) => [accountLock(accountId)],
);

export const removeCallbackHost = command<CallbackHostStore["remove"]>(async (tx, accountId, host, audit) => {
  const isHost = hasValues(callbackHosts, { accountId, host });
  const removed = tx.db.delete(callbackHosts).where(isHost).returning();
  return addIfWritten(tx, removed, audit);
});

/** Writes the settings of a host. The settings for all hosts (an empty host) don't count towards the limit. */
export const putHostSettings = command(
  async (tx, row: typeof hostSettings.$inferInsert, audit: AuditEntry, shown: Date | null | undefined) => {
    const { accountId, host, ...values } = row;
    const before = shown === undefined ? null : await findRow(tx, hostSettings, { accountId, host });
    if (shown !== undefined && before?.updatedAt.getTime() !== shown?.getTime()) return "changed";
    const isOther = and(eq(hostSettings.accountId, accountId), ne(hostSettings.host, host), ne(hostSettings.host, ""));
    if (host !== "" && (await countRows(tx, hostSettings, isOther)) >= HOST_SETTINGS_MAX) return "full";
    const target = [hostSettings.accountId, hostSettings.host];
    await tx.db.insert(hostSettings).values(row).onConflictDoUpdate({ target, set: values });
    await addToAudit(tx, audit, HOST_SETTINGS_VERSION);
    return "written";
  },
  ({ accountId }) => [accountLock(accountId)],
);

export const removeHostSettings = command<HostSettingsStore["remove"]>(async (tx, accountId, host, audit) => {
  const isRow = hasValues(hostSettings, { accountId, host });
  const removed = tx.db.delete(hostSettings).where(isRow).returning();
  return addIfWritten(tx, removed, audit, HOST_SETTINGS_VERSION);
});

/** The store of the hosts to which callbacks of keys with a hold or a limit may go. */
export function createCallbackHostStore({ reader, writer }: StoreAccess): CallbackHostStore {
  return {
    ...writer.methods({ put: putCallbackHost, remove: removeCallbackHost }),
    list(accountId) {
      const ofAccount = qb.select().from(callbackHosts).where(eq(callbackHosts.accountId, accountId));
      return all(reader, ofAccount.orderBy(asc(callbackHosts.host)));
    },
  };
}

/** `text` and `parse` are passed in, since their schemas would slow down the start of the writer thread. */
export function createHostSettingsStore(
  { reader, writer }: StoreAccess,
  text: (settings: HostSettings) => string,
  parse: (text: string) => HostSettings,
): HostSettingsStore {
  const { accountId: owner, host } = hostSettings;
  return {
    ...writer.methods({ remove: removeHostSettings }),
    version: () => readVersion(reader, HOST_SETTINGS_VERSION),
    async list(accountId) {
      const isOfAccount = accountId === null ? undefined : eq(owner, accountId);
      const rows = await all(reader, qb.select().from(hostSettings).where(isOfAccount).orderBy(owner, host));
      return rows.map(({ settings, ...row }): HostSettingsRow => ({ ...row, settings: parse(settings) }));
    },
    put: ({ settings, ...row }, audit, shown) =>
      writer.run(putHostSettings, { ...row, settings: text(settings) }, audit, shown),
  };
}
