/** A move to PostgreSQL: the file that is copied. `target.ts` is the database, and `copy.ts` copies and compares. */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { existsSync, statSync } from "node:fs";
import { TRANSFER_BYTES_MAX, TRANSFER_ROWS_MAX } from "../../src/core/limits.ts";
import { inspectFile, lockFile } from "../libsql/inspect.ts";
import { checkMigrated } from "../libsql/migrate.ts";
import { tables } from "../tables.ts";
import type { Row, SqlValue } from "../sql/dialect.ts";

/** How a table is copied. */
export interface TransferTable {
  readonly name: string;
  readonly columns: readonly TransferColumn[];
  /** The columns of its primary key, in whose order rows are copied and compared. */
  readonly key: readonly string[];
  /** Whether the target numbers its rows (`seq`) by a sequence. It numbers rows of the timeline by a function. */
  readonly isCounted: boolean;
}

interface TransferColumn {
  readonly name: string;
  readonly kind: "text" | "integer";
  /** The table in a SELECT from the file. */
  readonly source: string;
}

/** The key values of a row. */
export type RowKey = readonly SqlValue[];

export const TRANSFER_TABLES: readonly TransferTable[] = Object.values(tables).map(describeTable);

function describeTable(table: SQLiteTable): TransferTable {
  const { name, columns, primaryKeys } = getTableConfig(table);
  const [composite] = primaryKeys;
  const key = composite === undefined ? columns.filter((column) => column.primary) : composite.columns;
  // The first account is the one that was added first, and SQLite has that order in `rowid`.
  const added: readonly TransferColumn[] =
    name === "accounts" ? [{ name: "seq", kind: "integer", source: "rowid" }] : [];
  const own = columns.map((column): TransferColumn => ({
    name: column.name,
    kind: column.getSQLType() === "integer" ? "integer" : "text",
    source: column.name,
  }));
  const all = [...own, ...added];
  const isCounted = name !== "timeline" && all.some((column) => column.name === "seq");
  return { name, columns: all, key: key.map((column) => column.name), isCounted };
}

export function keyOf(table: TransferTable, row: Row): RowKey {
  return table.key.map((name) => row[name] ?? null);
}

/** Names a row in a message. */
export function describeRow(table: TransferTable, key: RowKey): string {
  return `${key.join(" / ")} of ${table.name}`;
}

/** A database file to copy. It is only read, and locked against services meanwhile. */
export interface TransferSource {
  /** The id of its first account, which tells it apart from other files of the same name. */
  readonly id: string;
  /** Differs after every change of the file. */
  readonly state: string;
  /** Whether something has written to the file since: admin commands don't take the lock, and what they write is not copied. */
  hasChanged(): boolean;
  readonly counts: Readonly<Record<string, number>>;
  /** A fact about the store; null: not written. */
  fact(name: string): string | null;
  /** The next rows after a key, in order: bounded in rows and bytes, but at least one if there is any. */
  batch(table: TransferTable, after: RowKey | null): readonly Row[];
  close(): void;
}

/**
 * Takes the lock of the file and opens it read-only, at its present state. Throws an error for the operator if a service has it
 * open, or if it is damaged, empty or of another version.
 */
export async function openTransferSource(name: string): Promise<TransferSource> {
  if (!existsSync(name)) throw new Error(`There is no database ${name}.`);
  const { path, release } = lockFile(name);
  let database: Database | null = null;
  try {
    inspectFile(path);
    database = new Database(path, { readonly: true });
    return await readerOf(database, path, release);
  } catch (error) {
    database?.close();
    release();
    throw error;
  }
}

async function readerOf(database: Database, path: string, release: () => void): Promise<TransferSource> {
  const state = stateOf(path);
  database.run("BEGIN");
  const read = (sql: string, ...args: SQLQueryBindings[]) =>
    database.query<Record<string, unknown>, SQLQueryBindings[]>(sql).all(...args);
  // Safe: it reads names of migrations, which are texts.
  await checkMigrated({ read: async ({ sql }) => read(sql) as Row[] });
  const [first] = read("SELECT id FROM accounts ORDER BY rowid LIMIT 1");
  if (first === undefined) throw new Error(`The database ${path} has no account: there is nothing to migrate.`);
  const counts = TRANSFER_TABLES.map(({ name }) => [name, Number(read(`SELECT count(*) n FROM ${name}`)[0]?.["n"])]);
  return {
    id: String(first["id"]),
    state,
    hasChanged: () => stateOf(path) !== state,
    counts: Object.fromEntries(counts) as Record<string, number>,
    fact(name) {
      const [found] = read("SELECT value FROM facts WHERE name = ?", name);
      return found === undefined ? null : String(found["value"]);
    },
    batch: (table, after) => batchOf(database, table, after),
    close() {
      database.close();
      release();
    },
  };
}

/** A digest of sizes and times of the last write. Neither reading nor a kill changes it. */
function stateOf(path: string): string {
  const facts = ["", "-wal"].map((suffix) => {
    const found = statSync(path + suffix, { bigint: true, throwIfNoEntry: false });
    return found === undefined || found.size === 0n ? "" : `${found.size} ${found.mtimeNs}`;
  });
  return new Bun.CryptoHasher("sha256").update(facts.join("\n")).digest("hex").slice(0, 32);
}

function batchOf(database: Database, table: TransferTable, after: RowKey | null): readonly Row[] {
  const columns = table.columns.map(({ name, source }) => `${source} AS ${name}`).join(", ");
  const key = table.key.join(", ");
  const behind = after === null ? "" : `WHERE (${key}) > (${table.key.map(() => "?").join(", ")})`;
  const sql = `SELECT ${columns} FROM ${table.name} ${behind} ORDER BY ${key} LIMIT ${TRANSFER_ROWS_MAX}`;
  const rows: Row[] = [];
  let bytes = 0;
  for (const found of database.query<Record<string, unknown>, SQLQueryBindings[]>(sql).iterate(...(after ?? []))) {
    const row = checkedRow(table, found);
    rows.push(row);
    bytes += bytesOf(row);
    if (bytes >= TRANSFER_BYTES_MAX) break;
  }
  return rows;
}

/** Checks the types of a row: SQLite stores any type in any column, PostgreSQL doesn't. The service writes only right types. */
function checkedRow(table: TransferTable, found: Readonly<Record<string, unknown>>): Row {
  const row: Record<string, SqlValue> = {};
  const wrong: string[] = [];
  for (const { name, kind } of table.columns) {
    const value = found[name] ?? null;
    if (value === null || (kind === "text" ? typeof value === "string" : Number.isSafeInteger(value))) {
      // Safe: as checked.
      row[name] = value as SqlValue;
    } else {
      row[name] = value instanceof Uint8Array ? Buffer.from(value).toString("hex") : JSON.stringify(value);
      wrong.push(name);
    }
  }
  if (wrong.length === 0) return row;
  throw new Error(
    `The row ${describeRow(table, keyOf(table, row))} has a value of the wrong type in ${wrong.join(", ")}: it was ` +
      "changed by hand. Correct or delete it in the file, then run this again, to an empty database.",
  );
}

function bytesOf(row: Row): number {
  let bytes = 0;
  for (const value of Object.values(row)) bytes += typeof value === "string" ? value.length : 8;
  return bytes;
}
