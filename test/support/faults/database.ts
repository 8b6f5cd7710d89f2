import { Database } from "bun:sqlite";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

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

/** Reads a copy of the file and its log, as a restart would read them; whoever writes to it meanwhile is not disturbed. */
export function storedIn(folder: string): Stored {
  const copy = mkdtempSync(join(tmpdir(), "outgate-copy-"));
  const name = "outgate.db";
  for (const suffix of ["", "-wal"]) {
    const from = join(folder, name + suffix);
    if (existsSync(from)) copyFileSync(from, join(copy, name + suffix));
  }
  const db = new Database(join(copy, name));
  try {
    const isSound = JSON.stringify(db.query("PRAGMA integrity_check").values()) === '[["ok"]]';
    const rows = db.query<StoredAction & { readonly id: string }, []>(
      "SELECT id, status, attempts, retries FROM actions",
    );
    return { isSound, actions: new Map(rows.all().map(({ id, ...rest }) => [id, rest])) };
  } finally {
    db.close();
    rmSync(copy, { recursive: true });
  }
}
