import { HOST_ACTIONS_LOOKED_AT_MAX } from "../../src/domain/limits.ts";
import type { Sql } from "./sql.ts";

// Of a host that nobody ever lets through there may be any number: only the newest are looked at.
const CALLED = `SELECT j.value AS hostname FROM json_each(?) j WHERE EXISTS (
  SELECT 1 FROM (SELECT attempts, run FROM actions WHERE account_id = ? AND hostname = j.value ORDER BY id DESC LIMIT ?)
  WHERE attempts > 0 OR run > 1)`;

/** Those of the hosts to which the account has made an attempt. A further run was begun after one. */
export async function findCalledHosts(
  sql: Sql,
  accountId: string,
  hostnames: readonly string[],
): Promise<ReadonlySet<string>> {
  if (hostnames.length === 0) return new Set();
  const names = JSON.stringify([...new Set(hostnames)]);
  const rows = await sql.read({ sql: CALLED, args: [names, accountId, HOST_ACTIONS_LOOKED_AT_MAX] });
  return new Set(rows.map((row) => String(row["hostname"])));
}
