import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import type { Store } from "./store.ts";
import { faultOf, unavailable } from "./libsql/errors.ts";
import { FencedSql, openRemote } from "./libsql/remote.ts";
import { inspectFile, unreadable, lockFile } from "./libsql/inspect.ts";
import { migrate } from "./libsql/migrate.ts";
import type { HeaderSeal } from "./libsql/rows.ts";
import { LOCK_TIMES, type LockTimes, ServiceLock } from "./libsql/service-lock.ts";
import type { Sql } from "./libsql/sql.ts";
import { createStore } from "./libsql/store.ts";
import { openThreaded } from "./libsql/threaded.ts";

export interface StoreSettings {
  /** `file:<path>`, `libsql://…` or `http(s)://…`. */
  readonly url: string;
  readonly authToken: string | null;
  readonly seal: HeaderSeal;
  readonly now: Date;
  /**
   * Hears that a commit could not be made durable after it was accepted, or with `StoreLost` that another service has the
   * database by now; the process has to end.
   */
  readonly onFatal: (cause: unknown) => void;
  /** Hears that another service holds a remote database, or did until it was killed; it is waited for. */
  readonly onWait?: () => void;
  readonly lockTimes?: LockTimes;
}

/**
 * Opens the store that the URL names and brings its tables to this version. Throws `DatabaseInUse`, `NewerDatabase`
 * or `DatabaseUnreadable`: nothing is ever written over what can't be read; and `StoreUnavailable` while it is away,
 * locked or full.
 */
export async function openStore(settings: StoreSettings): Promise<Store> {
  const path = filePathOf(settings.url);
  try {
    return await open(settings, path);
  } catch (error) {
    if (isPassing(error)) throw unavailable(error);
    if (path !== null && /CORRUPT|NOTADB/.test(codeOf(error))) throw unreadable(path);
    throw error;
  }
}

async function open(settings: StoreSettings, path: string | null): Promise<Store> {
  const { seal, now, onFatal } = settings;
  const { sql, release } = path === null ? await openShared(settings) : await openAlone(path, onFatal);
  try {
    await migrate(sql, now);
  } catch (error) {
    await sql.close();
    release();
    throw error;
  }
  return createStore({ sql, seal, isAlone: path !== null, onFatal, release });
}

/** Whether waiting mends it; a file that nobody may open or write has to be mended by whoever runs the service. */
function isPassing(error: unknown): boolean {
  const text = `${codeOf(error)} ${error instanceof Error ? error.message : ""}`;
  return faultOf(error) !== "rejected" && !/CANTOPEN|READONLY|NOTADB|CORRUPT|unable to open|malformed/i.test(text);
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** Where a `file:` URL keeps its database; null for the others. */
export function filePathOf(url: string): string | null {
  return url.startsWith("file:") ? url.slice("file:".length).replace(/^\/\/(?=\/)/, "") : null;
}

/** Whether a file is there already, so that a new master key is never made beside old data. */
export function databaseExists(url: string): boolean {
  const path = filePathOf(url);
  return path !== null && existsSync(path);
}

interface Opened {
  readonly sql: Sql;
  readonly release: () => void;
}

async function openShared({ url, authToken, onFatal, onWait, lockTimes }: StoreSettings): Promise<Opened> {
  const sql = openRemote(url, authToken);
  const holder = { id: crypto.randomUUID(), name: `process ${process.pid} on ${hostname()}` };
  try {
    const lock = await ServiceLock.take(sql, holder, lockTimes ?? LOCK_TIMES, onWait ?? (() => {}));
    return { sql: new FencedSql(sql, lock, onFatal), release: () => {} };
  } catch (error) {
    await sql.close();
    throw error;
  }
}

async function openAlone(path: string, onDeath: (cause: unknown) => void): Promise<Opened> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const release = lockFile(path);
  try {
    inspectFile(path);
    const sql = await openThreaded(path, onDeath);
    for (const suffix of ["", "-wal", "-shm", ".lock"]) if (existsSync(path + suffix)) chmodSync(path + suffix, 0o600);
    return { sql, release };
  } catch (error) {
    release();
    throw error;
  }
}
