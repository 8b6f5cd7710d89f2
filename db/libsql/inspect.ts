import { Database } from "bun:sqlite";
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { faultOf } from "./errors.ts";

/** The database file is there and can't be read as one. */
export class DatabaseUnreadable extends Error {
  override readonly name = "DatabaseUnreadable";
}

/** A file up to this size is read from end to end: 1.8 ms a megabyte, so a quarter of a second at most. */
const CHECKED_BYTES_MAX = 128 * 1_048_576;

/**
 * Looks at a file through a connection that can't write, before one that can is opened: what is damaged or cut short
 * stops the start as it is, for whoever has to save what is left. Throws `DatabaseUnreadable`. A larger file is only
 * measured and its list of tables read; the rest shows when it is used.
 */
export function inspectFile(path: string): void {
  const bytes = sizeOf(path);
  const logBytes = sizeOf(`${path}-wal`);
  if (bytes === 0 && logBytes === 0) return;
  // SQLite takes an empty file for a new database and throws its log away.
  if (bytes === 0) throw unreadable(path);
  // After a crash in the middle of a checkpoint the last pages may be in the log alone.
  const isShort = bytes < expectedBytes(path);
  if (isShort && logBytes === 0) throw unreadable(path);
  if (!isSound(path, isShort || bytes <= CHECKED_BYTES_MAX)) throw unreadable(path);
}

function isSound(path: string, whole: boolean): boolean {
  const database = new Database(path, { readonly: true });
  try {
    database.query("SELECT count(*) FROM sqlite_schema").all();
    return !whole || JSON.stringify(database.query("PRAGMA quick_check(1)").values()) === '[["ok"]]';
  } catch (error) {
    if (/CORRUPT|NOTADB/.test(codeOf(error))) return false;
    throw error;
  } finally {
    database.close();
  }
}

/** What the file says of its own size (SQLite's file format, 1.3): page size at 16, pages at 28, valid if 24 equals 92. */
function expectedBytes(path: string): number {
  const head = Buffer.alloc(100);
  const file = openSync(path, "r");
  try {
    if (readSync(file, head, 0, head.length, 0) < head.length) return Number.POSITIVE_INFINITY;
  } finally {
    closeSync(file);
  }
  if (head.readUInt32BE(24) !== head.readUInt32BE(92)) return 0;
  const pageBytes = head.readUInt16BE(16);
  return (pageBytes === 1 ? 65_536 : pageBytes) * head.readUInt32BE(28);
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Says so to the operator. */
export function unreadable(path: string): DatabaseUnreadable {
  return new DatabaseUnreadable(
    `The database ${path} can't be read: it is damaged, cut short or no database. Nothing was written to it. ` +
      "Put a backup in its place, or set DATABASE_URL to another file.",
  );
}

/** Another process has this database open. */
export class DatabaseInUse extends Error {
  override readonly name = "DatabaseInUse";
}

/**
 * One process per file: two would stall each other for seconds. The operating system frees the lock with the process,
 * so that a `kill -9` leaves nothing behind. Returns how to let go.
 */
export function lockFile(path: string): () => void {
  const lock = new Database(`${path}.lock`, { create: true });
  try {
    lock.run("PRAGMA busy_timeout = 0");
    // Nothing is ever written here, and a journal beside it would be a file that nobody looks after.
    lock.run("PRAGMA journal_mode = MEMORY");
    lock.run("BEGIN EXCLUSIVE");
  } catch (cause) {
    lock.close();
    if (faultOf(cause) !== "busy") throw cause;
    const message = `Another Outgate has the database ${path} open. Stop it, or set DATABASE_URL to another file.`;
    throw new DatabaseInUse(message, { cause });
  }
  return () => lock.close();
}
