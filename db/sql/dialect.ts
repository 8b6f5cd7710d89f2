import { and, type Column, eq, getTableColumns, type Placeholder, type SQL, sql, type SQLWrapper } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { tables } from "../libsql/schema.ts";
import type { ArgType } from "./read.ts";

/** What SQLite and PostgreSQL write in different ways. Each has one. */
export interface Dialect {
  /** How an argument stands in a text; by its type where that is known. */
  readonly place: (number: number, type?: ArgType) => string;
  /** A list as it is bound: the text of a statement stays the same, however many items there are. */
  readonly list: (items: readonly unknown[]) => string;
  /** Whether a column has one of the values of a list. */
  readonly isOneOf: (column: SQLWrapper, list: ListSql) => SQL;
  /** The items of a list as rows of one column, `j.value`. */
  readonly itemsOf: (list: ListSql) => SQL;
  /** A place of the list that an item of `itemsOf` is. */
  readonly placeIn: (at: number) => SQL;
  /** Values of rows as the text of a JSON list, in the order of the rows. */
  readonly jsonList: (value: SQLWrapper) => SQL;
  /** The table, read by this index. PostgreSQL chooses by itself. */
  readonly indexedBy: (table: SQLWrapper, index: string) => SQL;
  /** Joins `next`: of the rows of a table that hold a condition, the earliest of the first lane behind one. */
  readonly joinNextLane: (table: SQLWrapper, condition: SQLWrapper, lane: LaneSql) => SQL;
  /** The order in which the rows of `accounts` were added. */
  readonly addedOrder: SQL;
  /** In a group with `max(by)` over the rows where `value` is not null: the value of the row that has it. */
  readonly valueOfMax: (value: SQLWrapper, by: SQLWrapper) => SQL;
  /**
   * Whether no transaction can add a row at this position of the timeline any more. In PostgreSQL later positions may be
   * committed before earlier ones: readers stop at the first transaction that is still open. SQLite has one writer.
   */
  readonly isSettled: (position: SQLWrapper) => SQL | undefined;
}

/** Items, or the place of a list that is bound. */
export type ListSql = Placeholder | readonly unknown[];

/** The lane of an action, as SQL. */
export interface LaneSql {
  readonly accountId: SQLWrapper;
  readonly host: SQLWrapper;
  readonly keyId: SQLWrapper;
}

/** Later than every id. */
export const AFTER_ALL_IDS = "\u{10ffff}";

/** Bytes of a column that can be long. It reads only the length, which both databases keep before the value. */
export function bytesOf(column: SQLWrapper): SQL {
  return sql`coalesce(cast(octet_length(${column}) as bigint), 0)`;
}

/** Bytes of the columns that can be long. */
export function bytesOfAction(): SQL<number> {
  const { body, sealedHeaders, extras, responseBody, lateResult } = tables.actions;
  return sql<number>`${sql.join([body, sealedHeaders, extras, responseBody, lateResult].map(bytesOf), sql` + `)}`;
}

/**
 * The values of a column that an index orders after the columns of the condition: one look into the index for each, however many rows
 * have it. What is selected of a value has it as `found.value`. The builder has no recursion. The condition of a partial index has to
 * be in it.
 */
export function eachValue<Row>(column: Column, condition: SQL | undefined, selected: SQL, limit: number): SQL<Row> {
  const first = (after?: SQL) =>
    sql`(select ${column} from ${column.table} where ${and(condition, after)} order by ${column} limit 1)`;
  return sql<Row>`with recursive found (value) as (
      select ${first()}
      union all
      select ${first(sql`${column} > found.value`)} from found where found.value is not null)
    select ${selected} from found where found.value is not null limit ${limit}`;
}

/** The members of the JSON object in a text; none if it was altered to something else. */
export function membersIn(text: string | null | undefined): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text ?? "");
    // Safe: its members are of any type.
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
  } catch {
    return {};
  }
}

/** Whether a row of the table has these values. */
export function hasValues<Table extends SQLiteTable>(table: Table, values: ValuesOf<Table>): SQL | undefined {
  const columns = getTableColumns(table);
  const all = Object.entries(values).map(([name, value]) => {
    const column = columns[name];
    if (column === undefined) throw new Error(`A table has no column ${name}.`);
    return eq(column, value);
  });
  // Without any, it would hold for all rows, also those to be deleted.
  if (all.length === 0) throw new Error("A condition has no values.");
  return and(...all);
}

export type ValuesOf<Table extends SQLiteTable> = {
  readonly [Name in keyof Table["$inferSelect"]]?: NonNullable<Table["$inferSelect"][Name]> | Placeholder;
};
