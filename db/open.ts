/**
 * Opens a database by its URL: the store of a service (`openStore`), or what an admin command needs of it (`openAdminStore`).
 * `sql/store.ts` makes the store over a connection, and `libsql/` and `postgres/` make connections.
 */
import { chmodSync, existsSync, mkdirSync } from "node:fs";
import { hostname } from "node:os";
import { dirname } from "node:path";
import type { AccountStore, PeopleStore } from "../src/core/account-store.ts";
import { createAccountStore } from "./commands/accounts.ts";
import type { DatabaseSize, FactStore, Store } from "../src/core/store.ts";
import { codeAndText, errorCode, faultKind, tellingAway, unavailable } from "./sql/errors.ts";
import { isPostgresUrl, realPath } from "../src/config/values.ts";
import { openFile, watchFile } from "./libsql/file.ts";
import {
  DatabaseUnreadable,
  inspectFile,
  lockFile,
  migratedMark,
  reasonAt,
  refusedPlace,
  singlePath,
  fileSize,
  UNREADABLE,
  unreadable,
} from "./libsql/inspect.ts";
import { checkMigrated, migrate } from "./libsql/migrate.ts";
import { createFactStore } from "./commands/facts.ts";
import { createPeopleStore } from "./commands/people.ts";
import { orClose, type DbConnection } from "./commands/command.ts";
import { createStore, type StoreSettings } from "./sql/store.ts";
import { readSize } from "./libsql/size.ts";
import { openThreaded } from "./libsql/threaded.ts";
import { Writer } from "./sql/writer.ts";

/**
 * Opens the store and migrates its tables to this version. Throws `DatabaseInUse`, `NewerDatabase` or `DatabaseUnreadable` (an
 * unreadable file is never written), and `StoreUnavailable` while it is unreachable, locked or full.
 */
export async function openStore(settings: StoreSettings): Promise<Store> {
  const path = filePath(settings.url);
  try {
    return await open(settings, path);
  } catch (error) {
    if (isTemporary(error)) throw unavailable(error);
    if (error instanceof Error && errorCode(error) === UNREADABLE) throw new DatabaseUnreadable(error.message);
    if (path !== null && /CORRUPT|NOTADB/.test(errorCode(error))) throw unreadable(path);
    throw error;
  }
}

async function open(settings: StoreSettings, path: string | null): Promise<Store> {
  const { now, onFatal, onAway = () => {} } = settings;
  if (isPostgresUrl(settings.url)) {
    // The clients of databases behind a URL are imported here, so that a service with a file starts without them.
    const { openPostgresStore } = await import("./postgres/store.ts");
    return openPostgresStore({ nodeId: crypto.randomUUID(), ...settings });
  }
  const connection = path === null ? await openShared(settings) : await openOwnFile(path, onFatal);
  await orClose(connection, () => migrate(connection, now));
  return createStore({
    ...settings,
    connection: tellingAway(connection, onAway),
    cluster: null,
    isOnlyProcess: path !== null,
  });
}

/** Whether the error may pass without the operator, who must fix a file that can't be opened or written. */
function isTemporary(error: unknown): boolean {
  const isOfFile = /CANTOPEN|READONLY|NOTADB|CORRUPT|unable to open|malformed/i.test(codeAndText(error));
  return faultKind(error) !== "rejected" && !isOfFile;
}

/** The path of a `file:` URL; null for other URLs. */
function filePath(url: string): string | null {
  return url.startsWith("file:") ? url.slice("file:".length).replace(/^\/\/(?=\/)/, "") : null;
}

/** Whether the database file has data, for which a new master key must never be created. An empty file has none. */
export function databaseExists(url: string): boolean {
  const path = filePath(url);
  return path !== null && existsSync(path) && (fileSize(path) > 0 || fileSize(`${realPath(path)}-wal`) > 0);
}

