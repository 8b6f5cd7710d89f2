import { Database } from "bun:sqlite";
import { join } from "node:path";

/**
 * Every row of every table, read from the file itself. Without the time at which a key was used last: that is written of
 * a request by whoever comes with a valid key, whatever the request is.
 */
export function tablesIn(folder: string): Readonly<Record<string, readonly unknown[]>> {
  const db = new Database(join(folder, "outgate.db"), { readonly: true });
  try {
    const names = db.query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").values().flat();
    return Object.fromEntries(names.map((name) => [String(name), rowsOf(db, String(name))]));
  } finally {
    db.close();
  }
}

function rowsOf(db: Database, table: string): readonly unknown[] {
  const rows = db.query<Record<string, unknown>, []>(`SELECT * FROM ${table}`).all();
  return rows.map((row) => Object.fromEntries(Object.entries(row).filter(([column]) => column !== "last_used_at")));
}
