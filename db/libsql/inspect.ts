/** What is looked at before a database file is opened: its path, its lock, and whether it and its log are sound. Errors are for the operator. */
import { Database } from "bun:sqlite";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readSync,
  realpathSync,
  statfsSync,
  statSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { realPath } from "../../src/config/values.ts";
import { errorCode, faultKind, errorReason } from "../sql/errors.ts";

/** The database file exists, but can't be read. */
export class DatabaseUnreadable extends Error {
  override readonly name = "DatabaseUnreadable";
}

/** The code by which this error crosses a thread, with its message. */
export const UNREADABLE = "OUTGATE_UNREADABLE";

/** Files up to this size are checked completely: 1.8 ms per megabyte, a quarter of a second at most. */
const CHECKED_BYTES_MAX = 128 * 1_048_576;

/** Logs up to this size are checked completely. A checkpoint begins at 8 MB. */
const CHECKED_LOG_BYTES_MAX = 64 * 1_048_576;

/**
 * Checks a file through a read-only connection before it is opened for writing. Throws `DatabaseUnreadable` for a damaged or truncated file, or
 * one without its log, which stays untouched so that it can be recovered. In larger files, only the size and the list of tables are checked.
 */
export function inspectFile(path: string): void {
  checkLog(path);
  const bytes = fileSize(path);
  const logBytes = fileSize(`${path}-wal`);
  if (bytes === 0 && logBytes === 0) return;
  // SQLite would take an empty file for a new database and delete its log.
  if (bytes === 0) throw unreadable(path);
  // After a crash during a checkpoint, the last pages may be only in the log.
  const isShort = bytes < expectedBytes(path);
  if (isShort && logBytes === 0) throw unreadable(path);
  if (!isSound(path, isShort || bytes <= CHECKED_BYTES_MAX)) throw unreadable(path);
}

function isSound(path: string, whole: boolean): boolean {
  const database = new Database(path, { readonly: true });
  try {
    const tables = database.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    // Every version creates the table `migrations` first.
    const [other] = tables.some(({ name }) => name === "migrations") ? [] : tables;
    if (other !== undefined) throw foreign(path, other.name);
    // At 68 of the header, and in the first page of the log. Each backup has a number of its own.
    const logged = database.query<{ application_id: number }, []>("PRAGMA application_id").get()?.application_id;
    const head = readBeginning(path, 100);
    if (head.length === 100 && head.readInt32BE(68) !== logged) throw otherLog(path);
    return !whole || JSON.stringify(database.query("PRAGMA quick_check(1)").values()) === '[["ok"]]';
  } catch (error) {
    if (/CORRUPT|NOTADB/.test(errorCode(error))) return false;
    throw error;
  } finally {
    database.close();
  }
}

/** The size by the file's header (SQLite file format, 1.3): page size at 16, number of pages at 28, valid if 24 equals 92. */
function expectedBytes(path: string): number {
  const head = readBeginning(path, 100);
  if (head.length < 100) return Number.POSITIVE_INFINITY;
  if (head.readUInt32BE(24) !== head.readUInt32BE(92)) return 0;
  const pageBytes = head.readUInt16BE(16);
  return (pageBytes === 1 ? 65_536 : pageBytes) * head.readUInt32BE(28);
}

/** The index of a log, in the shared memory that a kill leaves. A process that ends in order leaves neither it nor the log. */
interface LogIndex {
  readonly frames: number;
  /** How many of the frames the file has, too. */
  readonly saved: number;
  readonly pageBytes: number;
  /** Differs each time that the log begins again. */
  readonly salt: Buffer;
}

/**
 * Throws if the log is gone, or not what its index says: a process that was killed left what it wrote last only there, and without it
 * calls that were made are pending. SQLite takes the log up to the first damaged frame, says nothing and makes another index, so whatever
 * opens the file looks first. Pages of such a log also hide later ones that the file has.
 */
export function checkLog(path: string, look = logProblem): void {
  for (let looks = 0; looks < LOG_LOOKS_MAX; looks += 1) {
    const problem = look(path);
    if (problem === null) break;
    const { index, message } = problem;
    // Another process may have moved the log into the file meanwhile, and deleted it or begun it again.
    if (readLogIndex(path)?.salt.equals(index.salt) === true) throw new DatabaseUnreadable(message);
  }
  // Looked at twice, since a service may have begun a log in between.
  if (lacksLog(path) && lacksLog(path)) throw new DatabaseUnreadable(missingLog(path));
}

const LOG_LOOKS_MAX = 5;

/** Whether the file says that it needs its log (`user_version` at 60 of its header, as `file.ts` sets it), and has none, not even an empty one. */
function lacksLog(path: string): boolean {
  if (existsSync(`${path}-wal`)) return false;
  const head = readBeginning(path, 100);
  return head.length === 100 && head.readUInt32BE(60) === 1;
}

function missingLog(path: string): string {
  return (
    `The log ${path}-wal of the database is not there. If a program such as sqlite3 has saved it in the file after a kill, nothing is lost. ` +
    "If it was deleted, or the file was copied without it while a service ran, what was written last was only there, and calls made since may " +
    `be made again: put it back, or restore a backup. To go on without it, stop what uses the file. ${emptyLog(path)}`
  );
}

