import { Database } from "bun:sqlite";

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
    lock.exec("PRAGMA busy_timeout = 0");
    lock.exec("BEGIN EXCLUSIVE");
  } catch (cause) {
    lock.close();
    throw new DatabaseInUse(`Another Outgate has the database ${path} open. Stop it, or set DATABASE_URL to another file.`, {
      cause,
    });
  }
  return () => lock.close();
}
