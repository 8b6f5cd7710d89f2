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

/** How SQLite writes the tables of `tables.ts`. */
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
  /** The number of a row, in the order of the inserts. */
  serial: () => integer().primaryKey(),
  /** The same for the timeline. */
  position: () => integer().primaryKey(),
  /** Columns that give rows without a number an order: none, since SQLite numbers all rows. */
  addedOrder: {},
  nullsFirst: (column: SQLiteColumn): SQLiteColumn | SQL => column,
  /** What an index of a queue ends with, so that rows of one time have an order. */
  inOrder: (_id: SQLiteColumn): readonly SQLiteColumn[] => [],
};