function emptyLog(path: string): string {
  return `Then make an empty log: touch ${path}-wal`;
}

export function logProblem(path: string): { readonly index: LogIndex; readonly message: string } | null {
  const index = readLogIndex(path);
  if (index === null) return null;
  const [log, memory] = [`${path}-wal`, `${path}-shm`];
  const sound = countSoundFrames(log, index);
  const isSaved = index.saved >= index.frames;
  if (sound >= index.frames || (isSaved && sound === 0)) return null;
  const isNeeded = sound < index.saved;
  const stale = isNeeded && sound > 0 ? `${log} and ${memory}` : memory;
  // Of pages that later frames have, too, the file may have an older state than all others.
  const goOn = isNeeded ? "If the file is a backup" : "To go on without it, or if the file is a backup";
  const begin = isNeeded || existsSync(log) ? "" : ` ${emptyLog(path)}`;
  const message = isSaved
    ? `The log ${log} of the database was cut or damaged. Nothing is lost: the database file has all of it. Stop what uses the database, ` +
      `and delete ${stale}.`
    : `The log ${log} of the database was deleted, cut or damaged. What was written last was only there, and calls made since may be ` +
      `made again. Put it back, or restore a backup. ${goOn}, stop what uses it and delete ${stale}.${begin}`;
  return { index, message };
}

/** SQLite's WAL-mode file format, 2.1: a header, the same again, and how many frames the file has. Null: no process has finished one. */
function readLogIndex(path: string): LogIndex | null {
  const index = readBeginning(`${path}-shm`, 100);
  const isFinished =
    index.length === 100 && index.readUInt32LE(0) === 3_007_000 && index.subarray(0, 48).equals(index.subarray(48, 96));
  if (!isFinished) return null;
  const pageBytes = index.readUInt16LE(14);
  return { frames: index.readUInt32LE(16), saved: index.readUInt32LE(96), pageBytes, salt: index.subarray(32, 40) };
}

/**
 * How many frames of the index the log has, up to the first without its checksum (SQLite file format, 4.1 and 4.2). A log that is newer
 * than the index, as after a power cut, has all, and so has one with checksums in the byte order of another machine.
 */
function countSoundFrames(log: string, { frames, pageBytes, salt }: LogIndex): number {
  const bytes = logFileBytes(frames, pageBytes);
  const frameBytes = logFileBytes(1, pageBytes) - LOG_HEAD_BYTES;
  if (bytes > CHECKED_LOG_BYTES_MAX) return Math.floor((fileSize(log) - LOG_HEAD_BYTES) / frameBytes);
  const read = readBeginning(log, bytes);
  if (read.length < LOG_HEAD_BYTES) return 0;
  if (read.readUInt32BE(0) === 0x37_7f_06_83) return Math.floor((read.length - LOG_HEAD_BYTES) / frameBytes);
  const words = new Uint32Array(read.buffer, read.byteOffset, Math.floor(read.length / 4));
  let [first, second] = [0, 0];
  const sumUp = (from: number, to: number) => {
    for (let at = from / 4; at < to / 4; at += 2) {
      first = (first + (words[at] ?? 0) + second) >>> 0;
      second = (second + (words[at + 1] ?? 0) + first) >>> 0;
    }
  };
  const isSumAt = (at: number) => read.readUInt32BE(at) === first && read.readUInt32BE(at + 4) === second;
  sumUp(0, 24);
  if (read.readUInt32BE(0) !== 0x37_7f_06_82 || !isSumAt(24)) return 0;
  if (!read.subarray(16, 24).equals(salt)) return frames;
  let sound = 0;
  for (let at = LOG_HEAD_BYTES; at + frameBytes <= read.length; at += frameBytes) {
    sumUp(at, at + 8);
    sumUp(at + 24, at + frameBytes);
    if (!isSumAt(at + 16) || !read.subarray(at + 8, at + 16).equals(salt)) break;
    sound += 1;
  }
  return sound;
}

const LOG_HEAD_BYTES = 32;

/** How many bytes a log of so many frames has (SQLite file format, 4.1 and 4.2). */
export function logFileBytes(frames: number, pageBytes: number): number {
  return LOG_HEAD_BYTES + frames * (24 + (pageBytes === 1 ? 65_536 : pageBytes));
}

