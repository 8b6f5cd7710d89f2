import type { SQL } from "drizzle-orm";
import {
  check,
  index,
  integer,
  primaryKey,
  type SQLiteColumn,
  sqliteTable,
  text,
  uniqueIndex,
} from "drizzle-orm/sqlite-core";

/** The column types with which SQLite builds the tables of `tables.ts`. */
export const SQLITE = {
  table: sqliteTable,
  index,
  uniqueIndex,
  primaryKey,
  check,
  text,
  number: (name?: string) => (name === undefined ? integer() : integer(name)),
  time: (name: string) => integer(name, { mode: "timestamp_ms" }),
  flag: (name: string) => integer(name, { mode: "boolean" }),
  json: <Value>() => text({ mode: "json" }).$type<Value>(),
  /** Numbers rows in the order of inserts. */
  serial: () => integer().primaryKey(),
  /** Numbers rows of the timeline. */
  position: () => integer().primaryKey(),
  /** Columns that order rows without a number: none, since SQLite numbers all rows. */
  addedOrder: {},
  nullsFirst: (column: SQLiteColumn): SQLiteColumn | SQL => column,
  /** The last columns of a queue's index, so that rows with the same time have an order. */
  inOrder: (_id: SQLiteColumn): readonly SQLiteColumn[] => [],
};
