import { eq } from "drizzle-orm";
import type { AuditEntry } from "../../src/core/audit.ts";
import type { RulesWrite } from "../../src/core/account-rules.ts";
import { rulesLock } from "../sql/locks.ts";
import { addToAudit } from "./audit.ts";
import { command, type Tx } from "./command.ts";
import { FACT, RULES_VERSION, setFact } from "./facts.ts";

/** The version of the rules of all accounts: a create is decided by those that are in force when it is committed. */
export async function readRulesVersion({ lists }: Pick<Tx, "lists">): Promise<string> {
  const [rows] = await lists.find(FACT, [{ name: RULES_VERSION }]);
  return rows?.[0]?.value ?? "";
}

/** See `RuleStore.replace`. `version` is a new random value. */
export const replace = command(
  async (tx, { accountId, rules: rows, expected, audit, version }: RulesWrite & { readonly version: string }) => {
    if ((await readRulesVersion(tx)) !== expected) return false;
    const { rules } = tx.tables;
    await tx.db.delete(rules).where(eq(rules.accountId, accountId));
    for (const [position, row] of rows.entries()) await tx.db.insert(rules).values({ ...row, position });
    await addToAudit(tx, audit);
    await setFact(tx, RULES_VERSION, version);
    return true;
  },
  () => [rulesLock],
);

/** See `RuleStore.recordRefusal`. */
export const recordRefusal = command(
  async (tx, { expected, audit }: Readonly<{ expected: string; audit: AuditEntry }>) => {
    if ((await readRulesVersion(tx)) !== expected) return false;
    await addToAudit(tx, audit);
    return true;
  },
);
