import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAME = "outgate.db";

/** What a database file holds. */
export interface Stored {
  readonly isSound: boolean;
  /** Status and attempts of every action, by its id. */
  readonly actions: ReadonlyMap<string, StoredAction>;
}

export interface StoredAction {
  readonly status: string;
  readonly attempts: number;
  readonly retries: number;
}

/** Reads what a restart would find in the folder of a database. */
export function storedIn(folder: string): Stored {
  return readCopy(folder, (db) => {
    const rows = db.query<StoredAction & { readonly id: string }, []>(
      "SELECT id, status, attempts, retries FROM actions",
    );
    return { isSound: isSound(db), actions: new Map(rows.all().map(({ id, ...rest }) => [id, rest])) };
  });
}

function isSound(db: Database): boolean {
  return JSON.stringify(db.query("PRAGMA integrity_check").values()) === '[["ok"]]';
}

/** Looks into a copy of the file and its log, so that whoever writes to them is not disturbed. */
export function readCopy<T>(folder: string, look: (db: Database) => T): T {
  const copy = mkdtempSync(join(tmpdir(), "outgate-copy-"));
  // The log first: what a checkpoint moves meanwhile is then in both, and not in neither.
  for (const suffix of ["-wal", ""]) {
    if (existsSync(join(folder, NAME + suffix))) copyFileSync(join(folder, NAME + suffix), join(copy, NAME + suffix));
  }
  const db = new Database(join(copy, NAME));
  try {
    return look(db);
  } finally {
    db.close();
    rmSync(copy, { recursive: true });
  }
}
