/** A move to PostgreSQL: the database that is filled, and how far that has come. `source.ts` is the file. */
import { TRANSFER_CALL_MS_MAX } from "../../src/core/limits.ts";
import { TRANSFER_FACT } from "../../src/core/store.ts";
import { openPostgres, type PostgresPool } from "../postgres/connection.ts";
import { migratePostgres } from "../postgres/migrate.ts";
import { escapeText } from "../postgres/queries.ts";
import { orClose, type DbConnection, runStatements } from "../commands/command.ts";
import { type Row, type SqlValue, toStatement } from "../sql/dialect.ts";
import { type RowKey, TRANSFER_TABLES, type TransferSource, type TransferTable } from "./source.ts";

/** The fact that says that a copy was completed: of which file in which state, and when. */
const TRANSFERRED_FACT = "transferred";

/** How far a copy has come. Each batch writes it to the target in the same commit. */
export interface TransferProgress {
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
export async function writeRows(
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
export function rowsBetween(
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
