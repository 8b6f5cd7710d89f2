import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import { openRemote, type LockTimes } from "../../db/libsql/remote.ts";
import { createStore, type StoreSettings } from "../../db/sql/store.ts";
import { openStore } from "../../db/open.ts";
import { systemIds } from "../../src/core/ids.ts";
import type { ActionStore, OutboxStore, Store } from "../../src/core/store.ts";
import { createSecrets } from "../../src/crypto/secrets.ts";
import { NOON } from "./factory.ts";
import { DATABASES } from "./folder.ts";
import { type DbConnection, runStatements } from "../../db/commands/command.ts";

/** Seals headers as the service does, under a key that is the same in every test and process. */
export const testSecrets = createSecrets(new Uint8Array(32).fill(7), (count) => systemIds.bytes(count));

export type TestStore = ReturnType<typeof testStore>;

/** How the conformance suite gets a store; each implementation brings its own. */
export type OpenTestStore = () => Promise<TestStore>;

/** A folder that is gone with everything in it at the end of the test; `file` is where a database would be. */
export async function temporaryFolder() {
  const path = await mkdtemp(join(DATABASES, "outgate-"));
  const remove = () => rm(path, { recursive: true, force: true });
  return { path, file: join(path, "outgate.db"), [Symbol.asyncDispose]: remove };
}

let migrated: Promise<Uint8Array> | null = null;

/** Puts a file with all tables and no rows to the path. Most tests begin with one, and migrating takes longer than they. */
export async function putEmptyDatabase(path: string): Promise<void> {
  migrated ??= emptyDatabase();
  await Bun.write(path, await migrated);
}

async function emptyDatabase(): Promise<Uint8Array> {
  await using folder = await temporaryFolder();
  await (await openStoreAt(folder.file)).close();
  // Awaited here: the folder is gone at the return.
  return await Bun.file(folder.file).bytes();
}

/** The store that the service opens for a `file:` URL. */
export async function openFileStore(): Promise<TestStore> {
  const folder = await temporaryFolder();
  await putEmptyDatabase(folder.file);
  const store = await openStoreAt(folder.file);
  return testStore(store, { folder, look: openFile(folder.file), open: () => openStoreAt(folder.file) });
}

/** Opens the file as the service does; whoever opens it closes it. */
export function openStoreAt(path: string): Promise<Store> {
  return openStore({ url: `file:${path}`, authToken: null, seal: testSecrets, now: NOON, onFatal: failTest });
}

/** Opens what the URL names as the service does, with other settings where they matter. */
export function openStoreOf(url: string, settings: Partial<StoreSettings> = {}): Promise<Store> {
  return openStore({ url, authToken: null, seal: testSecrets, now: NOON, onFatal: failTest, ...settings });
}

/** A lock that is renewed five times while it lasts, as the service's is. */
export function lockTimesOf(lastsMs: number): LockTimes {
  return { lastsMs, beatMs: lastsMs / 5 };
}

/** The store on a real server, which is emptied first: a server for each test would take longer than the tests. */
export async function openServerStore(url: string): Promise<TestStore> {
  const look = openRemote(url, null);
  const tables = await look.read({ sql: "SELECT name FROM sqlite_schema WHERE type = 'table'", args: [] });
  const names = tables.map(({ name }) => String(name)).filter((name) => !/^(sqlite_|libsql_)/.test(name));
  await runStatements(
    look,
    names.map((name) => ({ sql: `DROP TABLE ${name}`, args: [] })),
  );
  const folder = await temporaryFolder();
  const open = () => openStoreOf(url);
  return testStore(await open(), { folder, look, open });
}

/** A store that stands over any connection, for tests that listen to what goes over it. */
export function storeOver(sql: DbConnection, { isOnlyProcess = true } = {}): Store {
  return createStore({
    connection: sql,
    seal: testSecrets,
    cluster: null,
    isOnlyProcess,
    onFatal: failTest,
  });
}

