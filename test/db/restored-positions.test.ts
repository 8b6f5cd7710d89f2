import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { copyDatabase, movePositions } from "../../db/backup.ts";
import { openPostgres, type PostgresPool } from "../../db/postgres/connection.ts";
import { migratePostgres } from "../../db/postgres/migrate.ts";
import { runStatements } from "../../db/commands/command.ts";
import type { Store } from "../../src/core/store.ts";
import { ACCOUNT, aCreation, NOON } from "../support/factory.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";
import { openMigrated } from "../support/postgres-store.ts";
import { openStoreAt, openStoreOf, temporaryFolder } from "../support/store.ts";
import { until } from "../support/until.ts";

async function createSome(store: Store, count: number): Promise<number> {
  for (let n = 0; n < count; n += 1) await store.actions.create(aCreation());
  return store.actions.position();
}

test("a restored backup knows no position that the service gave out after it", async () => {
  await using folder = await temporaryFolder();
  const store = await openStoreAt(folder.file);
  const atBackup = await createSome(store, 3);
  const copy = join(folder.path, "copy.db");
  // As while the log is saved: the copy needs none.
  const saving = new Database(folder.file);
  saving.run("PRAGMA user_version = 1");
  saving.close();
  copyDatabase(folder.file, copy);
  movePositions(copy);
  const given = await createSome(store, 3);
  expect(given).toBeGreaterThan(atBackup);
  await store.close();

  const restored = await openStoreAt(copy);
  await createSome(restored, 2 * (given - atBackup));
  const { actions } = restored;
  expect([await actions.knowsPosition(atBackup), await actions.knowsPosition(given)]).toEqual([true, false]);
  // A client of before the backup gets what was created since, and nothing else.
  expect((await actions.changes(ACCOUNT, atBackup)).changes).toHaveLength(2 * (given - atBackup));
  await restored.close();

  // A backup of the restored database, and one of that before anything happened in it.
  for (const [from, to] of [
    [copy, "second.db"],
    [join(folder.path, "second.db"), "third.db"],
  ] as const) {
    copyDatabase(from, join(folder.path, to));
    movePositions(join(folder.path, to));
  }
  const third = await openStoreAt(join(folder.path, "third.db"));
  expect(await third.actions.knowsPosition(atBackup)).toBe(true);
  expect(await createSome(third, 1)).toBeGreaterThan(3 * 2 ** 40);
  await third.close();
});

test("a backup of a database without events moves its positions, too", async () => {
  await using folder = await temporaryFolder();
  await (await openStoreAt(folder.file)).close();
  const copy = join(folder.path, "copy.db");
  copyDatabase(folder.file, copy);
  movePositions(copy);
  const restored = await openStoreAt(copy);
  expect(await createSome(restored, 1)).toBeGreaterThan(2 ** 40);
  await restored.close();
});

async function insertEvent(sql: PostgresPool, actionId: string): Promise<number> {
  const text = `insert into timeline (action_id, account_id, at, run, revision, type, status, detail)
    values ($1, 'acc_one', 0, 1, 1, 'created', 'pending', '{}')`;
  await runStatements(sql, [{ sql: text, args: [actionId] }]);
  const [row] = await sql.read({ sql: "select max(seq) as seq from timeline", args: [] });
  return Number(row?.["seq"]);
}

test.skipIf(!hasPostgres)("a dump restored where transactions have lower numbers leaves positions out", async () => {
  const url = await createDatabase();
  const sql = openPostgres(url);
  try {
    await migratePostgres(sql, NOON);
    const atDump = await insertEvent(sql, "one");
    // As on another server with a thousand fewer transactions.
    await runStatements(sql, [{ sql: "update positions set base = base - 4096 * 1000", args: [] }]);
    await migratePostgres(sql, NOON);
    expect((await insertEvent(sql, "two")) - atDump).toBeGreaterThan(2 ** 40 - 1);
    // Further starts leave it as it is.
    await migratePostgres(sql, NOON);
    expect((await insertEvent(sql, "three")) - atDump).toBeLessThan(2 ** 40 + 4096 * 10_000);
  } finally {
    await sql.close();
    await dropDatabase(url);
  }
});

