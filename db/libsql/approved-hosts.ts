import { type HostOfKey, hostOfKey } from "../../src/domain/host-of-key.ts";
import { HOST_ACTIONS_LOOKED_AT_MAX } from "../../src/domain/limits.ts";
import type { Sql } from "./sql.ts";

// Of a host that many actions go to only the newest are looked at.
const APPROVED = `SELECT j.value AS pair FROM json_each(?) j WHERE EXISTS (
  SELECT 1 FROM (SELECT key_id, status, approved_at FROM actions
    WHERE account_id = ? AND hostname = json_extract(j.value, '$[1]') ORDER BY id DESC LIMIT ?)
  WHERE key_id = json_extract(j.value, '$[0]') AND status = 'completed' AND approved_at IS NOT NULL)`;

/** Those of the hosts to which a held call of the key was approved and has completed, by `hostOfKey`. */
export async function findApprovedHosts(
  sql: Sql,
  accountId: string,
  asked: readonly HostOfKey[],
): Promise<ReadonlySet<string>> {
  if (asked.length === 0) return new Set();
  const pairs = JSON.stringify([...new Set(asked.map(hostOfKey))].map((pair): unknown => JSON.parse(pair)));
  const rows = await sql.read({ sql: APPROVED, args: [pairs, accountId, HOST_ACTIONS_LOOKED_AT_MAX] });
  return new Set(rows.map((row) => String(row["pair"])));
}
