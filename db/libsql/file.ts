/**
 * A database file: opens it, reads, runs commands, saves its log (WAL), and watches that neither is deleted or replaced. `inspect.ts` looks
 * at a file before; `threaded.ts` has it written by a thread.
 */
import { constants, Database, type Statement as NativeStatement } from "bun:sqlite";
import { rmSync, statSync } from "node:fs";
import { FILE_LOOK_MS, LOG_SAVE_EVERY_MS, LOG_SAVE_MS_MAX } from "../../src/core/limits.ts";
import { StoreLost } from "../../src/core/store.ts";
import { type CommandCall, type DbConnection, runCalls, runGroup } from "../commands/command.ts";
import { type Row, sqliteDialect, type SqlValue, type Statement } from "../sql/dialect.ts";
import { faultKind, orUnavailable } from "../sql/errors.ts";
import { logFileBytes, fileSize } from "./inspect.ts";
import { type Execute, openTx } from "./tx.ts";

/** How long a statement may block the event loop while another process holds the lock. The writer retries without blocking. */
const BUSY_MS = 20;

/** How many prepared statements are cached. About twenty are used often; the rest are from list filters. */
const STATEMENTS_MAX = 256;

/** Takes effect only in an empty file. Without it, pages of deleted rows are reused, but the file never gets smaller. */
const CAN_SHRINK = "auto_vacuum = INCREMENTAL";

/** Writes to a file that had another journal, such as a backup. */
const HAS_LOG = "journal_mode = WAL";

const PRAGMAS = [
  "synchronous = FULL", // An acknowledged create survives power loss.
  "foreign_keys = OFF",
  "secure_delete = ON", // Deleted and re-encrypted values are erased from the file too. No measurable cost.
  "cache_size = -8192",
  "wal_autocheckpoint = 0", // The owner of the file saves the log.
  "temp_store = MEMORY",
];

/** How many pages of the log are saved in the file at once. */
const LOG_PAGES_MAX = 2_000;

/** How many more the log gets before it is saved again where somebody who read kept it from being saved or begun again. */
const LOG_PAGES_MORE = 50;

/**
 * `shared`: writes, but leaves the checkpoint to the service that owns the file. `alone`: reads without shared memory for the
 * log, since there is no room for it, and locks out other processes.
 */
type FileMode = "write" | "read" | "shared" | "alone";

/** A database file that this process has open. */
interface OwnFile extends DbConnection {
  /** Whether something has cut the log, so that it lacks what the file lacks too. */
  isLogCut(): boolean;
  /** Copies what only the log has into the file; false: somebody who reads still needs a part of it. */
  saveLog(): Promise<boolean>;
}

/**
 * Opens a database file with Bun's driver, which binds the 20 values of a create in 1.3 us (libsql's: 3.8 us). Every call is
 * synchronous. No other library in this process may open the file: when it closes it, the system drops all locks of the process.
 */
