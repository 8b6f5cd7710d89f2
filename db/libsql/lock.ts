import { Database } from "bun:sqlite";
import { faultOf } from "./fault.ts";

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
