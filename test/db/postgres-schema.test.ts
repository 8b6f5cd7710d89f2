import { expect, test } from "bun:test";
import { is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import * as schema from "../../db/postgres/schema.ts";
import { migratePostgres } from "../../db/postgres/migrate.ts";
import { openAdminStore, openStore } from "../../db/open.ts";
import { NOON } from "../support/factory.ts";
import { dropDatabase, hasPostgres } from "../support/postgres.ts";
import { openMigrated } from "../support/postgres-store.ts";
import { testSecrets } from "../support/store.ts";

test.skipIf(!hasPostgres)("the migrations make the tables, columns, indexes and checks of the schema", async () => {
  await using db = await openMigrated();
  const { rows } = await db.client.query<{ part: string }>(
    `select table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable as part
        from information_schema.columns where table_schema = 'public'
      union all select tablename || ': index ' || indexname from pg_indexes
        where schemaname = 'public' and indexname not like '%_pkey' and indexname not like '%_pk' and indexname not like '%_unique'
      union all select conrelid::regclass || ': check ' || conname from pg_constraint where contype = 'c' and conrelid <> 0`,
  );
  const parts = rows.map(({ part }) => part).filter((part) => !part.startsWith("migrations."));
  expect(parts.toSorted()).toEqual(described().toSorted());
});

test.skipIf(!hasPostgres)("tables of a newer version are refused, by a start and by commands", async () => {
  await using db = await openMigrated();
  await db.client.query("insert into migrations (name, ran_at) values ('9999_future', 0)");
  const settings = { url: db.url, authToken: null, seal: testSecrets, now: NOON, onFatal: () => {} };
  for (const open of [() => openStore(settings), () => openAdminStore(db.url, null)]) {
    expect(await open().then(() => null, String)).toBe(
      "NewerDatabase: The database was written by a newer version of Outgate (9999_future). Start that version.",
    );
  }
  await db.client.query("delete from migrations where name in ('9999_future', '0015_histories')");
  expect(await openAdminStore(db.url, null).then(() => null, String)).toBe(
    "OlderDatabase: The database is not of this version of Outgate yet. Start this version once.",
  );
});

test.skipIf(!hasPostgres)("tables are found though a schema comes before theirs that was made later", async () => {
  await using db = await openMigrated();
  await db.client.query(`create schema other; alter database ${db.client.database} set search_path = other, public`);
  const store = await openStore({ url: db.url, authToken: null, seal: testSecrets, now: NOON, onFatal: () => {} });
  await store.close();
  const { rows } = await db.client.query("select distinct schemaname from pg_tables where tablename = 'actions'");
  expect(rows).toEqual([{ schemaname: "public" }]);
});

test.skipIf(!hasPostgres)("a database with an encoding that can't hold every text is refused", async () => {
  await using db = await openMigrated();
  const name = `${db.client.database}_latin1`;
  await db.client.query(`create database ${name} encoding 'LATIN1' locale 'C' locale_provider libc template template0`);
  const url = Object.assign(new URL(db.url), { pathname: `/${name}` }).href;
  const settings = { url, authToken: null, seal: testSecrets, now: NOON, onFatal: () => {} };
  expect(await openStore(settings).then(() => null, String)).toStartWith(
    "Error: The PostgreSQL database has the encoding LATIN1, in which answers of targets can't be stored.",
  );
  await dropDatabase(url);
});

test("a server that lacks what the tables need is refused by its version", async () => {
  const server = { encoding: "UTF8", version: "12.22 (Debian)", number: 120_022 };
  const migrated = migratePostgres({ alone: (work) => work(async () => [server]) }, NOON);
  expect(await migrated.then(() => null, String)).toBe(
    "Error: The server has PostgreSQL 12.22 (Debian). Outgate needs PostgreSQL 15 or newer.",
  );
});

function described(): readonly string[] {
  const tables = [...Object.values<unknown>(schema.tables), ...Object.values<unknown>(schema)].flatMap((one) =>
    is(one, PgTable) ? [getTableConfig(one)] : [],
  );
  return tables.flatMap(({ name, columns, indexes, checks }) => [
    ...columns.map((column) => {
      const type = column.getSQLType().replace('text collate "C"', "text").replace("bigserial", "bigint");
      return `${name}.${column.name} ${type} ${column.notNull ? "NO" : "YES"}`;
    }),
    ...indexes.map(({ config }) => `${name}: index ${config.name ?? ""}`),
    ...checks.map((check) => `${name}: check ${check.name}`),
  ]);
}
