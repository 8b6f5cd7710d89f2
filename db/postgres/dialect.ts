import { Placeholder, sql } from "drizzle-orm";
import type { ArgType, Dialect, ListSql } from "../sql/sql.ts";

/** PostgreSQL's dialect. A list is sent as an array of texts, since U+0000 can be escaped there, but not in its JSON. */
export const postgresDialect: Dialect = {
  // PostgreSQL takes an argument for text if it can't see its column.
  place: (number, type) => (type === undefined ? `$${number}` : `$${number}::${typeOf(type)}`),
  list: listText,
  isOneOf: (column, list) => sql`${column} = any(${bound(list)})`,
  itemsOf: (list) => sql`unnest(cast(${bound(list)} as text[])) as j(value)`,
  placeIn: (at) => sql.raw(`(cast(j.value as json) ->> ${at})`),
  jsonList: (value) => sql`json_agg(${value})`,
  indexedBy: (table) => sql`${table}`,
  joinNextLane: (table, condition, { accountId, host, keyId }) => sql`cross join lateral (
    select b.account_id, b.host, b.key_id, b.due_at from ${table} b
    where b.${condition} and (b.account_id, b.host, b.key_id) > (${accountId}, ${host}, ${keyId})
    order by b.account_id, b.host, b.key_id, b.due_at limit 1) next`,
  addedOrder: sql`seq`,
  valueOfMax: (value, by) => sql`(array_agg(${value} order by ${by} desc) filter (where ${value} is not null))[1]`,
  // The function runs once, before the first row, and sees the snapshot from which the rows are read.
  isSettled: (position) => sql`${position} < (select settled_position())`,
};

function bound(list: ListSql) {
  return list instanceof Placeholder ? list : listText(list);
}

function listText(items: readonly unknown[]): string {
  return `{${items.map(itemText).join(",")}}`;
}

function typeOf(type: ArgType): string {
  if (type === "list") return "text[]";
  return type === "text" ? "text" : "bigint";
}

/** An item of an array, quoted. An item that is a list itself stays JSON. */
function itemText(item: unknown): string {
  const text = typeof item === "string" ? item : JSON.stringify(item);
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
