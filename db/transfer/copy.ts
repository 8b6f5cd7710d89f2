/** A move to PostgreSQL: copies the rows of `source.ts` to `target.ts`, then compares them. */
import { codeOf, DatabaseFault } from "../sql/errors.ts";
import type { Row } from "../sql/dialect.ts";
import { describeRow, keyOf, type RowKey, TRANSFER_TABLES, type TransferSource, type TransferTable } from "./source.ts";
import { rowsBetween, type TransferProgress, writeRows } from "./target.ts";
import type { DbConnection } from "../commands/command.ts";

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
    const code = error instanceof DatabaseFault ? codeOf(error.cause) : "";
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