async function openShared({ url, authToken, onFatal, onWait, lockTimes }: StoreSettings): Promise<DbConnection> {
  const { LOCK_TIMES, openRemote, takeDatabase } = await import("./libsql/remote.ts");
  const connection = openRemote(url, authToken);
  const settings = {
    holder: { id: crypto.randomUUID(), name: `process ${process.pid} on ${hostname()}` },
    times: lockTimes ?? LOCK_TIMES,
    onWait: onWait ?? (() => {}),
    onLost: onFatal,
  };
  return orClose(connection, () => takeDatabase(connection, settings));
}

/** Locks and opens the file. Closing it releases the lock. */
async function openOwnFile(name: string, onDeath: (cause: unknown) => void): Promise<DbConnection> {
  mkdirSync(dirname(name), { recursive: true, mode: 0o700 });
  const { path, release } = lockFile(name);
  try {
    // Under the lock, since a migration makes it under the same one.
    refuseMigrated(name, path);
    const connection = await openThreaded(path, onDeath);
    for (const suffix of ["", "-wal", "-shm", ".lock"]) if (existsSync(path + suffix)) chmodSync(path + suffix, 0o600);
    const unwatch = watchFile(path, onDeath);
    const close = async () => {
      unwatch();
      await connection.close();
      release();
    };
    return { ...connection, close };
  } catch (error) {
    release();
    throw error;
  }
}

function refuseMigrated(name: string, path: string): void {
  const mark = migratedMark(path);
  if (!existsSync(mark)) return;
  throw new Error(
    `The database ${name} was migrated to PostgreSQL: a service on the file would send the same calls once more. Set DATABASE_URL to ` +
      `that database. If no service has run on it since, you may delete ${mark} and go on with the file.`,
  );
}

/** What an admin command may use of a database that a service may have open. */
export interface AdminStore {
  readonly accounts: AccountStore;
  readonly people: PeopleStore;
  readonly facts: Pick<FactStore, "read">;
  close(): Promise<void>;
}

/**
 * Opens a database for a few small writes, even while a service has it open. Each write is one short transaction, for which the service waits as
 * for any lock. Nothing is created or migrated. Throws an error for the operator if there is no database yet, or one of another version.
 */
export async function openAdminStore(url: string, authToken: string | null): Promise<AdminStore> {
  const connection = await openMigrated(url, authToken);
  // The caller gets the error of a write that was not durable, and nothing is written after it here.
  const writer = new Writer(connection, () => {});
  return {
    accounts: createAccountStore({ reader: connection, writer }),
    people: createPeopleStore({ reader: connection, writer }),
    facts: createFactStore({ reader: connection, writer }),
    async close() {
      await writer.drain();
      await connection.close();
    },
  };
}

/** Reads the size of a file, even while a service has it open. Changes nothing. Throws an error for the operator. */
export async function sizeOfFile(path: string, finishedUntil: Date): Promise<DatabaseSize> {
  const connection = openExisting(path, "read");
  try {
    await checkMigrated(connection);
    return await readSize(connection, finishedUntil);
  } finally {
    await connection.close();
  }
}

async function openMigrated(url: string, authToken: string | null): Promise<DbConnection> {
  if (isPostgresUrl(url)) return (await import("./postgres/store.ts")).openPostgresMigrated(url);
  const path = filePath(url);
  if (path !== null) refuseMigrated(path, path);
  const connection =
    path === null ? (await import("./libsql/remote.ts")).openRemote(url, authToken) : openExisting(path, "shared");
  await orClose(connection, () => checkMigrated(connection));
  return connection;
}

function openExisting(name: string, mode: "read" | "shared"): DbConnection {
  if (!databaseExists(`file:${name}`))
    throw new Error(`There is no database ${name}. Start the service once, or set DATABASE_URL.`);
  const path = singlePath(name);
  const refused = refusedPlace(path);
  if (refused !== null) {
    throw new Error(
      `The database ${path} can't be opened: ${refused.place} can't be written (${refused.code}). Run this as the user of ` +
        "the service, and let that user write it.",
    );
  }
  try {
    inspectFile(path);
    return openFile(path, mode);
  } catch (cause) {
    if (cause instanceof DatabaseUnreadable) throw cause;
    throw new Error(`The database ${path} can't be opened: ${reasonAt(path, cause)}.`, { cause });
  }
}
