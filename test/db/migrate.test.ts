import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { SQL } from "drizzle-orm";
import { getTableConfig, SQLiteAsyncDialect } from "drizzle-orm/sqlite-core";
import { openFile } from "../../db/libsql/file.ts";
import { migrate, NewerDatabase } from "../../db/libsql/migrate.ts";
import { tables as DESCRIBED } from "../../db/tables.ts";
import type { Row } from "../../db/sql/dialect.ts";
import { ACCOUNT, aCreation, answered, aQuery, later, NOON, settled } from "../support/factory.ts";
import { openStoreAt, temporaryFolder, testSecrets } from "../support/store.ts";
import { attemptedAction, claimDue, LEASE } from "./conformance/steps.ts";
import { contentsOf } from "./version-0.1/contents.ts";
import { type DbConnection, execute, runStatements } from "../../db/commands/command.ts";
import { words } from "../support/words.ts";

const ALL = words(`
  0000_start 0001_claiming-node 0002_week-one 0003_console 0004_version-0-2 0005_no-search-for-altered-rows 0006_rules
  0007_grants 0008_budgets 0009_credentials 0010_oauth 0011_credential_requests
`);

describe("migrations", () => {
  test("make the tables of a new file, once", async () => {
    await using db = await openEmpty();
    await migrate(db.sql, NOON);
    const ran = await rows(db.sql, "SELECT name, ran_at FROM migrations");
    expect(ran).toEqual(ALL.map((name) => ({ name, ran_at: NOON.getTime() })));
    await migrate(db.sql, later(5));
    expect(await rows(db.sql, "SELECT name, ran_at FROM migrations")).toEqual(ran);
  });

  test("that were cut off begin again: each is in one transaction with its mark", async () => {
    await using db = await openEmpty();
    let commits = 0;
    const cutOff: DbConnection = {
      ...db.sql,
      transact: (calls) => {
        commits += 1;
        // The last statement of the first migration fails, as if the disk were full by then.
        const broken = { command: execute, args: [[{ sql: "INSERT INTO nowhere VALUES (1)", args: [] }]] };
        return db.sql.transact(commits === 2 ? [...calls, broken] : calls);
      },
    };
    expect(await migrate(cutOff, NOON).then(Boolean, () => "failed")).toBe("failed");
    expect(await tableNames(db.sql)).toEqual(["migrations"]);
    await migrate(db.sql, NOON);
    expect(await tableNames(db.sql)).toContain("actions");
  });

  test("leave what is stored as it is", async () => {
    await using folder = await temporaryFolder();
    const { action, ...rest } = aCreation({ dedupe: "k", headers: { "X-A": "1" } });
    const first = await openStoreAt(folder.file);
    await first.actions.create({ action, ...rest });
    await first.close();
    const again = await openStoreAt(folder.file);
    expect(await again.actions.find(ACCOUNT, action.id)).toEqual(action);
    await again.close();
  });

  test("refuse a database of a newer version, and leave its file untouched", async () => {
    await using folder = await temporaryFolder();
    const newer = openFile(folder.file);
    await migrate(newer, NOON);
    await runStatements(newer, [{ sql: "INSERT INTO migrations (name, ran_at) VALUES ('0099_later', 0)", args: [] }]);
    await newer.close();
    const before = await Bun.file(folder.file).bytes();
    const refused = await openStoreAt(folder.file).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(NewerDatabase);
    expect(String(refused)).toContain("newer version of Outgate (0099_later). Start that version.");
    expect(Buffer.compare(before, await Bun.file(folder.file).bytes())).toBe(0);
  });
});

