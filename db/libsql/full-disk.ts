import { Database } from "bun:sqlite";
import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { sqliteDialect } from "./dialect.ts";
import { codeOf, faultOf, unavailable } from "../sql/errors.ts";
import type { Call, CallResult } from "../commands/command.ts";
import type { Done, Row, Sql, SqlValue, Statement } from "../sql/sql.ts";

/** More than the shared memory and the first pages of a log take. */
const ROOM_BYTES_MIN = 128 * 1_024;

/** Whether a file could not be opened because there is no room for the files beside it. */
export function isForLackOfRoom(error: unknown): boolean {
  return /^(SQLITE_IOERR_SHMSIZE|SQLITE_FULL|ENOSPC|EDQUOT)$/.test(codeOf(error));
}

/**
 * Opens a file that could not be opened for lack of room. It is read until there is some; then each write tries `open`, which
 * opens it as usual. Throws `cause`, why it could not be opened, if it can't be read either; or that it is damaged.
 */
export function openOnFullDisk(path: string, open: () => Promise<Sql>, cause: unknown): Sql {
  try {
    return new FullDiskFile(path, open);
  } catch (error) {
    throw /CORRUPT|NOTADB/.test(codeOf(error)) ? error : cause;
  }
}

/**
 * SQLite finds no room for the shared memory of the log: until there is some, this reads the file alone, with that memory in
 * the heap, and refuses writes.
 */
class FullDiskFile implements Sql {
  readonly dialect = sqliteDialect;
  readonly #path: string;
  readonly #open: () => Promise<Sql>;
  /** Null while the file is opened as usual, and after that. */
  #alone: Database | null;
  #opened: Sql | null = null;
  #opening: Promise<void> | null = null;

  constructor(path: string, open: () => Promise<Sql>) {
    this.#path = path;
    this.#open = open;
    this.#alone = openAlone(path);
  }

  async read(statement: Statement): Promise<readonly Row[]> {
    // Nobody else reads the file while this one has it alone, so the two can't overlap.
    await this.#opening?.catch(() => {});
    if (this.#opened !== null) return this.#opened.read(statement);
    try {
      if (this.#alone === null) throw new Error("The database connection is not open");
      return this.#alone.query<Row, SqlValue[]>(statement.sql).all(...statement.args);
    } catch (error) {
      throw faultOf(error) === "rejected" ? error : unavailable(error);
    }
  }

  async batch(statements: readonly Statement[]): Promise<readonly Done[]> {
    return (await this.#writable()).batch(statements);
  }

  async transact(calls: readonly Call[]): Promise<readonly CallResult[]> {
    return (await this.#writable()).transact(calls);
  }

  async #writable(): Promise<Sql> {
    if (this.#opened !== null) return this.#opened;
    this.#opening ??= this.#openAgain().finally(() => (this.#opening = null));
    await this.#opening;
    return this.#writable();
  }

  async close(): Promise<void> {
    await this.#opening?.catch(() => {});
    this.#alone?.close();
    this.#alone = null;
    await this.#opened?.close();
  }

  async #openAgain(): Promise<void> {
    if (this.#alone === null || roomBytes(this.#path) < ROOM_BYTES_MIN) throw noRoom();
    this.#alone.close();
    this.#alone = null;
    try {
      this.#opened = await this.#open();
    } catch (error) {
      this.#alone = openAlone(this.#path);
      throw error;
    }
  }
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
