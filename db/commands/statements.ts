import type { StatementResult, Statement } from "../sql/sql.ts";
import { command, type DbConnection } from "./command.ts";

/** Runs statements in order, after all other commands of the commit. */
export const execute = {
  ...command(async (tx, statements: readonly Statement[]) => {
    const done: StatementResult[] = [];
    // Stop at the first failure: on a full disk, SQLite ends the transaction, and the next statement would commit on its own.
    for (const statement of statements) done.push(await tx.run(statement));
    return done;
  }),
  turn: "create",
} as const;

/** Runs statements in one transaction of their own. Returns what each did. */
export async function runStatements(
  connection: Pick<DbConnection, "transact">,
  statements: readonly Statement[],
): Promise<readonly StatementResult[]> {
  const [done] = await connection.transact([{ command: execute, args: [statements] }]);
  // Safe: the command returned it.
  return done as readonly StatementResult[];
}
