/**
 * A move of a database file to PostgreSQL: the file that is read, then the database that is filled and says how far that has come, then the
 * copy of all rows and their comparison.
 */
import { Database, type SQLQueryBindings } from "bun:sqlite";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { existsSync, statSync } from "node:fs";
import { TRANSFER_BYTES_MAX, TRANSFER_CALL_MS_MAX, TRANSFER_ROWS_MAX } from "../src/core/limits.ts";
import { TRANSFER_FACT } from "../src/core/store.ts";
import { type DbConnection, orClose, runStatements } from "./commands/command.ts";
import { inspectFile, lockFile } from "./libsql/inspect.ts";
import { checkMigrated } from "./libsql/migrate.ts";
import { openPostgres, type PostgresPool } from "./postgres/connection.ts";
import { migratePostgres } from "./postgres/migrate.ts";
import { escapeText } from "./postgres/queries.ts";
import { type Row, type SqlValue, toStatement } from "./sql/dialect.ts";
import { errorCode, DatabaseFault } from "./sql/errors.ts";
import { tables } from "./tables.ts";

/** How a table is copied. */
interface TransferTable {
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
type RowKey = readonly SqlValue[];

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

function keyOf(table: TransferTable, row: Row): RowKey {
  return table.key.map((name) => row[name] ?? null);
}

/** Names a row in a message. */
function describeRow(table: TransferTable, key: RowKey): string {
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

/** The fact that says that a copy was completed: of which file in which state, and when. */
const TRANSFERRED_FACT = "transferred";

/** How far a copy has come. Each batch writes it to the target in the same commit. */
interface TransferProgress {
  /** `TransferSource.id`. */
  readonly source: string;
  /** `TransferSource.state`. */
  readonly state: string;
  /** Rows copied, by table. All tables except the last are complete. */
  readonly copied: Readonly<Record<string, number>>;
  /** The last copied key of the last table; null: none yet. */
  readonly after: RowKey | null;
}

/** Opens the target and creates its tables. If it can't be used, throws the error of PostgreSQL or the network. */
export async function openTransferTarget(url: string, now: Date): Promise<PostgresPool> {
  const pool = openPostgres(url, { callMsMax: TRANSFER_CALL_MS_MAX, transactionMsMax: TRANSFER_CALL_MS_MAX });
  await orClose(pool, () => migratePostgres(pool, now));
  return pool;
}

/** How a copy begins: in an empty database, or where the last run stopped. */
export interface TransferStart {
  readonly kind: "new" | "resumed";
  readonly progress: TransferProgress;
}

/** An earlier run has completed this copy. */
export class TransferDone extends Error {
  override readonly name = "TransferDone";
}

/** Another process has continued this copy meanwhile. Nothing was written. */
class TransferTaken extends Error {
  override readonly name = "TransferTaken";

  constructor() {
    super("Another process is migrating to this database. Wait until it has ended, then run this again.");
  }
}

const PROGRESS_IS = `name = '${TRANSFER_FACT}' AND value = `;

/**
 * Begins the copy in an empty database, or continues the copy of this file. Throws an error for the operator if the database
 * has its own contents, or an unfinished copy of another file or of an earlier state of this one.
 */
export async function startTransfer(connection: DbConnection, { id, state }: TransferSource): Promise<TransferStart> {
  const [found, done] = await Promise.all([factOf(connection, TRANSFER_FACT), factOf(connection, TRANSFERRED_FACT)]);
  const first: TransferProgress = { source: id, state, copied: {}, after: null };
  if (found === null) {
    await takeEmpty(connection, first, done);
    return { kind: "new", progress: first };
  }
  const progress = progressIn(found);
  if (progress.source !== id) {
    throw new Error(
      "The PostgreSQL database has an unfinished copy of another database. Finish that one, or name an empty database.",
    );
  }
  if (progress.state === state) return { kind: "resumed", progress };
  throw new Error(
    "The file has changed since an interrupted copy to this PostgreSQL database. Drop that database, create it again, and run this again.",
  );
}

async function takeEmpty(connection: DbConnection, progress: TransferProgress, done: string | null): Promise<void> {
  const contents = TRANSFER_TABLES.map(({ name }) =>
    name === "facts" ? "EXISTS (SELECT 1 FROM facts WHERE name <> 'probe')" : `EXISTS (SELECT 1 FROM ${name})`,
  ).join(" OR ");
  const [, taken] = await runStatements(connection, [
    toStatement(`DELETE FROM facts WHERE name = 'probe' AND NOT (${contents})`),
    toStatement(`INSERT INTO facts (name, value) SELECT '${TRANSFER_FACT}', $1::text WHERE NOT (${contents})`, [
      JSON.stringify(progress),
    ]),
  ]);
  if (taken?.changes === 1) {
    // A node that starts looks for the copy before and after it writes its first fact. One that has not seen it is seen here.
    const ofNode = `SELECT 1 FROM facts WHERE name NOT IN ('probe', '${TRANSFER_FACT}')`;
    if ((await connection.read(toStatement(ofNode))).length === 0) return;
    await runStatements(connection, [toStatement(`DELETE FROM facts WHERE name = '${TRANSFER_FACT}'`)]);
  }
  const copied = done === null ? null : progressIn(done);
  if (copied?.source === progress.source) {
    // Copies by older versions don't have the state.
    if ((copied.state ?? progress.state) !== progress.state) {
      throw new Error(
        "This file has changed since it was migrated to this PostgreSQL database: what happened on it since is not there. If no node has run " +
          "on that database, drop it, create it again, and run this again.",
      );
    }
    throw new TransferDone(
      "This file was migrated to this PostgreSQL database before, completely: start the nodes on it. Nothing was copied again.",
    );
  }
  throw new Error(
    "The PostgreSQL database is not empty. Name an empty one: nothing is ever copied over other contents.",
  );
}

/** Writes rows and the progress with one statement, which writes nothing if another process has continued the copy. */
async function writeRows(
  connection: DbConnection,
  table: TransferTable,
  rows: readonly Row[],
  { before, next }: { readonly before: TransferProgress; readonly next: TransferProgress },
): Promise<void> {
  const names = table.columns.map(({ name }) => name).join(", ");
  const statement = `WITH mine AS (UPDATE facts SET value = $2 WHERE ${PROGRESS_IS}$1 RETURNING 1)
    INSERT INTO ${table.name} (${names}) OVERRIDING SYSTEM VALUE
    SELECT ${names} FROM json_populate_recordset(null::${table.name}, $3::json) WHERE EXISTS (SELECT 1 FROM mine)`;
  const list = JSON.stringify(rows, (_name, value: unknown) => (typeof value === "string" ? escapeText(value) : value));
  const args = [JSON.stringify(before), JSON.stringify(next), list];
  const [done] = await runStatements(connection, [toStatement(statement, args)]);
  if (done?.changes !== rows.length) throw new TransferTaken();
}

/** Has PostgreSQL collect statistics of the copy, for the comparison and the nodes' first statements. */
export async function analyzeCopy(connection: DbConnection): Promise<void> {
  await runStatements(connection, [toStatement(`ANALYZE ${TRANSFER_TABLES.map(({ name }) => name).join(", ")}`)]);
}

/** The rows after one key and up to another, in order. Null: from the first, or to the last. */
function rowsBetween(
  connection: DbConnection,
  table: TransferTable,
  { after, until, limit }: { readonly after: RowKey | null; readonly until: RowKey | null; readonly limit: number },
): Promise<readonly Row[]> {
  const args: SqlValue[] = [];
  const tuple = (key: RowKey) => `(${key.map((value) => `$${args.push(value)}`).join(", ")})`;
  const names = table.key.join(", ");
  const conditions = [
    ...(after === null ? [] : [`(${names}) > ${tuple(after)}`]),
    ...(until === null ? [] : [`(${names}) <= ${tuple(until)}`]),
    ...(table.name === "facts" ? [`name <> '${TRANSFER_FACT}'`] : []),
  ];
  const where = conditions.length === 0 ? "" : `WHERE ${conditions.join(" AND ")}`;
  const columns = table.columns.map(({ name }) => name).join(", ");
  return connection.read(
    toStatement(`SELECT ${columns} FROM ${table.name} ${where} ORDER BY ${names} LIMIT ${limit}`, args),
  );
}

/** Sets the sequences after the copied numbers, and lets services open the database. */
export async function finishTransfer(connection: DbConnection, progress: TransferProgress, now: Date): Promise<void> {
  const counted = TRANSFER_TABLES.filter(({ isCounted }) => isCounted).map(({ name }) =>
    toStatement(
      `SELECT setval(pg_get_serial_sequence('${name}', 'seq'), coalesce(max(seq), 0) + 1, false) FROM ${name}`,
    ),
  );
  const text = JSON.stringify(progress);
  const { source, state } = progress;
  const summary = JSON.stringify({ source, state, at: now.toISOString() });
  const done = await runStatements(connection, [
    ...counted,
    toStatement(
      `INSERT INTO facts (name, value) SELECT '${TRANSFERRED_FACT}', $2::text FROM facts WHERE ${PROGRESS_IS}$1
        ON CONFLICT (name) DO UPDATE SET value = excluded.value`,
      [text, summary],
    ),
    toStatement(`DELETE FROM facts WHERE ${PROGRESS_IS}$1`, [text]),
  ]);
  if (done.at(-1)?.changes !== 1) throw new TransferTaken();
}

async function factOf(connection: DbConnection, name: string): Promise<string | null> {
  const [found] = await connection.read(toStatement("SELECT value FROM facts WHERE name = $1", [name]));
  return found === undefined ? null : String(found["value"]);
}

function progressIn(text: string): TransferProgress {
  // Safe: only these functions write this fact.
  return JSON.parse(text) as TransferProgress;
}

/** The progress of a copy, to show. */
export interface TransferReport {
  readonly phase: "copied" | "verified";
  readonly table: string;
  readonly rows: number;
  readonly of: number;
}

export type OnProgress = (report: TransferReport) => void;

/** Copies what is left in bounded commits, which also write the progress. Resolves with the last progress. */
export async function copyRows(
  source: TransferSource,
  connection: DbConnection,
  from: TransferProgress,
  onProgress: OnProgress,
): Promise<TransferProgress> {
  const begun = Object.keys(from.copied);
  const first = Math.max(
    0,
    TRANSFER_TABLES.findIndex(({ name }) => name === begun.at(-1)),
  );
  let progress = from;
  for (const table of TRANSFER_TABLES.slice(first)) {
    const { name } = table;
    // `after` is a key of the table that was begun last.
    const isBegun = Object.hasOwn(progress.copied, name);
    let batch = source.batch(table, isBegun ? progress.after : null);
    while (batch.length > 0) {
      progress = await writeBatch(connection, table, batch, progress);
      onProgress({ phase: "copied", table: name, rows: progress.copied[name] ?? 0, of: source.counts[name] ?? 0 });
      batch = source.batch(table, progress.after);
    }
  }
  return progress;
}

async function writeBatch(
  connection: DbConnection,
  table: TransferTable,
  rows: readonly Row[],
  before: TransferProgress,
): Promise<TransferProgress> {
  const next = progressAfter(table, rows, before);
  try {
    await writeRows(connection, table, rows, { before, next });
    return next;
  } catch (error) {
    const code = error instanceof DatabaseFault ? errorCode(error.cause) : "";
    // Integrity constraints and values out of range.
    if (!/^2[23]/.test(code)) throw error;
    const [row] = rows;
    if (row !== undefined && rows.length === 1) {
      throw new Error(
        `The row ${describeRow(table, keyOf(table, row))} is refused by PostgreSQL (${code}): it was changed by ` +
          "hand. Correct or delete it in the file, then run this again, to an empty database.",
        { cause: error },
      );
    }
  }
  // Row by row, so that the message names the refused row.
  let progress = before;
  for (const row of rows) progress = await writeBatch(connection, table, [row], progress);
  return progress;
}

function progressAfter(table: TransferTable, rows: readonly Row[], before: TransferProgress): TransferProgress {
  const last = rows.at(-1);
  const copied = { ...before.copied, [table.name]: (before.copied[table.name] ?? 0) + rows.length };
  return { ...before, copied, after: last === undefined ? null : keyOf(table, last) };
}

/** A table whose rows are the same on both sides. */
export interface VerifiedTable {
  readonly name: string;
  readonly rows: number;
  /** SHA-256 of all values in the order of the keys, the same on both sides. */
  readonly digest: string;
}

/** `what`: the first difference between the file and its copy. */
function copyDiffers(what: string): Error {
  return new Error(`${what} No service opens the copy. Drop that database, create it again, and run this again.`);
}

/** Compares every value of every row, as the service reads them. Throws an error for the operator, which names the row. */
export async function verifyRows(
  source: TransferSource,
  connection: DbConnection,
  onProgress: OnProgress,
): Promise<readonly VerifiedTable[]> {
  const verified: VerifiedTable[] = [];
  for (const table of TRANSFER_TABLES) verified.push(await verifyTable(source, connection, table, onProgress));
  return verified;
}

async function verifyTable(
  source: TransferSource,
  connection: DbConnection,
  table: TransferTable,
  onProgress: OnProgress,
): Promise<VerifiedTable> {
  const { name } = table;
  const of = source.counts[name] ?? 0;
  const hasher = new Bun.CryptoHasher("sha256");
  let rows = 0;
  let after: RowKey | null = null;
  for (;;) {
    const expected = source.batch(table, after);
    const end = expected.at(-1);
    const last: RowKey | null = end === undefined ? null : keyOf(table, end);
    // Reads one row more than expected, to find rows that are not in the file. After its last row, there may be none.
    const found = await rowsBetween(connection, table, { after, until: last, limit: expected.length + 1 });
    compare(table, expected, found);
    if (last === null) break;
    for (const row of expected) {
      hasher.update(`${JSON.stringify(table.columns.map((column) => row[column.name] ?? null))}\n`);
    }
    rows += expected.length;
    after = last;
    onProgress({ phase: "verified", table: name, rows, of });
  }
  if (rows !== of) throw copyDiffers(`The table ${name} differs from the file: it has ${rows} rows of ${of}.`);
  return { name, rows, digest: hasher.digest("hex") };
}

function compare(table: TransferTable, expected: readonly Row[], found: readonly Row[]): void {
  const foundByKey = new Map(found.map((row) => [JSON.stringify(keyOf(table, row)), row]));
  for (const row of expected) {
    const key = keyOf(table, row);
    const other = foundByKey.get(JSON.stringify(key));
    if (other === undefined) throw copyDiffers(`The row ${describeRow(table, key)} is missing in PostgreSQL.`);
    foundByKey.delete(JSON.stringify(key));
    const differing = table.columns.filter(({ name }) => row[name] !== other[name]).map(({ name }) => name);
    if (differing.length > 0) {
      throw copyDiffers(
        `The row ${describeRow(table, key)} differs in PostgreSQL from the file, in ${differing.join(", ")}.`,
      );
    }
  }
  const [extra] = foundByKey.values();
  if (extra !== undefined)
    throw copyDiffers(`The row ${describeRow(table, keyOf(table, extra))} is in PostgreSQL, but not in the file.`);
}
