import { and, desc, eq, getTableColumns, gte, isNotNull, sql } from "drizzle-orm";
import type { RuleStore } from "../../src/core/account-rules.ts";
import type { ActionPolicy } from "../../src/core/action-policy.ts";
import { rulesLock } from "../sql/locks.ts";
import { all, qb } from "../sql/read.ts";
import { addToAudit } from "./audit.ts";
import { command, type Tx } from "./command.ts";
import { findEach } from "./lists.ts";
import { isOfManager } from "./makers.ts";
import { FACT, readVersion, RULES_VERSION, renewVersion, rulesVersionOf } from "./facts.ts";
import { actions, facts, rules } from "../libsql/schema.ts";
import type { StoreAccess } from "../sql/writer.ts";

/** Reads the version of each account's rules. A create is decided by the rules in force at its commit. */
export async function readRulesVersions(
  { lists }: Pick<Tx, "lists">,
  accountIds: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const names = Array.from(accountIds, (accountId) => ({ name: rulesVersionOf(accountId) }));
  const found = await findEach(lists, FACT, names, ({ name }) => name);
  return new Map(Array.from(accountIds, (id) => [id, found.get(rulesVersionOf(id))?.[0]?.value ?? ""]));
}

export const replaceRules = command<RuleStore["replace"]>(
  async (tx, { accountId, rules: rows, expected, audit, by }) => {
    if (by !== undefined && !(await isOfManager(tx, { accountId, ...by }))) return "not_manager";
    if ((await readVersion(tx, rulesVersionOf(accountId))) !== expected) return false;
    await tx.db.delete(rules).where(eq(rules.accountId, accountId));
    for (const [position, row] of rows.entries()) await tx.db.insert(rules).values({ ...row, position });
    await addToAudit(tx, audit, rulesVersionOf(accountId));
    await renewVersion(tx, RULES_VERSION);
    return true;
  },
  ({ accountId }) => [rulesLock(accountId)],
);

export const recordRefusal = command<RuleStore["recordRefusal"]>(async (tx, expected, audit) => {
  if ((await readVersion(tx, rulesVersionOf(audit.accountId))) !== expected) return false;
  await addToAudit(tx, audit);
  return true;
});

/** The store of rules. `parse` reads a policy; it is passed in, since its schema would slow the start of the writer thread. */
export function createRuleStore(
  { reader, writer }: StoreAccess,
  parse: (text: string) => ActionPolicy | undefined,
): RuleStore {
  return {
    ...writer.methods({ replace: replaceRules, recordRefusal }),
    version: () => readVersion(reader, RULES_VERSION),
    async versions() {
      const ruled = qb.select({ accountId: rules.accountId }).from(rules).groupBy(rules.accountId).as("ruled");
      const isOfAccount = eq(facts.name, sql`${sql.raw(`'${rulesVersionOf("")}'`)} || ${ruled.accountId}`);
      const { accountId } = ruled;
      const found = qb.select({ accountId, version: facts.value }).from(ruled).leftJoin(facts, isOfAccount);
      return new Map((await all(reader, found)).map((row) => [row.accountId, row.version ?? ""]));
    },
    versionOf: (accountId) => readVersion(reader, rulesVersionOf(accountId)),
    list(accountId) {
      const { position, ...columns } = getTableColumns(rules);
      return all(reader, qb.select(columns).from(rules).where(eq(rules.accountId, accountId)).orderBy(position));
    },
    async ruled(accountId, since, limit) {
      const { createdAt, policy } = actions;
      const isRuled = and(eq(actions.accountId, accountId), isNotNull(policy), gte(createdAt, since));
      const ruled = qb.select({ policy }).from(actions).where(isRuled).orderBy(desc(createdAt)).limit(limit);
      const rows = await all(reader, ruled);
      return rows.flatMap((row) => (row.policy === null ? [] : (parse(row.policy) ?? [])));
    },
  };
}
