import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { openFile } from "../../db/libsql/file.ts";
import { migrate, NewerDatabase } from "../../db/libsql/migrate.ts";
import * as schema from "../../db/libsql/schema.ts";
import type { Row, Sql } from "../../db/libsql/sql.ts";
import { aCreation, ACCOUNT, later, NOON } from "../support/factory.ts";
import { openStoreAt, temporaryFolder } from "../support/store.ts";

describe("migrations", () => {
  test("make the tables of a new file, once", async () => {
    await using db = await openEmpty();
    await migrate(db.sql, NOON);
    const ran = await rows(db.sql, "SELECT name, ran_at FROM migrations");
    expect(ran).toEqual([{ name: "0001-start", ran_at: NOON.getTime() }]);
    await migrate(db.sql, later(5));
    expect(await rows(db.sql, "SELECT name, ran_at FROM migrations")).toEqual(ran);
  });

  test("that were cut off begin again: each is in one transaction with its mark", async () => {
    await using db = await openEmpty();
    let batches = 0;
    const cutOff: Sql = {
      ...db.sql,
      batch: (statements) => {
        batches += 1;
        // The last statement of the first migration fails, as if the disk were full by then.
        const broken =
          batches === 2 ? [...statements, { sql: "INSERT INTO nowhere VALUES (1)", args: [] }] : statements;
        return db.sql.batch(broken);
      },
    };
    expect(await migrate(cutOff, NOON).then(Boolean, () => "failed")).toBe("failed");
    expect(await tableNames(db.sql)).toEqual(["migrations"]);
    await migrate(db.sql, NOON);
    expect(await tableNames(db.sql)).toContain("actions");
  });

  test("leave what is stored as it is", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "outgate.db");
    const { action, ...rest } = aCreation({ dedupe: "k", headers: { "X-A": "1" } });
    const first = await openStoreAt(path);
    await first.actions.create({ action, ...rest });
    await first.close();
    const again = await openStoreAt(path);
    expect(await again.actions.find(ACCOUNT, action.id)).toEqual(action);
    await again.close();
  });

  test("refuse a database of a newer version, and leave its file untouched", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "outgate.db");
    const newer = openFile(path);
    await migrate(newer, NOON);
    await newer.batch([{ sql: "INSERT INTO migrations (name, ran_at) VALUES ('0099-later', 0)", args: [] }]);
    await newer.close();
    const before = await Bun.file(path).bytes();
    const refused = await openStoreAt(path).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(NewerDatabase);
    expect(String(refused)).toContain("newer version of Outgate (0099-later). Start that version.");
    expect(Buffer.compare(before, await Bun.file(path).bytes())).toBe(0);
  });
});

describe("the schema that drizzle sees", () => {
  const tables = Object.values<SQLiteTable>(schema);

  test("has every table of the migrations", async () => {
    await using db = await openEmpty();
    await migrate(db.sql, NOON);
    const names = tables.map((table) => getTableConfig(table).name);
    expect([...names, "migrations"].toSorted()).toEqual([...(await tableNames(db.sql))]);
  });

  test.each(tables.map((table) => ({ config: getTableConfig(table) })))(
    "$config.name: the same columns and indexes",
    async ({ config }) => {
      const { name } = config;
      await using db = await openEmpty();
      await migrate(db.sql, NOON);

      const columns = await rows(
        db.sql,
        `SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info('${name}')`,
      );
      expect(columns.map(({ pk, ...column }) => ({ ...column, isKey: Number(pk) > 0 }))).toEqual(
        config.columns.map((column) => ({
          name: column.name,
          type: column.getSQLType().toUpperCase(),
          notnull: Number(column.notNull),
          dflt_value: column.default === undefined ? null : `'${String(column.default)}'`,
          isKey: column.primary || config.primaryKeys.some((key) => key.columns.includes(column)),
        })),
      );

      const indexes = await rows(
        db.sql,
        `SELECT name, "unique" AS isUnique, (SELECT group_concat(name) FROM pragma_index_info(i.name)) AS columns
         FROM pragma_index_list('${name}') i WHERE origin = 'c' ORDER BY name`,
      );
      const expected = config.indexes.map(({ config: index }) => ({
        name: index.name,
        isUnique: Number(index.unique),
        columns: index.columns.map((column) => ("name" in column ? column.name : "")).join(","),
      }));
      expect([...indexes]).toEqual(expected.toSorted((a, b) => (a.name < b.name ? -1 : 1)));
    },
  );
});

async function openEmpty() {
  const folder = await temporaryFolder();
  const sql = openFile(join(folder.path, "empty.db"));
  return {
    sql,
    async [Symbol.asyncDispose]() {
      await sql.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

function rows(sql: Sql, text: string): Promise<readonly Row[]> {
  return sql.read({ sql: text, args: [] });
}

async function tableNames(sql: Sql): Promise<readonly string[]> {
  const found = await rows(
    sql,
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
  );
  return found.map(({ name }) => String(name));
}
