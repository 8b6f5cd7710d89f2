import { asc, eq, getTableColumns } from "drizzle-orm";
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

/** The rules of accounts. */
export function createRuleStore({ sql: reader, writer }: Pick<StoreContext, "sql" | "writer">): RuleStore {
  return {
    version: async () => (await readFact(reader, RULES_VERSION)) ?? "",
    list: (accountId) => (accountId === null ? ALL.all(reader, {}) : OF_ACCOUNT.all(reader, { accountId })),
    replace: (write) => writer.run(commands.replace, { ...write, version: crypto.randomUUID() }),
    recordRefusal: (expected, audit) => writer.run(commands.recordRefusal, { expected, audit }),
  };
}