export function openFile(path: string, mode: FileMode = "write"): OwnFile {
  const database = connect(path, mode);
  const prepared = new Map<string, Prepared>();
  const forget = () => {
    for (const { statement } of prepared.values()) statement.finalize();
    prepared.clear();
  };
  const prepare = (sql: string): Prepared => {
    const known = prepared.get(sql);
    if (known !== undefined) return known;
    if (prepared.size >= STATEMENTS_MAX) forget();
    const statement = database.prepare<Row, SqlValue[]>(sql);
    // Read once, since the property is a native call.
    const kept = { statement, columns: statement.columnNames };
    prepared.set(sql, kept);
    return kept;
  };
  const execute: Execute = async (sql, all) => {
    const { statement, columns } = prepare(sql);
    return all.map((args) => {
      if (columns.length === 0) return { columns, rows: [], changes: statement.run(...args).changes };
      const rows = statement.values(...args);
      return { columns, rows, changes: rows.length };
    });
  };
  const saver = mode === "write" ? new LogSaver(database) : null;
  const control = (sql: string) => prepare(sql).statement.run();
  const transact = async (calls: readonly CommandCall[]): Promise<readonly unknown[]> => {
    control("BEGIN IMMEDIATE");
    try {
      const results = await runCalls(calls, (group) => {
        const tx = openTx(execute);
        return atOnce(runGroup(tx, group)).finally(() => tx.end());
      });
      control("COMMIT");
      saver?.afterCommit();
      return results;
    } catch (error) {
      rollback(control);
      throw error;
    }
  };
  /** The last transaction that is running or waits for its turn. */
  let last: Promise<void> | null = null;
  const inTurn = async <Result>(work: () => Promise<Result>): Promise<Result> => {
    const before = last;
    const { promise: own, resolve: end } = Promise.withResolvers<void>();
    last = own;
    if (before !== null) await before;
    try {
      return await work();
    } finally {
      if (last === own) last = null;
      end();
    }
  };
  const read = ({ sql, args }: Statement): Promise<readonly Row[]> =>
    orUnavailable(() => prepare(sql).statement.all(...args));

  return {
    dialect: sqliteDialect,
    // During a transaction, a read would see what is not committed yet.
    read: (statement) => (last === null ? read(statement) : inTurn(() => read(statement))),
    transact: (calls) => inTurn(() => transact(calls)),
    // Looked at twice, since another process may move the log into the file, and cut it, between the two steps of a look.
    isLogCut: () => isLogCut(database, path) && isLogCut(database, path),
    saveLog: () => inTurn(async () => isWhole(checkpointed(database, "PASSIVE"))),
    close: () =>
      inTurn(async () => {
        // The process ends, and leaves the log that the file says it needs.
        if (saver?.hasSavedAll() === false) return;
        if (saver === null) keepNeededLog(database);
        // Prepared statements would keep the file open.
        forget();
        database.close();
      }),
  };
}

/** Every statement is answered at once, so a command that has not ended after this turn waits for something else: fails it. */
async function atOnce<Result>(running: Promise<Result>): Promise<Result> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const timer = setImmediate(() => reject(new Error("A command waits for something that is no statement of its own.")));
  try {
    return await Promise.race([running, over]);
  } finally {
    clearImmediate(timer);
  }
}

interface Prepared {
  readonly statement: NativeStatement<Row, SqlValue[]>;
  readonly columns: readonly string[];
}

function connect(path: string, mode: FileMode): Database {
  const database = mode === "alone" ? new Database(path, { readwrite: true, create: false }) : new Database(path);
  try {
    if (mode === "alone") database.run("PRAGMA locking_mode = EXCLUSIVE");
    database.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    const pages = database.query<{ page_count: number }, []>("PRAGMA page_count").get()?.page_count;
    const ofOwner = pages === 0 ? [CAN_SHRINK, HAS_LOG] : [HAS_LOG];
    const pragmas = mode === "write" ? [...ofOwner, ...PRAGMAS] : PRAGMAS;
    if (mode !== "alone") for (const pragma of pragmas) database.run(`PRAGMA ${pragma}`);
    if (mode === "read" || mode === "alone") database.run("PRAGMA query_only = ON");
  } catch (error) {
    database.close();
    throw error;
  }
  return database;
}

interface LogPages {
  readonly busy: number;
  readonly log: number;
  readonly checkpointed: number;
}

function checkpointed(database: Database, mode: "NOOP" | "PASSIVE"): LogPages {
  const none = { busy: 1, log: 0, checkpointed: 0 };
  return database.query<LogPages, []>(`PRAGMA wal_checkpoint(${mode})`).get() ?? none;
}

function isWhole({ busy, log, checkpointed: saved }: LogPages): boolean {
  return busy === 0 && log === saved;
}

