import { Database } from "bun:sqlite";
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { sqliteDialect } from "./dialect.ts";
import { codeOf, orUnavailable } from "../sql/errors.ts";
import type { Row, Sql, SqlValue } from "../sql/sql.ts";

/** More than the shared memory and the first pages of a log take. */
const ROOM_BYTES_MIN = 128 * 1_024;

/** Whether a file could not be opened because there is no room for the files beside it. */
export function isForLackOfRoom(error: unknown): boolean {
  return /^(SQLITE_IOERR_SHMSIZE|SQLITE_FULL|ENOSPC|EDQUOT)$/.test(codeOf(error));
}

/**
 * Opens a file that could not be opened for lack of room: SQLite finds none for the shared memory of the log. Until there is some,
 * this reads the file alone, with that memory in the heap, and refuses writes; then each write tries `open`, which opens it as
 * usual. Throws `cause`, why it could not be opened, if it can't be read either; or that it is damaged.
 */
export function openOnFullDisk(path: string, open: () => Promise<Sql>, cause: unknown): Sql {
  /** Null while the file is opened as usual, and after that. */
  let alone: Database | null = null;
  let opened: Sql | null = null;
  let opening: Promise<void> | null = null;
  try {
    alone = openAlone(path);
  } catch (error) {
    throw /CORRUPT|NOTADB/.test(codeOf(error)) ? error : cause;
  }
  const openAgain = async () => {
    if (alone === null || roomBytes(path) < ROOM_BYTES_MIN) throw noRoom();
    alone.close();
    alone = null;
    try {
      opened = await open();
    } catch (error) {
      alone = openAlone(path);
      throw error;
    }
  };
  const writable = async (): Promise<Sql> => {
    if (opened !== null) return opened;
    opening ??= openAgain().finally(() => (opening = null));
    await opening;
    return writable();
  };
  return {
    dialect: sqliteDialect,
    async read(statement) {
      // Nobody else reads the file while this one has it alone, so the two can't overlap.
      await opening?.catch(() => {});
      if (opened !== null) return opened.read(statement);
      return orUnavailable(() => {
        if (alone === null) throw new Error("The database connection is not open");
        return alone.query<Row, SqlValue[]>(statement.sql).all(...statement.args);
      });
    },
    batch: async (statements) => (await writable()).batch(statements),
    transact: async (calls) => (await writable()).transact(calls),
    async close() {
      await opening?.catch(() => {});
      alone?.close();
      alone = null;
      await opened?.close();
    },
  };
}

/** In this mode SQLite makes no files that need room. It locks out others until it is closed. */
function openAlone(path: string): Database {
  const database = new Database(path, { readwrite: true, create: false });
  try {
    database.run("PRAGMA locking_mode = EXCLUSIVE");
    database.run("PRAGMA query_only = ON");
    database.query("SELECT count(*) FROM sqlite_schema").all();
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function roomBytes(path: string): number {
  const { bavail, bsize } = statfsSync(dirname(path));
  return bavail * bsize;
}

/** As SQLite itself says it. */
function noRoom(): Error {
  return Object.assign(new Error("database or disk is full"), { code: "SQLITE_FULL" });
}
