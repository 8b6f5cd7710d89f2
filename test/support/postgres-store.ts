import { SQL } from "bun";
import { openPostgres } from "../../db/postgres/connection.ts";
import { migratePostgres } from "../../db/postgres/migrate.ts";
import type { Sql } from "../../db/sql/sql.ts";
import type { Store } from "../../db/store.ts";
import { createDatabase } from "./postgres.ts";
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

/** Databases that no test uses now, with no rows. Creating one takes ten times as long as emptying it. */
const idle: string[] = [];

/** The store that the service opens for a `postgres:` URL, in a database that no other test uses meanwhile. */
export async function openPostgresStore(): Promise<TestStore> {
  const url = idle.pop() ?? (await createMigrated());
  const look = lookInto(url);
  const open = async () => settledStore(await openStoreOf(url), look);
  return testStore(await open(), {
    folder: {
      async [Symbol.asyncDispose]() {
        await empty(url);
        idle.push(url);
      },
    },
    look,
    open,
    columns: `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and column_name like ? order by 1`,
  });
}

/**
 * Reads the event stream and counts its rows when all of them are settled. An open transaction in any database of the server, such as that of
 * another test, holds rows back.
 */
function settledStore(store: Store, look: Sql): Store {
  const { actions, activity } = store;
  const isSettled = async () => {
    const sql = "select coalesce(max(seq) < settled_position(), true)::int as settled from timeline";
    return (await look.read({ sql, args: [] }))[0]?.["settled"] === 1;
  };
  const settle = async () => {
    while (!(await isSettled())) await Bun.sleep(2);
  };
  return {
    ...store,
    actions: {
      ...actions,
      async position() {
        await settle();
        return actions.position();
      },
      async changes(accountId, after) {
        await settle();
        return actions.changes(accountId, after);
      },
    },
    activity: {
      ...activity,
      async groups(after, filter) {
        await settle();
        return activity.groups(after, filter);
      },
    },
  };
}

/** Deletes all rows that the service writes, and begins its sequences again. */
async function empty(url: string): Promise<void> {
  await using connection = new SQL(url, { max: 1 });
  await connection.unsafe(`do $$ declare name text; begin
    for name in select tablename from pg_tables where schemaname = 'public' and tablename not in ('migrations', 'positions')
    loop execute format('delete from %I', name); end loop;
    for name in select sequencename from pg_sequences where schemaname = 'public'
    loop execute format('alter sequence %I restart', name); end loop; end $$`);
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
