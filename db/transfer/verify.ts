import type { Row, Sql } from "../sql/sql.ts";
import type { OnProgress } from "./copy.ts";
import type { TransferSource } from "./source.ts";
import { rowsBetween } from "./target.ts";
import { describeRow, keyOf, type RowKey, TRANSFER_TABLES, type TransferTable } from "./tables.ts";

/** A table whose rows are the same on both sides. */
export interface VerifiedTable {
  readonly name: string;
  readonly rows: number;
  /** SHA-256 of all values in the order of the keys, the same on both sides. */
  readonly digest: string;
}

/** The first difference between the file and its copy. */
export class CopyDiffers extends Error {
  override readonly name = "CopyDiffers";
}

/** Compares every value of every row, as the service reads them. Throws `CopyDiffers`, which names the row. */
export async function verifyRows(
  source: TransferSource,
  sql: Sql,
  onProgress: OnProgress,
): Promise<readonly VerifiedTable[]> {
  const verified: VerifiedTable[] = [];
  for (const table of TRANSFER_TABLES) verified.push(await verifyTable(source, sql, table, onProgress));
  return verified;
}

async function verifyTable(
  source: TransferSource,
  sql: Sql,
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
    const last: RowKey | null = keyOfLast(table, expected);
    // Beyond the last row of the file there may be nothing. One row more than expected tells that there are too many.
    const found = await rowsBetween(sql, table, { after, until: last, limit: expected.length + 1 });
    compare(table, expected, found);
    if (last === null) break;
    for (const row of expected) hasher.update(textOf(table, row));
    rows += expected.length;
    after = last;
    onProgress({ phase: "verified", table: name, rows, of });
  }
  if (rows !== of) throw new CopyDiffers(`The table ${name} differs from the file: it has ${rows} rows of ${of}.`);
  return { name, rows, digest: hasher.digest("hex") };
}

function keyOfLast(table: TransferTable, rows: readonly Row[]): RowKey | null {
  const last = rows.at(-1);
  return last === undefined ? null : keyOf(table, last);
}

function compare(table: TransferTable, expected: readonly Row[], found: readonly Row[]): void {
  const foundByKey = new Map(found.map((row) => [JSON.stringify(keyOf(table, row)), row]));
  for (const row of expected) {
    const key = keyOf(table, row);
    const other = foundByKey.get(JSON.stringify(key));
    if (other === undefined) throw new CopyDiffers(`The row ${describeRow(table, key)} is missing in PostgreSQL.`);
    foundByKey.delete(JSON.stringify(key));
    const differing = table.columns.filter(({ name }) => row[name] !== other[name]).map(({ name }) => name);
    if (differing.length > 0) {
      throw new CopyDiffers(
        `The row ${describeRow(table, key)} differs in PostgreSQL from the file, in ${differing.join(", ")}.`,
      );
    }
  }
  const [extra] = foundByKey.values();
  if (extra !== undefined)
    throw new CopyDiffers(`The row ${describeRow(table, keyOf(table, extra))} is in PostgreSQL, but not in the file.`);
}

function textOf(table: TransferTable, row: Row): string {
  return `${JSON.stringify(table.columns.map(({ name }) => row[name] ?? null))}\n`;
}
