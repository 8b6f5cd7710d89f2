import { hostRulesText, parseHostRules } from "../../src/api/host-settings.ts";
import { and, asc, eq, sql } from "drizzle-orm";
import { HOST_SETTINGS_MAX } from "../../src/core/limits.ts";
import { type HostSettingsRow, type HostSettingsStore } from "../../src/core/host-settings.ts";
import { auditChange } from "./audit.ts";
import type { StoreContext } from "./context.ts";
import { countOf, randomText } from "./dialect.ts";
import { hostSettingsLock } from "./locks.ts";
import { type Args, changed, insertWhere, prepare, query, valuesOf } from "./query.ts";
import { facts, hostSettings } from "../libsql/schema.ts";

/** The fact that changes with every write, for nodes that cache the settings. */
const VERSION_FACT = "host settings";

const VERSION = prepare(() => query.select().from(facts).where(eq(facts.name, VERSION_FACT)));

const NEXT_VERSION = prepare(() =>
  insertWhere(facts, changed, { name: VERSION_FACT, value: randomText }).onConflictDoUpdate({
    target: facts.name,
    set: { value: randomText },
  }),
);

const { accountId: account, host: hostColumn } = hostSettings;

const ALL = prepare(() => query.select().from(hostSettings).orderBy(asc(account), asc(hostColumn)));

const OF_ACCOUNT = prepare((arg: Args<"accountId">) =>
  query.select().from(hostSettings).where(eq(account, arg.accountId)).orderBy(asc(hostColumn)),
);

const isRow = (arg: Args<"accountId" | "host">) => and(eq(account, arg.accountId), eq(hostColumn, arg.host));

const ROW = ["accountId", "host", "settings", "updatedAt", "updatedBy"] as const;

/** The limit is part of the statement, so racing writes can't exceed it. The row of all hosts doesn't count. */
const PUT = prepare((arg: Args<(typeof ROW)[number]>) => {
  const others = sql`(select 1 from ${hostSettings} where ${account} = ${arg.accountId} and ${hostColumn} <> ''
    and ${hostColumn} <> ${arg.host} limit ${HOST_SETTINGS_MAX})`;
  const hasRoom = sql`(${arg.host} = '' or ${countOf(others)} < ${HOST_SETTINGS_MAX})`;
  return insertWhere(hostSettings, hasRoom, valuesOf(arg, ROW)).onConflictDoUpdate({
    target: [account, hostColumn],
    set: valuesOf(arg, ["settings", "updatedAt", "updatedBy"]),
  });
});

const REMOVE = prepare((arg: Args<"accountId" | "host">) => query.delete(hostSettings).where(isRow(arg)));

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
    async put({ rules, ...row }, audit) {
      const put = PUT.bind({ ...row, settings: hostRulesText(rules) });
      const [written] = await writer.write(
        [put, ...auditChange(audit), NEXT_VERSION.bind({})],
        [hostSettingsLock(row.accountId)],
      );
      return written?.changes === 1 ? "written" : "full";
    },
    async remove(accountId, host, audit) {
      const removed = REMOVE.bind({ accountId, host });
      const [done] = await writer.write([removed, ...auditChange(audit), NEXT_VERSION.bind({})]);
      return done?.changes === 1;
    },
  };
}
