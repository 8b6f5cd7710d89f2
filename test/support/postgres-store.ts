import { Client } from "pg";
import { openPostgres } from "../../db/postgres/connection.ts";
import { createHintSender } from "../../db/postgres/cluster.ts";
import { migratePostgres } from "../../db/postgres/migrate.ts";
import { createPostgresStore } from "../../db/postgres/store.ts";
import type { Store } from "../../src/core/store.ts";
import { createDatabase, dropDatabase } from "./postgres.ts";
import { NOON } from "./factory.ts";
import { openKept } from "./kept.ts";
import { until } from "./until.ts";
import { openStoreOf, testSecrets } from "./store.ts";
import type { DbConnection } from "../../db/commands/command.ts";
import type { Statement } from "../../db/sql/dialect.ts";

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

/** The same with a connection that is nobody's but the test's; both go at its end. */
export async function openMigrated() {
  const url = await createMigrated();
  const client = new Client({ connectionString: url });
  await client.connect();
  const close = async () => {
    await client.end();
    await dropDatabase(url);
  };
  return { url, client, [Symbol.asyncDispose]: close };
}

const NODE = "node of the tests";

/** The store of the service, in a database that no other test uses meanwhile. */
export const openPostgresStore = openKept(async () => {
  const url = await createMigrated();
  const sql = openPostgres(url, { onCommit: createHintSender(NODE) });
  const look = lookOver(sql);
  return {
    sql,
    look,
    over: (kept) => settledStore(createPostgresStore({ ...sql, ...kept }, { nodeId: NODE, seal: testSecrets }), look),
    open: async () => settledStore(await openStoreOf(url), look),
    columns: `select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and column_name like ? order by 1`,
    tables: "select tablename as name from pg_tables where schemaname = 'public'",
    // What a table counts begins again without making anything new in the catalogue, as RESTART would.
    begin: "select setval(quote_ident(sequencename)::regclass, 1, false) from pg_sequences where schemaname = 'public'",
  };
});

/**
 * Reads the event stream and counts its rows when all of them are settled. An open transaction in any database of the server, such as that of
 * another test, holds rows back.
 */
function settledStore(store: Store, look: DbConnection): Store {
  const { actions, activity } = store;
  const isSettled = async () => {
    const sql = "select coalesce(max(seq) < settled_position(), true)::int as settled from timeline";
    return (await look.read({ sql, args: [] }))[0]?.["settled"] === 1;
  };
  const settle = () => until(isSettled);
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

/** A connection for tests that look at rows. Their statements have SQLite's placeholders. */
function lookOver(sql: DbConnection): DbConnection {
  const numbered = (text: string) => {
    let number = 0;
    return text.replaceAll("?", () => `$${(number += 1)}`);
  };
  return {
    ...sql,
    read: (statement) => sql.read({ ...statement, sql: numbered(statement.sql) }),
    transact: (calls) =>
      sql.transact(
        calls.map(({ command, args: [statements] }) => {
          // Safe: tests only run statements over it.
          const listed = statements as readonly Statement[];
          return { command, args: [listed.map((one) => ({ ...one, sql: numbered(one.sql) }))] };
        }),
      ),
  };
}
