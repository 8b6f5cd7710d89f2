import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { openFile } from "../../db/libsql/file.ts";
import { migrate, NewerDatabase } from "../../db/libsql/migrate.ts";
import * as schema from "../../db/libsql/schema.ts";
import type { Row, Sql } from "../../db/libsql/sql.ts";
import { ACTION_STATUSES } from "../../src/actions/action.ts";
import { aCreation, ACCOUNT, aQuery, later, NOON } from "../support/factory.ts";
import { openStoreAt, temporaryFolder } from "../support/store.ts";

describe("migrations", () => {
  test("make the tables of a new file, once", async () => {
    await using db = await openEmpty();
    await migrate(db.sql, NOON);
    const ran = await rows(db.sql, "SELECT name, ran_at FROM migrations");
    const added = [
      "0002-key-of-action",
      "0003-broken-rows",
      "0005-callback-hosts",
      "0006-pauses-and-audit",
      "0007-session-secrets",
      "0008-key-scope",
      "0009-rejections",
    ];
    const names = ["0001-start", ...added];
    expect(ran).toEqual(names.map((name) => ({ name, ran_at: NOON.getTime() })));
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

  test("bring a database of the first version here: what waits goes on, and what has ended is shown as it was", async () => {
    await using folder = await temporaryFolder();
    const path = join(folder.path, "outgate.db");
    const old = openFile(path);
    await runFirst(old);
    const statements = ACTION_STATUSES.flatMap((status, n) => [
      {
        sql: `INSERT INTO actions (id, account_id, revision, status, run, attempts, retries, url, hostname, host, method, body,
            on_unknown, approve, created_at, created_by, due_at, scheduled_at, lease_until)
          VALUES (?, 'acc_one', 3, ?, 1, 1, 3, 'https://a.example/', 'a.example', 'a.example', 'POST', '{"n":1}', 'retry',
            ?, 7, 'key:ci', ?, 7, ?)`,
        args: [
          `act_${n}`,
          status,
          Number(status === "awaiting_approval"),
          status === "pending" ? 9 : null,
          status === "active" ? 11 : null,
        ],
      },
      {
        sql: `INSERT INTO timeline (action_id, account_id, at, run, revision, type, status, detail)
          VALUES (?, 'acc_one', 7, 1, 1, 'created', 'pending', '{"actor":"key:ci"}')`,
        args: [`act_${n}`],
      },
    ]);
    const notifications = ["pending", "active", "delivered", "given_up", "dropped"].map((status, n) => ({
      sql: `INSERT INTO outbox (id, action_id, account_id, run, revision, kind, event, target, host, payload, status, attempts,
          due_at, scheduled_at, lease_until, created_at)
        VALUES (?, 'act_3', 'acc_one', 1, ?, 'callback', 'action.completed', 'https://h.example/', 'h.example', '{}', ?, 1,
          ?, 7, ?, 7)`,
      args: [`row_${n}`, n, status, status === "pending" ? 9 : null, status === "active" ? 11 : null],
    }));
    await old.batch([...statements, ...notifications]);
    const columns = "id, status, attempts, revision, body, created_by, due_at, lease_until";
    const before = await rows(old, `SELECT ${columns} FROM actions ORDER BY id`);
    await old.close();

    const store = await openStoreAt(path);
    const { actions, outbox } = store;
    const [lane] = await actions.lanes(null, 9);
    expect(lane).toEqual({ accountId: ACCOUNT, host: "a.example", keyId: "", dueAt: new Date(9) });
    const due = lane === undefined ? [] : await actions.pending(lane, 9);
    expect(await actions.claim(due, { now: NOON, leaseUntil: later(9) })).toMatchObject([{ id: "act_0", attempts: 2 }]);
    expect(await actions.orphans(new Date(20), 9, null)).toMatchObject([{ id: "act_1", keyId: "" }]);
    expect((await actions.list(aQuery())).actions).toHaveLength(ACTION_STATUSES.length);
    expect((await actions.held(ACCOUNT, null, 9)).actions).toMatchObject([{ id: "act_2" }]);
    const [callbacks] = await outbox.callbacks.lanes(null, 9);
    expect(callbacks).toEqual({ accountId: ACCOUNT, host: "h.example", keyId: "", dueAt: new Date(9) });
    expect(callbacks === undefined ? [] : await outbox.callbacks.pending(callbacks, 9)).toMatchObject([
      { id: "row_0" },
    ]);
    expect(await outbox.callbacks.orphans(null, 9, null)).toMatchObject([{ id: "row_1", keyId: "" }]);
    expect(await outbox.list(ACCOUNT, null, 9)).toHaveLength(5);
    await store.close();

    const look = openFile(path);
    const after = await rows(look, `SELECT ${columns} FROM actions WHERE id <> 'act_0' ORDER BY id`);
    expect([...after]).toEqual(before.filter(({ id }) => id !== "act_0"));
    expect(await rows(look, "SELECT count(*) AS n FROM timeline")).toEqual([{ n: ACTION_STATUSES.length + 1 }]);
    await look.close();
  });

  test("give what tells of itself the rules of its key, and the strictest where that is unknown", async () => {
    await using db = await openEmpty();
    await runUntil(db.sql, "0005-callback-hosts");
    const keys = ["owner none", "agent writes"].map((both) => {
      const [role, hold] = both.split(" ");
      return `('${both}', 'acc_one', 'k', '${role}', '${hold}', 'hash of ${both}', 'last', 7)`;
    });
    const COLUMNS = `id, account_id, revision, status, run, attempts, retries, url, hostname, host, method, on_unknown,
      created_at, created_by, scheduled_at, key_id, approve, callback`;
    const action = (id: string, key: string, approve: number, callback: string | null) =>
      `('${id}', 'acc_one', 1, 'cancelled', 1, 0, 3, 'https://a.example/', 'a.example', 'a.example', 'GET', 'retry',
        7, 'key:k', 7, '${key}', ${approve}, ${callback === null ? "NULL" : `'${callback}'`})`;
    const notifications = (n: number, account: string, target: string, host: string) =>
      `('row_${n}', 'act_1', '${account}', 1, ${n}, 'callback', 'action.completed', '${target}', '${host}', 'delivered', 1, 7, 7)`;
    await db.sql.batch(
      [
        `INSERT INTO api_keys (id, account_id, name, role, hold, hash, last4, created_at) VALUES ${keys.join()}`,
        `INSERT INTO actions (${COLUMNS}) VALUES ${[
          action("act_1", "owner none", 0, "https://h.example/"),
          action("act_2", "agent writes", 1, null),
          action("act_3", "", 1, null),
          action("act_4", "", 0, "https://h.example/"),
        ].join()}`,
        `INSERT INTO outbox (id, action_id, account_id, run, revision, kind, event, target, host, status, attempts,
          scheduled_at, created_at) VALUES ${[
            notifications(1, "acc_one", "https://h.example/a", "h.example"),
            notifications(2, "acc_one", "HTTPS://H.example/b", "h.example"),
            notifications(3, "acc_two", "http://h.example:81/", "h.example:81"),
          ].join()}`,
      ].map((sql) => ({ sql, args: [] })),
    );
    const beforeMs = Date.now();
    await migrate(db.sql, NOON);
    expect(await rows(db.sql, "SELECT id, key_role, key_hold FROM actions ORDER BY id")).toEqual([
      { id: "act_1", key_role: "owner", key_hold: "none" },
      { id: "act_2", key_role: "agent", key_hold: "writes" },
      { id: "act_3", key_role: "agent", key_hold: "all" },
      { id: "act_4", key_role: "agent", key_hold: "none" },
    ]);
    const overlaps = await rows(db.sql, "SELECT account_id, origin, until FROM callback_overlaps ORDER BY account_id");
    expect(overlaps.map(({ account_id: account, origin }) => [account, origin])).toEqual([
      ["acc_one", "https://h.example"],
      ["acc_two", "http://h.example:81"],
    ]);
    const MONTH_MS = 30 * 86_400_000;
    for (const { until } of overlaps) expect(Math.abs(Number(until) - beforeMs - MONTH_MS)).toBeLessThan(60_000);
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

/** What the first version made of an empty file. */
async function runFirst(sql: Sql): Promise<void> {
  let batches = 0;
  // The table of migrations, the first migration, and no more.
  const first: Sql = { ...sql, batch: async (given) => ((batches += 1) <= 2 ? sql.batch(given) : []) };
  await migrate(first, NOON);
}

/** Everything before a migration, as the version before it has left a database. */
async function runUntil(sql: Sql, name: string): Promise<void> {
  let isReached = false;
  const until: Sql = {
    ...sql,
    batch: async (given) => {
      isReached ||= given.at(-1)?.args[0] === name;
      return isReached ? [] : sql.batch(given);
    },
  };
  await migrate(until, NOON);
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
