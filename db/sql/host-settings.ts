import { hostRulesText, parseHostRules } from "../../src/api/host-settings.ts";
import { asc, eq } from "drizzle-orm";
import type { HostSettingsRow, HostSettingsStore } from "../../src/core/host-settings.ts";
import { HOST_SETTINGS_VERSION } from "../commands/facts.ts";
import * as commands from "../commands/host-settings.ts";
import type { StoreContext } from "./context.ts";
import { type Args, prepare, query } from "./query.ts";
import { facts, hostSettings } from "../libsql/schema.ts";

const VERSION = prepare(() => query.select().from(facts).where(eq(facts.name, HOST_SETTINGS_VERSION)));

const { accountId: account, host: hostColumn } = hostSettings;

const ALL = prepare(() => query.select().from(hostSettings).orderBy(asc(account), asc(hostColumn)));

const OF_ACCOUNT = prepare((arg: Args<"accountId">) =>
  query.select().from(hostSettings).where(eq(account, arg.accountId)).orderBy(asc(hostColumn)),
);

/** What accounts set for hosts. */
export function createHostSettingsStore({
  sql: reader,
  writer,
}: Pick<StoreContext, "sql" | "writer">): HostSettingsStore {
  return {
    version: async () => (await VERSION.read(reader, {}))[0]?.value ?? "",
    async list(accountId) {
      const rows = await (accountId === null ? ALL.read(reader, {}) : OF_ACCOUNT.read(reader, { accountId }));
      return rows.map(({ settings, ...row }): HostSettingsRow => ({ ...row, rules: parseHostRules(settings) }));
    },
    put: ({ rules, ...row }, audit) =>
      writer.run(commands.put, {
        row: { ...row, settings: hostRulesText(rules) },
        audit,
        version: crypto.randomUUID(),
      }),
    remove: (accountId, host, audit) =>
      writer.run(commands.remove, { accountId, host, audit, version: crypto.randomUUID() }),
  };
}
