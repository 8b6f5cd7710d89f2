import { and, desc, eq, getTableColumns, gte, isNotNull, sql } from "drizzle-orm";
import { parseActionPolicy } from "../../src/core/action-policy.ts";
import type { RuleStore } from "../../src/core/account-rules.ts";
import { readFact, RULES_VERSION, rulesVersionOf } from "../commands/facts.ts";
import * as commands from "../commands/rules.ts";
import type { StoreContext } from "./context.ts";
import { read } from "./read.ts";

const VERSIONS = read({}, ({ db, tables: { facts, rules } }) => {
  const ruled = db.select({ accountId: rules.accountId }).from(rules).groupBy(rules.accountId).as("ruled");
  return db
    .select({ accountId: ruled.accountId, version: facts.value })
    .from(ruled)
    .leftJoin(facts, eq(facts.name, sql`${rulesVersionOf("")} || ${ruled.accountId}`));
});

const OF_ACCOUNT = read({ accountId: "text" }, ({ db, tables: { rules } }, arg) => {
  const { position, ...columns } = getTableColumns(rules);
  return db.select(columns).from(rules).where(eq(rules.accountId, arg.accountId)).orderBy(position);
});

const RULED = read(
  { accountId: "text", since: "time", limit: "number" },
  ({ db, tables: { actions } }, { accountId, since, limit }) =>
    db
      .select({ policy: actions.policy })
      .from(actions)
      .where(and(eq(actions.accountId, accountId), isNotNull(actions.policy), gte(actions.createdAt, since)))
      .orderBy(desc(actions.createdAt))
      .limit(limit),
);

/** The rules of accounts. */
export function createRuleStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): RuleStore {
  return {
    version: async () => (await readFact(reader, RULES_VERSION)) ?? "",
    async versions() {
      const rows = await VERSIONS.all(reader, {});
      return new Map(rows.map(({ accountId, version }) => [accountId, version ?? ""]));
    },
    versionOf: async (accountId) => (await readFact(reader, rulesVersionOf(accountId))) ?? "",
    list: (accountId) => OF_ACCOUNT.all(reader, { accountId }),
    async ruled(accountId, since, limit) {
      const rows = await RULED.all(reader, { accountId, since, limit });
      return rows.flatMap(({ policy }) => (policy === null ? [] : (parseActionPolicy(policy) ?? [])));
    },
    replace: writer.method(commands.replace),
    recordRefusal: writer.method(commands.recordRefusal),
  };
}
