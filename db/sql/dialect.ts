/**
 * What is sent to a database and what comes back, and behind it the few things that SQLite and PostgreSQL spell differently. `read.ts` builds
 * SELECTs with these, `commands/command.ts` runs writes.
 */
import { Placeholder, type SQL, sql, type SQLWrapper } from "drizzle-orm";

/** A value of a column. Times are integers in milliseconds, booleans 0 and 1. */
export type SqlValue = string | number | null;

export type Row = Readonly<Record<string, SqlValue>>;

export interface Statement {
  readonly sql: string;
  readonly args: readonly SqlValue[];
  /** Its text depends on what a caller asks for, so there may be thousands like it. */
  readonly isVaried?: boolean;
}

export function toStatement(text: string, args: readonly SqlValue[] = []): Statement {
  return { sql: text, args };
}

export interface StatementResult {
  /** Rows written; with RETURNING, rows returned. */
  readonly changes: number;
  readonly rows: readonly Row[];
}

/** Makes rows of lists of values. */
export function rowsOf(columns: readonly string[], rows: readonly (readonly unknown[])[]): readonly Row[] {
  // Safe: the tables have no blobs and no integers past 2^53, so that values are text, number or null.
  return rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])) as Row);
}

/** A connection that reads. */
export interface Reader {
  /** How statements are written for this database. */
  readonly dialect: Dialect;
  read(statement: Statement): Promise<readonly Row[]>;
}

/** What SQLite and PostgreSQL spell differently. */
export interface Dialect {
  /** The placeholder of an argument, cast to its type if that is known. */
  readonly place: (number: number, type?: ArgType) => string;
  /** A list as one argument, so that the text of a statement does not depend on its length. */
  readonly list: (items: readonly unknown[]) => string;
  /** Whether a column has one of the values of a list. */
  readonly isOneOf: (column: SQLWrapper, list: ListSql) => SQL;
  /** The items of a list as rows of one column, `j.value`. */
  readonly itemsOf: (list: ListSql) => SQL;
  /** If the items of `itemsOf` are lists: the element of an item at this index. */
  readonly placeIn: (at: number) => SQL;
  /** Aggregates values into a JSON list, in the order of the rows. */
  readonly jsonList: (value: SQLWrapper) => SQL;
  /** Makes SQLite read the table by this index. PostgreSQL has no such hint. */
  readonly indexedBy: (table: SQLWrapper, index: string) => SQL;
  /** Joins, as `next`, the earliest row of the first lane after this one, among the rows that meet a condition. */
  readonly joinNextLane: (table: SQLWrapper, condition: SQLWrapper, lane: LaneSql) => SQL;
  /** A column that orders the rows of `accounts` as they were added. */
  readonly addedOrder: SQL;
  /** In a group that selects `max(by)`: the `value` of the row with that maximum. */
  readonly valueOfMax: (value: SQLWrapper, by: SQLWrapper) => SQL;
  /**
   * Whether no open transaction can still add a row up to this position of the timeline. PostgreSQL may commit later positions
   * before earlier ones, so readers stop at the first open transaction. Undefined for SQLite, which has one writer.
   */
  readonly isSettled: (position: SQLWrapper) => SQL | undefined;
}

/** A list, or the placeholder of one. */
type ListSql = Placeholder | readonly unknown[];

/** The lane of an action, as SQL. */
export interface LaneSql {
  readonly accountId: SQLWrapper;
  readonly host: SQLWrapper;
  readonly keyId: SQLWrapper;
}

/** The type of an argument. */
export type ArgType = keyof ArgValues;

/** The values of arguments by their types. */
export interface ArgValues {
  readonly text: string;
  readonly number: number;
  /** Bound in milliseconds. */
  readonly time: Date | number;
  /** One argument: see `Dialect.list`. Items other than texts become JSON. */
  readonly list: readonly unknown[];
}

function bound(list: ListSql, textOf: Dialect["list"]) {
  return list instanceof Placeholder ? list : textOf(list);
}

/** A list is sent as JSON. */
export const sqliteDialect: Dialect = {
  place: (number) => `?${number}`,
  list: jsonText,
  isOneOf: (column, list) => sql`${column} in (select j.value from json_each(${bound(list, jsonText)}) j)`,
  itemsOf: (list) => sql`json_each(${bound(list, jsonText)}) j`,
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

function jsonText(items: readonly unknown[]): string {
  return JSON.stringify(items);
}

/** A list is sent as an array of texts, since U+0000 can be escaped there, but not in its JSON. */
export const postgresDialect: Dialect = {
  // PostgreSQL takes an argument for text if it can't see its column.
  place: (number, type) => (type === undefined ? `$${number}` : `$${number}::${sqlType(type)}`),
  list: arrayText,
  isOneOf: (column, list) => sql`${column} = any(${bound(list, arrayText)})`,
  itemsOf: (list) => sql`unnest(cast(${bound(list, arrayText)} as text[])) as j(value)`,
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

function arrayText(items: readonly unknown[]): string {
  return `{${items.map(itemText).join(",")}}`;
}

function sqlType(type: ArgType): string {
  if (type === "list") return "text[]";
  return type === "text" ? "text" : "bigint";
}

/** An item of an array, quoted. An item that is a list itself stays JSON. */
function itemText(item: unknown): string {
  const text = typeof item === "string" ? item : JSON.stringify(item);
  return `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
}
