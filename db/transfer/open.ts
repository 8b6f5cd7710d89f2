import { TRANSFER_CALL_MS_MAX } from "../../src/core/limits.ts";
import { openPostgres, type PostgresSql } from "../postgres/connection.ts";
import { migratePostgres } from "../postgres/migrate.ts";

/** Opens the target and makes its tables. Throws the error of PostgreSQL or of the network if it can't be used. */
export async function openTransferTarget(url: string, now: Date): Promise<PostgresSql> {
  const sql = openPostgres(url, { callMsMax: TRANSFER_CALL_MS_MAX, transactionMsMax: TRANSFER_CALL_MS_MAX });
  try {
    await migratePostgres(sql, now);
    return sql;
  } catch (error) {
    await sql.close();
    throw error;
  }
}
