import { type Column, type Placeholder, type SQL, sql } from "drizzle-orm";
import type { Actor } from "../../src/core/roles.ts";
import type { FilterValues } from "../../src/core/store.ts";
import { type Args, prepare } from "./query.ts";
import { actions } from "../libsql/schema.ts";
import type { Sql } from "./sql.ts";

/**
 * The values of a column that an index orders after the account: one look into the index for each, however many rows have
 * it. The builder has no recursion. `also` has to be in the condition of a partial index.
 */
export function valuesOf(
  column: Column,
  { accountId, also = sql`` }: { readonly accountId: Placeholder; readonly also?: SQL },
) {
  const first = (after: SQL) =>
    sql`(select ${column} from ${actions} where ${actions.accountId} = ${accountId}${also}${after}
      order by ${column} limit 1)`;
  return sql`recursive found (value) as (
      select ${first(sql``)}
      union all
      select ${first(sql` and ${column} > found.value`)} from found where found.value is not null)`;
}

const HOSTS = prepare((arg: Args<"accountId" | "limit">) => {
  const found = valuesOf(actions.hostname, { accountId: arg.accountId });
  return sql<{ readonly host: string }>`with ${found}
    select value as host from found where value is not null limit ${arg.limit}`;
});

/** With the name on the newest action of each: a key may be gone. */
const CREATORS = prepare((arg: Args<"accountId" | "limit">) => {
  const { accountId, keyId, id, createdBy } = actions;
  const isOfKey = sql` and ${keyId} <> ''`;
  return sql<{
    readonly key_id: string;
    readonly created_by: Actor;
  }>`with ${valuesOf(keyId, { accountId: arg.accountId, also: isOfKey })}
    select value as key_id, (select ${createdBy} from ${actions} where ${accountId} = ${arg.accountId}${isOfKey}
      and ${keyId} = found.value order by ${id} desc limit 1) as created_by
    from found where value is not null limit ${arg.limit}`;
});

/** What lists of an account can be filtered by, so many of each. Costs a look into an index for each. */
export async function findFilterValues(reader: Sql, accountId: string, limit: number): Promise<FilterValues> {
  const values = { accountId, limit };
  const [hosts, creators] = await Promise.all([HOSTS.read(reader, values), CREATORS.read(reader, values)]);
  return {
    hosts: hosts.map(({ host }) => host),
    creators: creators.map(({ key_id: keyId, created_by: createdBy }) => ({ keyId, createdBy })),
  };
}
