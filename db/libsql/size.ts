/** How large a database file is, how much of it could be freed, and giving free pages back to the disk. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { FREE_PAGES_KEPT, FREE_PAGES_KEPT_PART, SHRINK_PAGES, SIZE_SAMPLE_ROWS } from "../../src/core/limits.ts";
import type { DatabaseSize, FileStore } from "../../src/core/store.ts";
import { type DbConnection, runStatements } from "../commands/command.ts";
import { toStatement } from "../sql/dialect.ts";

/** The store of what only a database file has. */
export function createFileStore(connection: Pick<DbConnection, "read" | "transact">): FileStore {
  return {
    size: (finishedUntil) => readSize(connection, finishedUntil),
    async shrink() {
      await nextTurn();
      const { pages, free, canShrink } = await readPages(connection);
      const kept = Math.max(FREE_PAGES_KEPT, Math.floor(pages / FREE_PAGES_KEPT_PART));
      const spare = free - kept;
      if (!canShrink || spare < SHRINK_PAGES) return 0;
      await runStatements(connection, [toStatement(`PRAGMA incremental_vacuum(${SHRINK_PAGES})`)]);
      return spare - SHRINK_PAGES;
    },
  };
}

/**
 * Reads the size of a file, and estimates how much deleting the actions that finished by then would free. It reads a sample of
 * the rows, so that a large file takes no longer.
 */
export async function readSize(connection: Pick<DbConnection, "read">, finishedUntil: Date): Promise<DatabaseSize> {
  const { pages, free, pageBytes, canShrink } = await readPages(connection);
  const part = await deletablePart(connection, finishedUntil);
  return {
    bytes: pages * pageBytes,
    freeBytes: free * pageBytes,
    deletableBytes: Math.round((pages - free) * pageBytes * part),
    canShrink,
  };
}

const PAGES = `SELECT (SELECT page_count FROM pragma_page_count) AS pages, (SELECT freelist_count FROM pragma_freelist_count) AS free,
  (SELECT page_size FROM pragma_page_size) AS bytes, (SELECT auto_vacuum FROM pragma_auto_vacuum) AS vacuum`;

const INCREMENTAL = 2;

async function readPages(connection: Pick<DbConnection, "read">) {
  const [row] = await connection.read({ sql: PAGES, args: [] });
  const { pages, free, bytes, vacuum } = row ?? {};
  return {
    pages: Number(pages ?? 0),
    free: Number(free ?? 0),
    pageBytes: Number(bytes ?? 0),
    canShrink: vacuum === INCREMENTAL,
  };
}

/** Two subqueries with one look-up each: `min` and `max` in one query would read the whole table. */
const ENDS = "SELECT (SELECT min(rowid) FROM actions) AS first, (SELECT max(rowid) FROM actions) AS last";

/** Looks at positions in the table. Some may have no row, and no row is found twice. */
const SAMPLE = `SELECT total(finished_at <= ?) / max(count(*), 1) AS part
  FROM actions WHERE rowid IN (SELECT value FROM json_each(?))`;

/** Which part of all actions finished by then, from 0 to 1. */
async function deletablePart(connection: Pick<DbConnection, "read">, finishedUntil: Date): Promise<number> {
  const [ends] = await connection.read({ sql: ENDS, args: [] });
  const [first, last] = [Number(ends?.["first"]), Number(ends?.["last"])];
  const places = Array.from({ length: SIZE_SAMPLE_ROWS }, (_, at) =>
    Math.round(first + (at * (last - first)) / (SIZE_SAMPLE_ROWS - 1)),
  );
  const [row] = await connection.read({ sql: SAMPLE, args: [finishedUntil.getTime(), JSON.stringify(places)] });
  return Number(row?.["part"]);
}