test.skipIf(!hasPostgres)("a migration takes what nodes write meanwhile for no restored dump", async () => {
  await using db = await openMigrated();
  const sql = openPostgres(db.url);
  await db.client.query("delete from migrations where name = '0013_room_in_indexes'");
  await db.client.query("begin; alter index actions_by_key set (fillfactor = 70)");
  const migrating = migratePostgres(sql, NOON);
  // It has begun to write.
  const waiting = "select 1 from pg_locks where not granted and relation = 'actions_by_key'::regclass";
  await until(async () => (await db.client.query(waiting)).rows.length > 0);
  const before = await insertEvent(sql, "one");
  await db.client.query("rollback");
  await migrating;
  expect((await insertEvent(sql, "two")) - before).toBeLessThan(2 ** 40);
  await sql.close();
});

test.skipIf(!hasPostgres)(
  "a server that lost transactions, as by a promotion, gives no position out again",
  async () => {
    await using db = await openMigrated();
    const nodes = [openPostgres(db.url), openPostgres(db.url)] as const;
    const before = await insertEvent(nodes[0], "one");
    // As if the log had begun another history since.
    await db.client.query("update positions set history = '00000000'");
    await Promise.all(nodes.map((sql, at) => insertEvent(sql, `two ${at}`)));
    const { rows } = await db.client.query<{ seq: string }>("select seq from timeline order by seq");
    const raised = rows.map(({ seq }) => Math.floor((Number(seq) - before) / 2 ** 40));
    expect(raised).toEqual([0, 1, 1]);
    await Promise.all(nodes.map((sql) => sql.close()));
  },
);

test.skipIf(!hasPostgres)(
  "a server that doesn't tell of its log, such as Aurora, has positions all the same",
  async () => {
    const url = await createDatabase();
    const sql = openPostgres(url);
    await sql.alone(async (run) => {
      await run("create schema like_aurora");
      await run(`create function like_aurora.pg_walfile_name(pg_lsn) returns text language plpgsql
      as 'begin raise ''wal_level must be set to logical''; end'`);
      await run(`alter database ${new URL(url).pathname.slice(1)} set search_path = like_aurora, pg_catalog`);
    });
    await migratePostgres(sql, NOON);
    const first = await insertEvent(sql, "one");
    expect((await insertEvent(sql, "two")) - first).toBeWithin(1, 2 ** 40);
    await sql.close();
    await dropDatabase(url);
  },
);

describe.skipIf(!hasPostgres)("nodes that run leave positions out on another server", () => {
  // As on another server with a thousand fewer transactions.
  const LOWER = "update positions set base = base - 4096 * 1000";

  test("to which the address moved", async () => {
    await using db = await openMigrated();
    const store = await openStoreOf(db.url);
    const before = await createdAt(store, db);
    await db.client.query(LOWER);
    await db.client.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await until(() =>
      store.probe().then(
        () => true,
        () => false,
      ),
    );
    expect((await createdAt(store, db)) - before).toBeGreaterThan(2 ** 40 - 1);
    await store.close();
  });

  test("to which a pooler leads their connections, in the first transaction", async () => {
    await using db = await openMigrated();
    await db.client.query(`create schema other; create table other.started (at timestamptz);
      insert into other.started values ('2026-01-01');
      create function other.pg_postmaster_start_time() returns timestamptz language sql as 'select at from other.started';
      alter database ${db.client.database} set search_path = other, pg_catalog, public`);
    const store = await openStoreOf(db.url);
    const before = await createdAt(store, db);
    await db.client.query(`${LOWER}; update other.started set at = '2026-01-02'`);
    expect((await createdAt(store, db)) - before).toBeGreaterThan(2 ** 40 - 1);
    await store.close();
  });

  async function createdAt({ actions }: Store, db: Awaited<ReturnType<typeof openMigrated>>): Promise<number> {
    await actions.create(aCreation());
    const { rows } = await db.client.query<{ seq: string }>("select max(seq) as seq from timeline");
    return Number(rows[0]?.seq);
  }
});
