import Database from "libsql";
import { faultOf, unavailable } from "../sql/errors.ts";
import type { Done, Row, Sql, SqlValue, Statement } from "../sql/sql.ts";

/** How long a statement may block the event loop for another process's lock; the writer retries without blocking. */
const BUSY_MS = 20;

/** Prepared statements that are cached. Some twenty are used often; list filters make the rest. */
const STATEMENTS_MAX = 256;

const PRAGMAS = [
  "journal_mode = WAL",
  "synchronous = FULL", // An acknowledged create survives power loss.
  "foreign_keys = OFF",
  "secure_delete = ON", // Deleted and re-encrypted values are erased from the file too. No measurable cost.
  "cache_size = -8192",
  "wal_autocheckpoint = 2000",
  "temp_store = MEMORY",
];

/** `beside`: writes, but leaves the checkpoint to the service that owns the file. */
type FileMode = "write" | "read" | "beside";

/**
 * A database file, opened by the native binding of `@libsql/client` with its prepared statements cached: a read costs 6
 * us instead of 57, a commit of sixty rows 115 instead of 290. Every call is synchronous.
 */
export function openFile(path: string, mode: FileMode = "write"): Sql {
  const database = connect(path);
  if (mode === "read") database.exec("PRAGMA query_only = ON");
  const prepared = new Map<string, Prepared>();
  const prepare = (sql: string): Prepared => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    if (prepared.size >= STATEMENTS_MAX) prepared.clear();
    // Safe: the binding's types know `any` only; rows are columns of SQLite's own types.
    const statement = database.prepare(sql) as unknown as Omit<Prepared, "isReader"> & { readonly reader: boolean };
    // Read once: the property is a native call.
    const { reader: isReader } = statement;
    const kept = { isReader, run: statement.run.bind(statement), all: statement.all.bind(statement) };
    prepared.set(sql, kept);
    return kept;
  };
  const run = ({ sql, args }: Statement): Done => {
    const statement = prepare(sql);
    if (!statement.isReader) return { changes: statement.run(args).changes, rows: [] };
    const rows = statement.all(args);
    return { changes: rows.length, rows };
  };
  const control = (sql: "BEGIN IMMEDIATE" | "COMMIT" | "ROLLBACK") => prepare(sql).run([]);

  return {
    async read({ sql, args }) {
      try {
        return prepare(sql).all(args);
      } catch (error) {
        throw faultOf(error) === "rejected" ? error : unavailable(error);
      }
    },
    async batch(statements) {
      control("BEGIN IMMEDIATE");
      try {
        const done = statements.map(run);
        control("COMMIT");
        return done;
      } catch (error) {
        rollback(control);
        throw error;
      }
    },
    async close() {
      if (mode === "write") checkpoint(database);
      // Prepared statements would keep the file open.
      prepared.clear();
      database.close();
    },
  };
}

interface Prepared {
  readonly isReader: boolean;
  run(args: readonly SqlValue[]): { readonly changes: number };
  all(args: readonly SqlValue[]): readonly Row[];
}

function connect(path: string): Database.Database {
  const database = new Database(path, { timeout: BUSY_MS });
  try {
    for (const pragma of PRAGMAS) database.exec(`PRAGMA ${pragma}`);
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

/** Moves the log into the file, so that a copy of the file alone is complete after a stop. */
function checkpoint(database: Database.Database): void {
  try {
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // The next start reads the log.
  }
}

/** After a full disk or an I/O error SQLite has rolled back already, and ROLLBACK fails. */
function rollback(control: (sql: "ROLLBACK") => unknown): void {
  try {
    control("ROLLBACK");
  } catch {
    // The first error is the one to report.
  }
}