/** The first bytes of a file; fewer if it has no more, or is not there. */
function readBeginning(path: string, bytes: number): Buffer {
  const beginning = Buffer.alloc(Math.min(bytes, fileSize(path)));
  if (beginning.length === 0) return beginning;
  let file: number;
  try {
    file = openSync(path, "r");
  } catch (error) {
    // Another process has deleted it meanwhile.
    if (errorCode(error) === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
  try {
    return beginning.subarray(0, readSync(file, beginning, 0, beginning.length, 0));
  } finally {
    closeSync(file);
  }
}

export function fileSize(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function otherLog(path: string): DatabaseUnreadable {
  return new DatabaseUnreadable(
    `The log ${path}-wal belongs to another file than ${path}, as where a backup has replaced the file of a service that was killed. ` +
      `Nothing was written. Stop what uses the database, and move ${path}-wal and ${path}-shm away.`,
  );
}

function foreign(path: string, table: string): DatabaseUnreadable {
  return new DatabaseUnreadable(
    `The database ${path} is another program's: it has the table ${JSON.stringify(table)} and none of Outgate's. Nothing was ` +
      "written to it. Set DATABASE_URL to another file.",
  );
}

/** The error for the operator. */
export function unreadable(path: string): DatabaseUnreadable {
  // The log of the old file damages what is put in its place.
  const log =
    fileSize(`${path}-wal`) > 0
      ? " Move the log next to it (-wal, and -shm if it is there) away with it: it belongs to no other file."
      : "";
  return new DatabaseUnreadable(
    `The database ${path} can't be read: it is damaged, cut short or no database. Nothing was written to it. ` +
      `Put a backup in its place, or set DATABASE_URL to another file.${log}`,
  );
}

/** The path of the file beside a database that says that it was migrated, so that no service sends its calls once more. */
export function migratedMark(path: string): string {
  return `${realPath(path)}.migrated`;
}

/** Another process has this database open. */
export class DatabaseInUse extends Error {
  override readonly name = "DatabaseInUse";
}

/** A locked database file. */
interface LockedFile {
  /** The path to open it by. */
  readonly path: string;
  readonly release: () => void;
}

/**
 * Locks a database file for this process. Two processes would block each other for seconds, and end each other's attempts as
 * those of a killed process. The lock file is beside the real path, so that all symbolic links to the file lead to it. The
 * operating system frees the lock with the process, even after `kill -9`. Throws `DatabaseInUse`, or an error for the operator.
 */
export function lockFile(path: string): LockedFile {
  const real = singlePath(path);
  const locks = [takeLock(`${real}.lock`, path, real)];
  const release = () => {
    for (const lock of locks) lock.close();
  };
  try {
    // Older versions lock the path that they were given, and one may still be running.
    const old = `${path}.lock`;
    if (existsSync(old) && realpathSync(old) !== realpathSync(`${real}.lock`)) locks.push(takeLock(old, path, real));
    return { path: real, release };
  } catch (error) {
    release();
    throw error;
  }
}

/**
 * The path of the file with symbolic links resolved. Throws an error for the operator if it is a folder, or if the file has
 * hard links: other processes could open it by another path, beside which they would not find its log.
 */
export function singlePath(path: string): string {
  const real = realPath(path);
  const found = statSync(real, { throwIfNoEntry: false });
  if (found?.isDirectory() === true) {
    throw new Error(
      `The database ${path} is a folder. Set DATABASE_URL to a file in it, such as file:${join(path, "outgate.db")}.`,
    );
  }
  const names = found?.nlink ?? 1;
  if (names <= 1) return real;
  throw new Error(
    `The file of the database ${path} has ${names} names (hard links). SQLite keeps a log for each, so that what is written ` +
      "under one name is missing under the other. Stop what uses the file, delete the other names, and keep the one that " +
      `has a log (-wal) beside it, if there is one. \`find <folder> -samefile ${path}\` lists them.`,
  );
}

/** What the system lets nobody here write of a file and its folder, with its code; null: it allows both. */
export function refusedPlace(path: string): { readonly place: string; readonly code: string } | null {
  let folder = dirname(path);
  while (!existsSync(folder)) folder = dirname(folder);
  if (!statSync(folder).isDirectory()) return { place: folder, code: "ENOTDIR" };
  for (const place of [folder, path]) {
    try {
      if (existsSync(place)) accessSync(place, constants.R_OK | constants.W_OK);
    } catch (error) {
      return { place, code: errorCode(error) };
    }
  }
  return null;
}

/** More room than the first pages of a log and its shared memory take. */
const ROOM_BYTES_MIN = 128 * 1_024;

/** Whether the disk has room for the log of a file. */
export function hasRoom(path: string): boolean {
  const { bavail, bsize } = statfsSync(dirname(path));
  return bavail * bsize >= ROOM_BYTES_MIN;
}

/** Why a file that is there can't be opened: a service locks it as long as its disk is full. */
export function reasonAt(path: string, cause: unknown): string {
  return hasRoom(path) ? errorReason(cause) : "the disk is full";
}

function takeLock(file: string, path: string, real: string): Database {
  const lock = new Database(file, { create: true });
  try {
    lock.run("PRAGMA busy_timeout = 0");
    // Avoids a journal file, since nothing is ever written here.
    lock.run("PRAGMA journal_mode = MEMORY");
    lock.run("BEGIN EXCLUSIVE");
    return lock;
  } catch (cause) {
    lock.close();
    if (faultKind(cause) !== "busy") throw cause;
    const name = resolve(path) === real ? path : `${path} (${real})`;
    const message = `Another Outgate has the database ${name} open. Stop it, or set DATABASE_URL to another file.`;
    throw new DatabaseInUse(message, { cause });
  }
}
