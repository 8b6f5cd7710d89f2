/** Copies of a database file: a snapshot while a service runs, and what a restore changes in it. */
import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync } from "node:fs";
import { checkLog, reasonAt, singlePath } from "./libsql/inspect.ts";
import { RESTORED_POSITIONS } from "../src/core/limits.ts";
import { errorCode } from "./sql/errors.ts";

/** How long to wait for a lock. A running service holds it for milliseconds. */
const BUSY_MS = 5_000;

/**
 * Copies a consistent snapshot of a database into a new file, compacted and without a log, even while a service writes to it. Throws if the new
 * file exists, the disk is full, or the copy is damaged. The service goes on meanwhile, and its log grows until the copy is done.
 */
export function copyDatabase(path: string, to: string): void {
  const real = singlePath(path);
  checkLog(real);
  const source = new Database(real, { readonly: true });
  try {
    source.run(`PRAGMA busy_timeout = ${BUSY_MS}`);
    const [[vacuum] = []] = source.query("PRAGMA auto_vacuum").values();
    // So that the copy of a version 0.1 file can shrink later. Only if it can't yet, since this would write to the file.
    if (vacuum === 0) source.run("PRAGMA auto_vacuum = INCREMENTAL");
    source.run("VACUUM INTO ?", [to]);
  } catch (cause) {
    throw new Error(`The database ${path} can't be copied to ${to}: ${reasonAt(path, cause)} (${errorCode(cause)}).`, {
      cause,
    });
  } finally {
    source.close();
  }
  const copy = new Database(to, { readwrite: true, create: false });
  try {
    // The file may have been about to say that it needs its log.
    copy.run("PRAGMA user_version = 0");
    // By which the log of the file that it replaces is known for another one's.
    copy.run(`PRAGMA application_id = ${crypto.getRandomValues(new Int32Array(1))[0]}`);
    const file = openSync(to, "r");
    fsyncSync(file);
    closeSync(file);
    if (JSON.stringify(copy.query("PRAGMA quick_check(1)").values()) === '[["ok"]]') return;
    throw new Error(`The copy ${to} of the database is not sound: the database may be damaged. Look at it first.`);
  } finally {
    copy.close();
  }
}

/**
 * Moves the event stream of a copy past every position that the service may still give out before the copy replaces it: a client that
 * stands at one would go on in the middle of other events. An empty row holds the new position, as after pruning.
 */
export function movePositions(path: string): void {
  const copy = new Database(path, { readwrite: true, create: false });
  try {
    const newest = copy.query<{ seq: number; at: number }, []>("SELECT max(seq) AS seq, at FROM timeline").get();
    const position = (newest?.seq ?? 0) + RESTORED_POSITIONS;
    copy.run("DELETE FROM timeline WHERE action_id = ''");
    copy.run(
      `INSERT INTO timeline (seq, action_id, account_id, at, run, revision, type, status, detail)
        VALUES (?, '', '', ?, 1, 0, 'restored', 'cancelled', '{}')`,
      [position, newest?.at ?? 0],
    );
  } finally {
    copy.close();
  }
}

/** Reads facts from a closed copy. */
export function factsIn(path: string, names: readonly string[]): readonly (string | null)[] {
  const copy = new Database(path, { readonly: true });
  try {
    const find = copy.query<{ value: string }, [string]>("SELECT value FROM facts WHERE name = ?");
    return names.map((name) => find.get(name)?.value ?? null);
  } finally {
    copy.close();
  }
}
