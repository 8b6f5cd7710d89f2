import { openPostgres } from "../../db/postgres/connection.ts";
import { migratePostgres } from "../../db/postgres/migrate.ts";
import type { Sql } from "../../db/sql/sql.ts";
import { createDatabase, dropDatabase } from "./postgres.ts";
import { NOON } from "./factory.ts";
import { openStoreOf, type TestStore, testStore } from "./store.ts";

const TEMPLATE = {
  name: [
    await Bun.file(new URL("../../db/postgres/migrations/0000_functions.sql", import.meta.url)).text(),
    await Bun.file(new URL("../../db/postgres/migrations/0001_start.sql", import.meta.url)).text(),
  ].join("\n"),
  async prepare(url: string) {
    const sql = openPostgres(url);
    await migratePostgres(sql, NOON);
    await sql.close();
  },
};

/** A database with the tables of this version: its URL. */
export function createMigrated(): Promise<string> {
  return createDatabase(TEMPLATE);
}

/** The store that the service opens for a `postgres:` URL, in a database of its own. */
export async function openPostgresStore(): Promise<TestStore> {
  const url = await createMigrated();
  return testStore(await openStoreOf(url), {
    folder: { [Symbol.asyncDispose]: () => dropDatabase(url) },
    look: lookInto(url),
    open: () => openStoreOf(url),
    columns: `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and column_name like ? order by 1`,
  });
}

/** A connection for tests that look at rows. Their statements have SQLite's placeholders. */
export function lookInto(url: string): Sql {
  const sql = openPostgres(url);
  const numbered = (text: string) => {
    let number = 0;
    return text.replaceAll("?", () => `$${(number += 1)}`);
  };
  return {
    ...sql,
    read: (statement) => sql.read({ ...statement, sql: numbered(statement.sql) }),
    batch: (statements) => sql.batch(statements.map((one) => ({ ...one, sql: numbered(one.sql) }))),
  };
}
