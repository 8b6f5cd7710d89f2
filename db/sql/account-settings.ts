import { asc, eq } from "drizzle-orm";
import { hostSettingsText, parseHostSettings } from "../../src/api/host-settings.ts";
import type { CallbackHostStore } from "../../src/core/account-store.ts";
import type { HostSettingsRow, HostSettingsStore } from "../../src/core/host-settings.ts";
import * as commands from "../commands/account-settings.ts";
import { HOST_SETTINGS_VERSION, readFact } from "../commands/facts.ts";
import type { StoreContext } from "./context.ts";
import { read, readByAccount } from "./read.ts";

/** What accounts set for hosts. Nodes that keep it in memory read the version of its kind. */

type Settings = Pick<StoreContext, "sql" | "writer">;

const CALLBACK_HOSTS = read({ accountId: "text" }, ({ db, tables: { callbackHosts } }, arg) =>
  db.select().from(callbackHosts).where(eq(callbackHosts.accountId, arg.accountId)).orderBy(asc(callbackHosts.host)),
);

/** Hosts that callbacks of keys with a hold or a limit may go to. */
export function createCallbackHostStore({ sql: reader, writer }: Settings): CallbackHostStore {
  return {
    list: (accountId) => CALLBACK_HOSTS.all(reader, { accountId }),
    put: writer.method(commands.putCallbackHost),
    remove: writer.method(commands.removeCallbackHost),
  };
}

const list = readByAccount(({ db, tables: { hostSettings } }, isOf) => {
  const { accountId, host } = hostSettings;
  return db.select().from(hostSettings).where(isOf(accountId)).orderBy(accountId, host);
});

/** The settings of calls to hosts. */
export function createHostSettingsStore({ sql: reader, writer }: Settings): HostSettingsStore {
  return {
    version: async () => (await readFact(reader, HOST_SETTINGS_VERSION)) ?? "",
    async list(accountId) {
      const rows = await list(reader, accountId);
      return rows.map(({ settings, ...row }): HostSettingsRow => ({ ...row, settings: parseHostSettings(settings) }));
    },
    put: ({ settings, ...row }, audit) =>
      writer.run(commands.putHostSettings, { ...row, settings: hostSettingsText(settings) }, audit),
    remove: writer.method(commands.removeHostSettings),
  };
}
