import { asc, eq } from "drizzle-orm";
import { hostRulesText, parseHostRules } from "../../src/api/host-settings.ts";
import type { CallbackHostStore } from "../../src/core/account-store.ts";
import type { HostSettingsRow, HostSettingsStore } from "../../src/core/host-settings.ts";
import * as commands from "../commands/account-settings.ts";
import { HOST_SETTINGS_VERSION } from "../commands/facts.ts";
import { callbackHosts, facts, hostSettings } from "../libsql/schema.ts";
import type { StoreContext } from "./context.ts";
import { type Args, prepare, query } from "./query.ts";

/** What accounts set for hosts. Nodes that keep it in memory read the version of its kind. */

type Settings = Pick<StoreContext, "sql" | "writer">;

const CALLBACK_HOSTS = prepare((arg: Args<"accountId">) =>
  query.select().from(callbackHosts).where(eq(callbackHosts.accountId, arg.accountId)).orderBy(asc(callbackHosts.host)),
);

/** Hosts that callbacks of keys with a hold or a limit may go to. */
export function createCallbackHostStore({ sql: reader, writer }: Settings): CallbackHostStore {
  return {
    list: (accountId) => CALLBACK_HOSTS.read(reader, { accountId }),
    put: (row, audit) => writer.run(commands.putCallbackHost, { row, audit }),
    remove: (accountId, host, audit) => writer.run(commands.removeCallbackHost, { accountId, host, audit }),
  };
}

const VERSION = prepare(() => query.select().from(facts).where(eq(facts.name, HOST_SETTINGS_VERSION)));

const ALL = prepare(() =>
  query.select().from(hostSettings).orderBy(asc(hostSettings.accountId), asc(hostSettings.host)),
);

const OF_ACCOUNT = prepare((arg: Args<"accountId">) =>
  query.select().from(hostSettings).where(eq(hostSettings.accountId, arg.accountId)).orderBy(asc(hostSettings.host)),
);

/** The settings of calls to hosts. */
export function createHostSettingsStore({ sql: reader, writer }: Settings): HostSettingsStore {
  return {
    version: async () => (await VERSION.read(reader, {}))[0]?.value ?? "",
    async list(accountId) {
      const rows = await (accountId === null ? ALL.read(reader, {}) : OF_ACCOUNT.read(reader, { accountId }));
      return rows.map(({ settings, ...row }): HostSettingsRow => ({ ...row, rules: parseHostRules(settings) }));
    },
    put: ({ rules, ...row }, audit) =>
      writer.run(commands.putHostSettings, {
        row: { ...row, settings: hostRulesText(rules) },
        audit,
        version: crypto.randomUUID(),
      }),
    remove: (accountId, host, audit) =>
      writer.run(commands.removeHostSettings, { accountId, host, audit, version: crypto.randomUUID() }),
  };
}
