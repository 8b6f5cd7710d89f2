import { openFile } from "../../db/libsql/file.ts";
import { migrate } from "../../db/libsql/migrate.ts";
import { openRemote } from "../../db/libsql/remote.ts";
import { openThreaded } from "../../db/libsql/threaded.ts";
import { NOON } from "./factory.ts";
import { openKept } from "./kept.ts";
import { failTest, openStoreAt, putEmptyDatabase, storeOver, temporaryFolder } from "./store.ts";
import type { DbConnection } from "../../db/commands/command.ts";

const SQLITE = {
  tables: "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
} as const;

/** The store on a file, for tests that don't look at the file itself. */
export const openKeptFile = openKept(async () => {
  const folder = await emptyFile();
  const sql = await openThreaded(folder.file, failTest);
  return { ...SQLITE, sql, look: openFile(folder.file), over: storeOver, open: () => openStoreAt(folder.file), folder };
});

/** The store behind `@libsql/client`, as for `libsql://`, on a file. */
export const openKeptClient = openKept(async () => {
  const folder = await emptyFile();
  const url = `file:${folder.file}`;
  const look = openRemote(url, null);
  // As the servers behind `libsql://` have it.
  await look.read({ sql: "PRAGMA journal_mode = WAL", args: [] });
  const over = (sql: DbConnection) => storeOver(sql, { isOnlyProcess: false });
  const open = async () => {
    const sql = openRemote(url, null);
    await migrate(sql, NOON);
    return over(sql);
  };
  return { ...SQLITE, sql: openRemote(url, null), look, over, open, folder };
});

async function emptyFile() {
  const folder = await temporaryFolder();
  await putEmptyDatabase(folder.file);
  return folder;
}
