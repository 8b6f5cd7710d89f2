import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { tables } from "../libsql/schema.ts";
import type { Row, SqlValue } from "../sql/sql.ts";

/** A table as it is copied. */
export interface TransferTable {
  readonly name: string;
  readonly columns: readonly TransferColumn[];
  /** The columns of its primary key: rows are copied and compared in their order. */
  readonly key: readonly string[];
  /** A column whose values the target counts on from by a sequence of its own; null: none. */
  readonly counted: string | null;
}

export interface TransferColumn {
  readonly name: string;
  readonly kind: "text" | "integer";
  /** How the file reads it. */
  readonly source: string;
}

/** The values of the key of a row. */
export type RowKey = readonly SqlValue[];

/** Tables with a number that the database gives out; the timeline's comes from a function (`db/postgres/schema.ts`). */
const COUNTED: Readonly<Record<string, string>> = {
  accounts: "seq",
  signing_seeds: "seq",
  rejections: "seq",
  audit: "seq",
};

export const TRANSFER_TABLES: readonly TransferTable[] = Object.values(tables).map(describeTable);

function describeTable(table: SQLiteTable): TransferTable {
  const { name, columns, primaryKeys } = getTableConfig(table);
  const [composite] = primaryKeys;
  const key = composite === undefined ? columns.filter((column) => column.primary) : composite.columns;
  // SQLite numbers every row, and the first account is the one that was added first.
  const added: readonly TransferColumn[] =
    name === "accounts" ? [{ name: "seq", kind: "integer", source: "rowid" }] : [];
  const own = columns.map((column): TransferColumn => ({
    name: column.name,
    kind: column.getSQLType() === "integer" ? "integer" : "text",
    source: column.name,
  }));
  return { name, columns: [...own, ...added], key: key.map((column) => column.name), counted: COUNTED[name] ?? null };
}

export function keyOf(table: TransferTable, row: Row): RowKey {
  return table.key.map((name) => row[name] ?? null);
}

/** Names a row in a message. */
export function describeRow(table: TransferTable, key: RowKey): string {
  return `${key.join(" / ")} of ${table.name}`;
}