export function failTest(cause: unknown): never {
  throw new Error("A commit could not be made durable.", { cause });
}

interface Place {
  /** What goes with the store. */
  readonly folder: AsyncDisposable;
  readonly look: DbConnection;
  readonly open: () => Promise<Store>;
  /** Lists columns by name; SQLite's if it is absent. */
  readonly columns?: string;
}

/** A store that can be opened again, in a place of its own, and a look at what its port does not show. */
export function testStore(first: Store, { folder, look, open, columns = SQLITE_COLUMNS }: Place) {
  let store = first;
  const copyRows = async (table: string, id: string, count: number, valueOf: (name: string) => string) => {
    const all = (await look.read({ sql: columns, args: ["%"] })).map(({ name }) => String(name));
    const names = all.flatMap((name) => (name.startsWith(`${table}.`) ? [name.slice(table.length + 1)] : []));
    const sql = `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})
      INSERT INTO ${table} (${names.join()}) SELECT ${names.map(valueOf).join()} FROM ${table}, numbers WHERE id = ?`;
    const [done] = await runStatements(look, [{ sql, args: [id] }]);
    if (done?.changes !== count) throw new Error(`${id} was copied ${done?.changes ?? 0} times.`);
  };
  return {
    get store(): Store {
      return store;
    },
    /** `store.actions`, which most tests are about. */
    get actions(): ActionStore {
      return store.actions;
    },
    get notifications(): OutboxStore {
      return store.outbox;
    },
    /** Closes the store and opens it again on what it has written: whatever was in memory only is gone. */
    async restart(): Promise<void> {
      await store.close();
      store = await open();
    },
    /** What an action owes, in the order in which it was written. */
    async outbox(actionId: string) {
      const text = "SELECT event, target, payload, run FROM outbox WHERE action_id = ? ORDER BY revision, kind";
      const rows = await look.read({ sql: text, args: [actionId] });
      return rows.map((row) => ({
        event: String(row["event"]),
        target: String(row["target"]),
        payload: row["payload"] === null ? null : String(row["payload"]),
        run: Number(row["run"]),
      }));
    },
    /** How many rows the timeline of all accounts has up to a position. */
    async rowsUpTo(position: number): Promise<number> {
      const [row] = await look.read({ sql: "SELECT count(*) AS n FROM timeline WHERE seq <= ?", args: [position] });
      return Number(row?.["n"]);
    },
    /** How many dedupe and idempotency keys are remembered. */
    keyCount: () => countIn(look, "action_keys"),
    /** How many rows a table has. */
    count: (table: string) => countIn(look, table),
    /** Adds rows like that of an action, with ids after its own that have its time: what a test only has to get past. */
    copy: (actionId: string, count: number) =>
      copyRows("actions", actionId, count, (name) => (name === "id" ? "substr(id, 1, 25) || (10000 + n)" : name)),
    /** Adds rows like the one of an id, other than it in these texts. */
    copyRow: (table: string, id: string, count: number, varied: readonly string[]) =>
      copyRows(table, id, count, (name) => (varied.includes(name) ? `${name} || (10000 + n)` : name)),
    /** Columns whose name is like this, as `table.column`, in order. */
    async columns(like: string): Promise<readonly string[]> {
      return (await look.read({ sql: columns, args: [like] })).map(({ name }) => String(name));
    },
    async [Symbol.asyncDispose]() {
      await store.close();
      await look.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

const SQLITE_COLUMNS = `SELECT t.name || '.' || c.name AS name FROM sqlite_schema t, pragma_table_info(t.name) c
  WHERE t.type = 'table' AND c.name LIKE ? ORDER BY 1`;

async function countIn(look: DbConnection, table: string): Promise<number> {
  const [row] = await look.read({ sql: `SELECT count(*) AS n FROM ${table}`, args: [] });
  return Number(row?.["n"]);
}
