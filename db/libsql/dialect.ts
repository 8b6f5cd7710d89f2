import { Placeholder, type SQL, sql } from "drizzle-orm";
import type { Dialect, ListSql } from "../sql/sql.ts";

const bound = (list: ListSql) => (list instanceof Placeholder ? list : JSON.stringify(list));

/** SQLite's dialect. A list is sent as JSON. */
export const sqliteDialect: Dialect = {
  place: (number) => `?${number}`,
  list: (items) => JSON.stringify(items),
  isOneOf: (column, list) => sql`${column} in (select j.value from json_each(${bound(list)}) j)`,
  itemsOf: (list) => sql`json_each(${bound(list)}) j`,
  placeIn: (at) => sql.raw(`json_extract(j.value, '$[${at}]')`),
  jsonList: (value) => sql`json_group_array(${value})`,
  indexedBy: (table, index) => sql`${table} indexed by ${sql.raw(index)}`,
  // If row values were compared, SQLite would use the index only for the account, and read all rows of the previous lane.
  joinNextLane(table, condition, { accountId, host, keyId }) {
    const first = (isBehind: SQL) => sql`(select b.rowid from ${table} b where b.${condition} and ${isBehind}
      order by b.account_id, b.host, b.key_id, b.due_at limit 1)`;
    const ofHost = first(sql`b.account_id = ${accountId} and b.host = ${host} and b.key_id > ${keyId}`);
    const ofAccount = first(sql`b.account_id = ${accountId} and b.host > ${host}`);
    const ofOthers = first(sql`b.account_id > ${accountId}`);
    return sql`join ${table} next on next.rowid = coalesce(${ofHost}, ${ofAccount}, ${ofOthers})`;
  },
  addedOrder: sql`rowid`,
  // In a query with one `max`, SQLite takes the other columns from the row with the maximum.
  valueOfMax: (value) => sql`${value}`,
  isSettled: () => undefined,
};
