import type { Row, Sql } from "../sql/sql.ts";
import type { TransferSource } from "./source.ts";
import { type TransferProgress, TransferTaken, writeRows } from "./target.ts";
import { describeRow, keyOf, TRANSFER_TABLES, type TransferTable } from "./tables.ts";

/** How far it has come, for whoever watches. */
export interface TransferReport {
  readonly phase: "copied" | "verified";
  readonly table: string;
  readonly rows: number;
  readonly of: number;
}

export type OnProgress = (report: TransferReport) => void;

/** Copies what is left, in commits of bounded size, each with its progress. Resolves with the last progress. */
export async function copyRows(
  source: TransferSource,
  sql: Sql,
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
    // A key belongs to the table that it was copied from.
    const isBegun = Object.hasOwn(progress.copied, name);
    let after = isBegun ? progress.after : null;
    let rows = progress.copied[name] ?? 0;
    for (;;) {
      const batch = source.batch(table, after);
      if (batch.length === 0) break;
      progress = await writeBatch(sql, table, batch.slice(0, statementRows(batch.length)), progress);
      after = progress.after;
      rows = progress.copied[name] ?? 0;
      onProgress({ phase: "copied", table: name, rows, of: source.counts[name] ?? 0 });
    }
  }
  return progress;
}

async function writeBatch(
  sql: Sql,
  table: TransferTable,
  rows: readonly Row[],
  before: TransferProgress,
): Promise<TransferProgress> {
  const next = progressAfter(table, rows, before);
  try {
    await writeRows(sql, table, rows, { before, next });
    return next;
  } catch (error) {
    if (error instanceof TransferTaken || !isRowsFault(error)) throw error;
    const [row] = rows;
    if (row !== undefined && rows.length === 1) {
      throw new Error(
        `The row ${describeRow(table, keyOf(table, row))} is refused by PostgreSQL (${sqlStateIn(error)}): it was changed by ` +
          "hand. Correct or delete it in the file, then run this again.",
        { cause: error },
      );
    }
  }
  // One of them is refused: one by one, the others are written, and the message names it.
  let progress = before;
  for (const row of rows) progress = await writeBatch(sql, table, [row], progress);
  return progress;
}

/** Integrity constraints and values out of range (SQLSTATE classes 22 and 23). */
function isRowsFault(error: unknown): boolean {
  return /^2[23]/.test(sqlStateIn(error) ?? "");
}

/** Statements have one of these sizes: each is prepared on the connection, and stays there. */
const STATEMENT_ROWS = [500, 200, 100, 50, 20, 10, 5, 2];

function statementRows(rows: number): number {
  return STATEMENT_ROWS.find((size) => size <= rows) ?? 1;
}

function progressAfter(table: TransferTable, rows: readonly Row[], before: TransferProgress): TransferProgress {
  const last = rows.at(-1);
  const copied = { ...before.copied, [table.name]: (before.copied[table.name] ?? 0) + rows.length };
  return { ...before, copied, after: last === undefined ? null : keyOf(table, last) };
}

/** How deep a library nests the error that began it. */
const CAUSES_MAX = 5;

/** The code of PostgreSQL (SQLSTATE), else of the network, in an error or its causes; null: it has none. */
export function faultCodeIn(error: unknown): string | null {
  let one = error;
  for (let depth = 0; depth < CAUSES_MAX && one instanceof Error; depth += 1) {
    if ("code" in one && typeof one.code === "string" && one.code !== "") return one.code;
    one = one.cause;
  }
  return null;
}

/** The code of PostgreSQL alone. */
function sqlStateIn(error: unknown): string | null {
  const code = faultCodeIn(error);
  return code !== null && /^[0-9A-Z]{5}$/.test(code) ? code : null;
}