function isLogCut(database: Database, path: string): boolean {
  try {
    const pages = checkpointed(database, "NOOP");
    if (pages.log <= pages.checkpointed) return false;
    const pageBytes = database.query<{ page_size: number }, []>("PRAGMA page_size").get()?.page_size ?? 0;
    return fileSize(`${path}-wal`) < logFileBytes(pages.log, pageBytes);
  } catch {
    // The next statement fails, too, and its error is told.
    return false;
  }
}

/**
 * Saves the log in the file. A file without its log has an older state, and SQLite does not notice. So the file itself has `user_version` 1,
 * which `inspect.ts` refuses if there is no log. The log has 0 in a frame behind that, so whoever reads the file with its log, such as a
 * program that copies both, finds 0.
 */
class LogSaver {
  readonly #database: Database;
  /** With so many pages the log is saved. The first commit saves it, so that the file says that it needs it. */
  #savedFrom = 0;
  /**
   * Whether the log has 1, too, as it must while that page is saved. No longer, since if the service is killed, whoever closes the file last
   * saves and deletes the log, and the file would seem to lack one.
   */
  #isOpen: boolean;

  constructor(database: Database) {
    this.#database = database;
    this.#isOpen = needsLog(database) && !this.#tell(0);
  }

  afterCommit(): void {
    if (!this.#isOpen && this.#pages() < this.#savedFrom) return;
    // Saved before that, too, so that the log has 1 only while one page is saved.
    if (!this.#isOpen && this.#save()) this.#isOpen = this.#tell(1);
    const isSaved = this.#isOpen && this.#save();
    if (this.#isOpen) this.#isOpen = !this.#tell(0);
    const pages = this.#pages();
    this.#savedFrom = isSaved && pages < LOG_PAGES_MAX ? LOG_PAGES_MAX : pages + LOG_PAGES_MORE;
  }

  #pages(): number {
    try {
      return checkpointed(this.#database, "NOOP").log;
    } catch {
      // The next statement fails, too, and its error is told: the commit is made.
      return 0;
    }
  }

  /** Saves the log, so that a copy of the file alone is complete after a stop. False: the file still says that it needs it. */
  hasSavedAll(): boolean {
    // There is room in a log that is saved.
    if (this.#isOpen && !this.#tell(0) && !(this.#save() && this.#tell(0))) return false;
    try {
      this.#database.run("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch {
      // The next start reads the log.
    }
    return true;
  }

  /** False: somebody who reads still needs a part of the log, or the disk is full. */
  #save(): boolean {
    return isDone(() => isWhole(checkpointed(this.#database, "PASSIVE")));
  }

  /** False: another process writes, or the disk is full. */
  #tell(isNeeded: 0 | 1): boolean {
    return isDone(() => {
      this.#database.run(`PRAGMA user_version = ${isNeeded}`);
      return true;
    });
  }
}

/** Whoever closes the file last saves the log and deletes it: leaves it if the file then says that it needs it. */
function keepNeededLog(database: Database): void {
  try {
    if (needsLog(database)) database.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
  } catch {
    // It can't be read, and so is not saved.
  }
}

function needsLog(database: Database): boolean {
  return database.query<{ user_version: number }, []>("PRAGMA user_version").get()?.user_version === 1;
}

function isDone(work: () => boolean): boolean {
  try {
    return work();
  } catch (error) {
    if (faultKind(error) === "fatal") throw error;
    return false;
  }
}

/** Rolls back. After a full disk or an I/O error, SQLite has already done so, and ROLLBACK fails. */
function rollback(control: (sql: "ROLLBACK") => unknown): void {
  try {
    control("ROLLBACK");
  } catch {
    // The first error is the one to report.
  }
}

/**
 * Calls `onLost` once if the file or its lock is deleted, moved or replaced, after which another service could open the same file, or
 * another one at its path, and send the same calls. Returns a function that ends the watch.
 */
export function watchFile(path: string, onLost: (cause: StoreLost) => void): () => void {
  const files = [path, `${path}.lock`].map((file) => ({ file, id: fileIdentity(file) }));
  const timer = setInterval(() => {
    const changed = files.find(({ file, id }) => ![id, UNKNOWN].includes(fileIdentity(file)));
    if (changed === undefined) return;
    clearInterval(timer);
    onLost(new StoreLost(`The file ${changed.file} was deleted, moved or replaced while the service ran.`));
  }, FILE_LOOK_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** The log of the file is not at its path any more. The code of this error crosses a thread. */
class LogGone extends Error {
  readonly code = "OUTGATE_LOG_GONE";
}

export interface LogWatch {
  /** Throws if the log is gone: what would be written to it is lost with the process. */
  check(): void;
  /** Ends the watch, but not before what a log that is gone held is saved. False: the file must not be closed. */
  end(): Promise<boolean>;
}

/**
 * Calls `onLost` once, with a sentence, if the log of a file or its shared memory is deleted, replaced or cut: a kill would lose what
 * only the log has, and other processes would read and write another one. SQLite still has a deleted log open, so its content is saved
 * first, in the file. Of a log that was cut nothing more is copied: pages would be missing in the middle.
 */
export function watchLog(
  path: string,
  file: Pick<OwnFile, "isLogCut" | "saveLog">,
  onLost: (sentence: string) => void,
): LogWatch {
  const log = `${path}-wal`;
  const parts = [log, `${path}-shm`];
  const ids = new Map([path, ...parts].map((part) => [part, fileIdentity(part)]));
  const isChanged = (part: string) => {
    const found = fileIdentity(part);
    // The first statement makes the log of a new file.
    if (ids.get(part) === "") ids.set(part, found === UNKNOWN ? "" : found);
    return ![ids.get(part), UNKNOWN].includes(found);
  };
  let isCut = false;
  let saving: Promise<void> | null = null;
  const save = async (changed: string) => {
    const isSaved = (await saveLog(file)) && !isChanged(path);
    const what = `The file ${changed} was deleted, moved or replaced while the service ran.`;
    if (!isSaved) return onLost(`${what} ${NOT_SAVED}`);
    // The next start would take another log at its path for this one.
    const isFree = changed !== log || isDeleted(log);
    const free = isFree ? "" : ` Delete ${log} before the next start: it is not the log of the database.`;
    onLost(`${what} Nothing is lost: the database file has all of it.${free}`);
  };
  const look = () => {
    // Whoever watches the file tells that.
    if (saving !== null || isCut || isChanged(path)) return;
    const changed = parts.find(isChanged);
    if (changed !== undefined) {
      saving = save(changed);
    } else if (file.isLogCut()) {
      isCut = true;
      onLost(`The file ${log} was cut short while the service ran. ${CUT}`);
    }
  };
  const timer = setInterval(look, FILE_LOOK_MS);
  return {
    check() {
      look();
      if (saving !== null || isCut) throw new LogGone("The log of the database is gone.");
    },
    async end() {
      clearInterval(timer);
      look();
      await saving;
      return !isCut;
    },
  };
}

const CUT = "What was written last is lost, and calls made since then may be made again.";

const NOT_SAVED = `It could not be saved in time. ${CUT}`;

function isDeleted(file: string): boolean {
  try {
    rmSync(file, { force: true });
    return true;
  } catch {
    return false;
  }
}

/** False: it could not be saved in time. */
async function saveLog(file: Pick<OwnFile, "saveLog">): Promise<boolean> {
  for (let tries = 0; tries < LOG_SAVE_MS_MAX / LOG_SAVE_EVERY_MS; tries += 1) {
    // Fails on a full disk.
    if (await file.saveLog().catch(() => false)) return true;
    await Bun.sleep(LOG_SAVE_EVERY_MS);
  }
  return false;
}

/** The disk or network did not tell: no reason to end a service. */
const UNKNOWN = "unknown";

/** Names a file on this machine, whatever its path; "": there is none. */
function fileIdentity(file: string): string {
  try {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false });
    return found === undefined ? "" : `${found.dev} ${found.ino}`;
  } catch {
    return UNKNOWN;
  }
}
