import { and, eq, gt, isNull, or, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { Tables } from "./command.ts";

/** See `TeamStore.managers`. The builder has no recursion; `union` ends it, even if rows were altered into a cycle. */
export function managersOf(
  { apiKeys, members }: Pick<Tables, "apiKeys" | "members">,
  accountId: string | Placeholder,
  now: Date | Placeholder,
): SQL<{ readonly id: string }> {
  const { id, replaces } = apiKeys;
  const isOwner = and(sql`${apiKeys.accountId} = ${accountId}`, eq(apiKeys.role, "owner"));
  const isLive = and(isNull(apiKeys.revokedAt), or(isNull(apiKeys.expiresAt), gt(apiKeys.expiresAt, now)));
  return sql`with recursive managers (id) as (
      select ${id} from ${apiKeys} where ${and(isOwner, isLive)}
      union
      select ${replaces} from managers join ${apiKeys} on ${id} = managers.id where ${replaces} is not null)
    select managers.id as id from managers
    union all
    select ${members.personId} as id from ${members} where ${members.accountId} = ${accountId} and ${members.role} = 'owner'`;
}
