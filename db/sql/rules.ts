import { and, asc, desc, eq, getTableColumns, gte, isNotNull } from "drizzle-orm";
import { parsePolicy } from "../../src/core/action-policy.ts";
import type { RuleStore } from "../../src/core/account-rules.ts";
import { readFact, RULES_VERSION } from "../commands/facts.ts";
import * as commands from "../commands/rules.ts";
import type { StoreContext } from "./context.ts";
import { read } from "./read.ts";
import { without } from "./rows.ts";

const ALL = read({}, ({ db, tables: { rules } }) =>
  db
    .select(without(getTableColumns(rules), ["position"]))
    .from(rules)
    .orderBy(asc(rules.accountId), asc(rules.position)),
);

const OF_ACCOUNT = read({ accountId: "text" }, ({ db, tables: { rules } }, arg) =>
  db
    .select(without(getTableColumns(rules), ["position"]))
    .from(rules)
    .where(eq(rules.accountId, arg.accountId))
    .orderBy(asc(rules.position)),
);

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
    list: (accountId) => (accountId === null ? ALL.all(reader, {}) : OF_ACCOUNT.all(reader, { accountId })),
    async ruled(accountId, since, limit) {
      const rows = await RULED.all(reader, { accountId, since, limit });
      return rows.flatMap(({ policy }) => (policy === null ? [] : (parsePolicy(policy) ?? [])));
    },
    replace: (write) => writer.run(commands.replace, { ...write, version: crypto.randomUUID() }),
    recordRefusal: (expected, audit) => writer.run(commands.recordRefusal, { expected, audit }),
  };
}
