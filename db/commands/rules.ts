import { eq } from "drizzle-orm";
import type { RuleStore } from "../../src/core/account-rules.ts";
import { rulesLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, type Tx } from "./command.ts";
import { FACT, RULES_VERSION, renewVersion, rulesVersionOf } from "./facts.ts";

/** The version of each account's rules: a create is decided by those that are in force when it is committed. */
export async function readRulesVersions(
  { lists }: Pick<Tx, "lists">,
  accountIds: ReadonlySet<string>,
): Promise<ReadonlyMap<string, string>> {
  const asked = [...accountIds];
  const found = await lists.find(
    FACT,
    asked.map((accountId) => ({ name: rulesVersionOf(accountId) })),
  );
  return new Map(asked.map((accountId, n) => [accountId, found[n]?.[0]?.value ?? ""]));
}

async function isVersion(tx: Tx, accountId: string, expected: string): Promise<boolean> {
  return (await readRulesVersions(tx, new Set([accountId]))).get(accountId) === expected;
}

export const replace = command<RuleStore["replace"]>(
  async (tx, { accountId, rules: rows, expected, audit }) => {
    if (!(await isVersion(tx, accountId, expected))) return false;
    const { rules } = tx.tables;
    await tx.db.delete(rules).where(eq(rules.accountId, accountId));
    for (const [position, row] of rows.entries()) await tx.db.insert(rules).values({ ...row, position });
    await addToAudit(tx, audit);
    await renewVersion(tx, rulesVersionOf(accountId));
    await renewVersion(tx, RULES_VERSION);
    return true;
  },
  ({ accountId }) => [rulesLock(accountId)],
);

export const recordRefusal = command<RuleStore["recordRefusal"]>(async (tx, expected, audit) => {
  if (!(await isVersion(tx, audit.accountId, expected))) return false;
  await addToAudit(tx, audit);
  return true;
});