/** `dump.sql` is a database that version 0.1 wrote, and `contents.txt` what version 0.1 said about it, but for two rows that were altered by hand. */
describe("a database of version 0.1", () => {
  test("opens with all its contents, and goes on", async () => {
    await using folder = await temporaryFolder();
    const store = await openStoreAt(await loadDump(folder.path));
    expect(await contentsOf(store)).toEqual(JSON.parse(await Bun.file(`${VERSION_0_1}contents.txt`).text()));

    const { actions, accounts } = store;
    const headers = (await actions.list(aQuery({ limit: 99 }))).actions.map((action) => action.headers);
    expect(headers).toContainEqual({ Authorization: "Bearer of a target", "X-N": "1" });
    const root = { table: "accounts", row: ACCOUNT, column: "sealed_root_secret" };
    const sealedRoot = (await accounts.find(ACCOUNT))?.sealedRootSecret ?? "";
    expect(testSecrets.open(sealedRoot, root).toString()).toBe(`secret of ${ACCOUNT}`);

    expect((await attemptedAction(actions, answered(200))).status).toBe("completed");
    const waiting = (await actions.lanes(null, 9)).find(({ host }) => host === "api.example.com");
    if (waiting === undefined) throw new Error("Nothing waits.");
    const [active] = await claimDue(actions, waiting, { limit: 1, lease: { ...LEASE, now: waiting.dueAt } });
    expect(active !== undefined && (await actions.apply(settled(active, answered(200))))).toBe(true);
    await store.close();
  });

  test("gets the schema of a new one", async () => {
    await using folder = await temporaryFolder();
    await using db = await openEmpty();
    await migrate(db.sql, NOON);
    const path = await loadDump(folder.path);
    const old = openFile(path);
    expect(await schemaOf(old)).not.toEqual(await schemaOf(db.sql));
    await migrate(old, NOON);
    expect(await schemaOf(old)).toEqual(await schemaOf(db.sql));
    await old.close();
  });

  test("that was cut off in between is refused as it is", async () => {
    await using folder = await temporaryFolder();
    const path = await loadDump(folder.path);
    const old = openFile(path);
    await runStatements(old, [{ sql: "DELETE FROM migrations WHERE name = '0009-rejections'", args: [] }]);
    const before = await schemaOf(old);
    const refused = await migrate(old, NOON).catch(String);
    expect(refused).toBe(
      "OlderDatabase: The database was written before version 0.1 of Outgate was complete. Start commit ac0f7c2 of its repository on it once, then this version, or set DATABASE_URL to a new file.",
    );
    expect(await schemaOf(old)).toEqual(before);
    await old.close();
  });
});

/** Migrations that no release had yet were changed: such a database says that one ran which made less than it does now. */
test.each([
  ["ALTER TABLE accounts DROP COLUMN name", "accounts.name"],
  ["DROP TABLE activity", "activity.account_id"],
  ["DROP INDEX timeline_once", "timeline_once"],
  ["DELETE FROM migrations WHERE name > '0009'; DROP TABLE first_steps", "first_steps.account_id"],
])("a database of a checkout between two releases is refused with a way out, as it is: %s", async (undo, missing) => {
  await using folder = await temporaryFolder();
  await (await openStoreAt(folder.file)).close();
  const sql = openFile(folder.file);
  await runStatements(
    sql,
    undo.split("; ").map((text) => ({ sql: text, args: [] })),
  );
  const before = await schemaOf(sql);
  expect(await openStoreAt(folder.file).catch(String)).toStartWith(
    `OlderDatabase: The database was written by a checkout between two releases of Outgate: it has no ${missing}. Start the checkout that wrote it`,
  );
  expect(await schemaOf(sql)).toEqual(before);
  await sql.close();
});

test("a database of another program is refused, and its file stays as it is", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "notes.db");
  const other = new Database(path);
  other.run("CREATE TABLE notes (text TEXT)");
  other.close();
  const before = await Bun.file(path).bytes();
  expect(await openStoreAt(path).catch(String)).toBe(
    `DatabaseUnreadable: The database ${path} is another program's: it has the table "notes" and none of Outgate's. Nothing was written to it. Set DATABASE_URL to another file.`,
  );
  expect(Buffer.compare(before, await Bun.file(path).bytes())).toBe(0);
});

