import { and, type Column, desc, eq, ne, type SQL, sql } from "drizzle-orm";
import type { FilterValues } from "../../src/core/store.ts";
import { read, type Reader } from "./read.ts";

/**
 * `found`: the values of a column that an index orders after the columns of the condition: one look into the index for each,
 * however many rows have it. The builder has no recursion. The condition of a partial index has to be in it.
 */
export function eachValue(column: Column, condition: SQL | undefined): SQL {
  const first = (after?: SQL) =>
    sql`(select ${column} from ${column.table} where ${and(condition, after)} order by ${column} limit 1)`;
  return sql`with recursive found (value) as (
      select ${first()}
      union all
      select ${first(sql`${column} > found.value`)} from found where found.value is not null)`;
}

const HOSTS = read({ accountId: "text", limit: "number" }, ({ tables: { actions } }, arg) => {
  const found = eachValue(actions.hostname, eq(actions.accountId, arg.accountId));
  return sql<{ readonly host: string }>`${found}
    select value as host from found where value is not null limit ${arg.limit}`;
});

/** With the name on the newest action of each: a key may be gone. */
const CREATORS = read({ accountId: "text", limit: "number" }, ({ db, tables: { actions } }, arg) => {
  const { accountId, keyId, id, createdBy } = actions;
  const isOfKey = and(eq(accountId, arg.accountId), ne(keyId, ""));
  const newest = db
    .select({ createdBy })
    .from(actions)
    .where(and(isOfKey, sql`${keyId} = found.value`));
  return sql<FilterValues["creators"][number]>`${eachValue(keyId, isOfKey)}
    select value as "keyId", ${newest.orderBy(desc(id)).limit(1)} as "createdBy"
    from found where value is not null limit ${arg.limit}`;
});

/** What lists of an account can be filtered by, so many of each. Costs a look into an index for each. */
export async function findFilterValues(reader: Reader, accountId: string, limit: number): Promise<FilterValues> {
  const values = { accountId, limit };
  const [hosts, creators] = await Promise.all([HOSTS.all(reader, values), CREATORS.all(reader, values)]);
  return { hosts: hosts.map(({ host }) => host), creators };
}
