/** Whether who makes or changes something still manages the account when it is written. */
import { and, eq, isNotNull } from "drizzle-orm";
import type { ApiKey } from "../../src/core/account-store.ts";
import type { Made } from "../../src/core/roles.ts";
import { hasRow, hasValues } from "../sql/read.ts";
import type { Tx } from "./command.ts";
import { apiKeys, members } from "../tables.ts";

/** A person must own the account, and a key must not have been revoked. Callers hold a lock that `revokeKey`, `changeRole` and `remove` take. */
export async function isOfManager(
  tx: Tx,
  { accountId, createdById, createdBy }: Made & Pick<ApiKey, "accountId">,
): Promise<boolean> {
  if (createdById === null) return true;
  const isPerson = createdBy === null || createdBy.startsWith("user:");
  if (isPerson) return hasRow(tx, members, hasValues(members, { accountId, personId: createdById, role: "owner" }));
  return !(await hasRow(tx, apiKeys, and(eq(apiKeys.id, createdById), isNotNull(apiKeys.revokedAt))));
}
