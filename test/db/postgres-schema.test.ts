import { expect, test } from "bun:test";
import { is } from "drizzle-orm";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import * as schema from "../../db/postgres/schema.ts";
import { openAdminStore, openStore } from "../../db/open.ts";
import { NOON } from "../support/factory.ts";
import { hasPostgres } from "../support/postgres.ts";
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