describe("the tables as tables.ts describes them", () => {
  const tables = Object.values(DESCRIBED);

  test("are all that the migrations make", async () => {
    await using db = await openEmpty();
    await migrate(db.sql, NOON);
    const names = tables.map((table) => getTableConfig(table).name);
    expect([...names, "migrations"].toSorted()).toEqual([...(await tableNames(db.sql))]);
  });

  test.each(tables.map((table) => ({ config: getTableConfig(table) })))(
    "$config.name has the columns, checks and indexes of the migrations",
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

      const made = (await schemaOf(db.sql)).filter((part) => part.startsWith(`${name}: `));
      const checks = config.checks.map(({ value }) => `check(${textOf(value)})`);
      expect(made.filter((part) => part.includes(": check("))).toEqual(
        checks.map((text) => `${name}: ${text}`).toSorted(),
      );
      const indexes = config.indexes.map(({ config: index }) => {
        const names = index.columns.map((column) => ("name" in column ? column.name : "")).join(", ");
        const condition = index.where === undefined ? "" : ` where ${textOf(index.where)}`;
        return `create ${index.unique ? "unique " : ""}index ${index.name} on ${name} (${names})${condition}`;
      });
      const uniques = config.columns.filter(({ isUnique }) => isUnique);
      const generated = uniques.map(
        ({ uniqueName, name: column }) => `create unique index ${uniqueName} on ${name} (${column})`,
      );
      expect(made.filter((part) => /: create (unique )?index/.test(part))).toEqual(
        [...indexes, ...generated].map((text) => `${name}: ${normal(text, name)}`).toSorted(),
      );

      function textOf(condition: SQL): string {
        return normal(new SQLiteAsyncDialect().sqlToQuery(condition).sql, name);
      }
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

const VERSION_0_1 = new URL("version-0.1/", import.meta.url).pathname;

async function loadDump(folder: string): Promise<string> {
  const path = join(folder, "outgate.db");
  const database = new Database(path);
  database.run("PRAGMA journal_mode = WAL");
  database.run(await Bun.file(`${VERSION_0_1}dump.sql`).text());
  database.close();
  return path;
}

/** Every column, key, check and index, each as `table: text` in one spelling, and in order. */
async function schemaOf(sql: DbConnection): Promise<readonly string[]> {
  const found = await rows(
    sql,
    "SELECT tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' AND name <> 'migrations'",
  );
  return found
    .flatMap(({ tbl_name: table, sql: text }) => {
      const [, body = null, end = ""] = /^CREATE TABLE\s+\S+\s*\((.*)\)([^)]*)$/s.exec(String(text)) ?? [];
      const parts = body === null ? [String(text)] : [...membersOf(body.replaceAll(/--.*$/gm, "")), `end ${end}`];
      return parts.map((part) => `${String(table)}: ${normal(part, String(table))}`);
    })
    .toSorted();
}

/** The columns and constraints between the outer commas. */
function membersOf(body: string): readonly string[] {
  let depth = 0;
  const members = [""];
  for (const char of body) {
    if (char === "(") depth += 1;
    if (char === ")") depth -= 1;
    if (char === "," && depth === 0) members.push("");
    else members.push((members.pop() ?? "") + char);
  }
  return members;
}

/** One spelling of names, keywords and blanks. */
function normal(text: string, table: string): string {
  return text
    .replaceAll(/[`"]/g, "")
    .replaceAll(`${table}.`, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/\s?([(),])\s?/g, "$1")
    .replaceAll(/'[^']*'|[^']+/g, (part) => (part.startsWith("'") ? part : part.toLowerCase()))
    .replace(/^ ?constraint \w+ /, "")
    .replace(/default ('[^']*') not null/, "not null default $1")
    .trim();
}

function rows(sql: DbConnection, text: string): Promise<readonly Row[]> {
  return sql.read({ sql: text, args: [] });
}

async function tableNames(sql: DbConnection): Promise<readonly string[]> {
  const found = await rows(
    sql,
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
  );
  return found.map(({ name }) => String(name));
}
