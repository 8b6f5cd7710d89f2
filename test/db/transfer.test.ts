import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { getTableConfig } from "drizzle-orm/sqlite-core";
import { openFile } from "../../db/libsql/file.ts";
import { openPostgresStore } from "../../db/postgres/store.ts";
import { tables as DESCRIBED } from "../../db/tables.ts";
import {
  copyRows,
  type TransferReport,
  verifyRows,
  openTransferSource,
  TRANSFER_TABLES,
  type TransferSource,
  finishTransfer,
  openTransferTarget,
  startTransfer,
} from "../../db/transfer.ts";
import { TRANSFER_BYTES_MAX } from "../../src/core/limits.ts";
import { checkMasterKey } from "../../src/crypto/secrets.ts";
import { NOON } from "../support/factory.ts";
import { createDatabase, hasPostgres } from "../support/postgres.ts";
import { openStoreAt, storeOver, temporaryFolder, testSecrets } from "../support/store.ts";
import { contentsOf } from "./version-0.1/contents.ts";
import { type DbConnection, runStatements } from "../../db/commands/command.ts";

test("every table is copied, by the columns and the key that it has", () => {
  const tables = Object.values(DESCRIBED);
  const names = tables.map((table) => getTableConfig(table).name);
  expect(TRANSFER_TABLES.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
  for (const { key } of TRANSFER_TABLES) expect(key.length).toBeGreaterThan(0);
  expect(TRANSFER_TABLES.at(-1)?.name).toBe("facts");
});

/** A file of a stopped service with an account, so many facts, and what `change` does to it. */
async function aFile(facts: number, change: (database: Database) => void = () => {}) {
  const folder = await temporaryFolder();
  await (await openStoreAt(folder.file)).close();
  const database = new Database(folder.file);
  database.run(
    "INSERT INTO accounts (id, sealed_root_secret, created_at) VALUES ('acc_z', 'sealed', 1), ('acc_a', 's', 2)",
  );
  const add = database.prepare("INSERT INTO facts (name, value) VALUES (?, ?)");
  database.transaction(() => {
    for (let n = 0; n < facts; n += 1) add.run(`fact ${n}`, `${n}`);
  })();
  change(database);
  database.close();
  return { path: folder.file, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

/** A run that may end in between: after so many batches. */
async function run(source: TransferSource, sql: DbConnection, batches = Number.POSITIVE_INFINITY) {
  const start = await startTransfer(sql, source);
  const reports: TransferReport[] = [];
  const progress = await copyRows(source, sql, start.progress, (report) => {
    reports.push(report);
    if (reports.length > batches) throw new Error("killed");
  });
  return { kind: start.kind, progress, reports };
}

async function sumOf(sql: DbConnection, text: string): Promise<number> {
  const [row] = await sql.read({ sql: text, args: [] });
  return Number(row?.["n"]);
}

describe.skipIf(!hasPostgres)("a copy to PostgreSQL", () => {
  let target: DbConnection;
  let url: string;
  const open: DbConnection[] = [];
  const fresh = async () => {
    url = await createDatabase();
    target = await openTransferTarget(url, NOON);
    open.push(target);
    return target;
  };
  beforeAll(async () => {
    await fresh();
  });
  afterAll(async () => {
    for (const sql of open) await sql.close();
  });
  const opened = async (path: string) => {
    const source = await openTransferSource(path);
    return { source, [Symbol.asyncDispose]: async () => source.close() };
  };

  test("holds the same rows in the same order, however odd their texts are, and counts on behind them", async () => {
    const long = "x".repeat(TRANSFER_BYTES_MAX);
    const odd = ["", "a\u0000b", "\\u0000", "\\", "\u{1f600}", "'; DROP TABLE facts; --", "\u{e000}", "\uffff", long];
    await using file = await aFile(1_200, (database) => {
      for (const [n, text] of odd.entries()) database.run("INSERT INTO facts VALUES (?, ?)", [`odd ${n}`, text]);
      database.run(
        "INSERT INTO signing_seeds (seq, id, account_id, origin, sealed_seed, rotated_at) VALUES (41, 's', 'a', '', '', 1)",
      );
    });
    await using at = await opened(file.path);
    const sql = await fresh();
    const { kind, progress, reports } = await run(at.source, sql);
    expect(kind).toBe("new");
    const verified = await verifyRows(at.source, sql, () => {});
    expect(verified.find(({ name }) => name === "facts")?.rows).toBe(1_200 + odd.length);
    // Batches are bounded in rows, and end with a long row.
    expect(reports.filter(({ table }) => table === "facts").length).toBeGreaterThanOrEqual(3);
    await finishTransfer(sql, progress, NOON);
    const values = await sql.read({ sql: "SELECT value FROM facts WHERE name LIKE 'odd%' ORDER BY name", args: [] });
    expect(values.map(({ value }) => value)).toEqual(odd);
    // The first account is the one that was added first, and new numbers come behind those that were copied.
    expect((await sql.read({ sql: "SELECT id FROM accounts ORDER BY seq", args: [] })).map(({ id }) => id)).toEqual([
      "acc_z",
      "acc_a",
    ]);
    const insert =
      "INSERT INTO signing_seeds (id, account_id, origin, sealed_seed, rotated_at) VALUES ('t', '', '', '', 1)";
    await runStatements(sql, [{ sql: insert, args: [] }]);
    expect(await sumOf(sql, "SELECT max(seq) n FROM signing_seeds")).toBe(42);
    const again = await startTransfer(sql, at.source).catch(String);
    expect(again).toContain("was migrated to this PostgreSQL database before");
  });

  test("is complete only for the file as it was copied, and not for what happened on it since", async () => {
    await using file = await aFile(1);
    const sql = await fresh();
    {
      await using at = await opened(file.path);
      await finishTransfer(sql, (await run(at.source, sql)).progress, NOON);
    }
    const database = new Database(file.path);
    database.run("UPDATE facts SET value = 'changed' WHERE name = 'fact 0'");
    database.close();
    await using at = await opened(file.path);
    expect(await startTransfer(sql, at.source).catch(String)).toStartWith(
      "Error: This file has changed since it was migrated",
    );
  });

  test("of a database in every state is the same to the service", async () => {
    await using folder = await temporaryFolder();
    const old = new Database(folder.file);
    old.run(await Bun.file(new URL("version-0.1/dump.sql", import.meta.url)).text());
    old.close();
    await (await openStoreAt(folder.file)).close();
    const database = new Database(folder.file);
    // Rows with values of other types are in no PostgreSQL.
    for (const { name, columns } of TRANSFER_TABLES) {
      const wrong = columns.map(({ source, kind }) => `typeof(${source}) NOT IN ('${kind}', 'null')`).join(" OR ");
      database.run(`DELETE FROM ${name} WHERE ${wrong}`);
    }
    database.close();
    const file = await openStoreAt(folder.file);
    const expected = await contentsOf(file);
    await file.close();
    await using at = await opened(folder.file);
    const sql = await fresh();
    const { progress } = await run(at.source, sql);
    await verifyRows(at.source, sql, () => {});
    await finishTransfer(sql, progress, NOON);
    const store = await openPostgresStore({ url, seal: testSecrets, now: NOON, nodeId: "node_a" });
    expect(await contentsOf(store)).toEqual(expected);
    await store.close();
  });

  test("goes on where it stopped, after any batch", async () => {
    await using file = await aFile(4_600);
    await using at = await opened(file.path);
    const sql = await fresh();
    for (let kill = 0; kill < 4; kill += 1) {
      expect(await run(at.source, sql, 1).catch(String)).toContain("killed");
      // No service opens it.
      expect(await sumOf(sql, "SELECT count(*) n FROM facts WHERE name = 'transfer'")).toBe(1);
    }
    const { kind } = await run(at.source, sql);
    expect(kind).toBe("resumed");
    expect((await verifyRows(at.source, sql, () => {})).reduce((sum, { rows }) => sum + rows, 0)).toBe(4_602);
  });

  test("is refused when the file has changed since, with what to do", async () => {
    await using file = await aFile(1_100);
    const sql = await fresh();
    {
      await using at = await opened(file.path);
      // One batch of facts is there.
      expect(await run(at.source, sql, 1).catch(String)).toContain("killed");
      expect(await sumOf(sql, "SELECT count(*) n FROM facts")).toBeGreaterThan(400);
    }
    const database = new Database(file.path);
    database.run("UPDATE facts SET value = 'changed' WHERE name = 'fact 0'");
    database.run("DELETE FROM facts WHERE name = 'fact 1'");
    database.close();
    await using at = await opened(file.path);
    const refused = await run(at.source, sql).catch(String);
    expect(refused).toContain("The file has changed since an interrupted copy");
    expect(refused).toContain("Drop that database, create it again, and run this again");
    expect(await sumOf(sql, "SELECT count(*) n FROM facts WHERE value = 'changed'")).toBe(0);
  });

  test.each([
    [
      "changed",
      "UPDATE facts SET value = 'other' WHERE name = 'fact 77'",
      "fact 77 of facts differs in PostgreSQL from the file, in value",
    ],
    ["missing", "DELETE FROM facts WHERE name = 'fact 77'", "fact 77 of facts is missing in PostgreSQL"],
    [
      "added",
      "INSERT INTO facts VALUES ('fact 77 and more', '')",
      "fact 77 and more of facts is in PostgreSQL, but not in the file",
    ],
    ["added at the end", "INSERT INTO facts VALUES ('zz', '')", "zz of facts is in PostgreSQL, but not in the file"],
    [
      "added to an empty table",
      "INSERT INTO callback_hosts VALUES ('acc', 'host', 1)",
      "acc / host of callback_hosts is in",
    ],
  ])("is not taken for the file when a row is %s, in the next run neither", async (_, statement, message) => {
    await using file = await aFile(700);
    await using at = await opened(file.path);
    const sql = await fresh();
    await run(at.source, sql);
    await runStatements(sql, [{ sql: statement, args: [] }]);
    expect(await verifyRows(at.source, sql, () => {}).catch(String)).toContain(message);
    expect((await run(at.source, sql)).kind).toBe("resumed");
    expect(await verifyRows(at.source, sql, () => {}).catch(String)).toContain(message);
  });

  test("never goes over other contents, nor over the copy of another file", async () => {
    await using file = await aFile(600);
    await using other = await aFile(1, (database) =>
      database.run("UPDATE accounts SET id = 'acc_other' WHERE id = 'acc_z'"),
    );
    await using at = await opened(file.path);
    await using second = await opened(other.path);
    const sql = await fresh();
    await runStatements(sql, [{ sql: "INSERT INTO people VALUES ('p', 'e', 'e', 'h', 1)", args: [] }]);
    expect(await run(at.source, sql).catch(String)).toContain("is not empty");
    await runStatements(sql, [{ sql: "DELETE FROM people", args: [] }]);
    expect(await run(at.source, sql, 1).catch(String)).toContain("killed");
    expect(await run(second.source, sql).catch(String)).toContain("an unfinished copy of another database");
  });

  test("begins in no database that a node begins in at the same time, and the other way round", async () => {
    await using file = await aFile(1);
    const sql = await fresh();
    await using at = await opened(file.path);
    const add = (name: string) =>
      runStatements(sql, [{ sql: `INSERT INTO facts VALUES ('${name}', '') ON CONFLICT DO NOTHING`, args: [] }]);
    const transact: DbConnection["transact"] = async (calls) => {
      const done = await sql.transact(calls);
      await add("master-key");
      return done;
    };
    expect(await startTransfer({ ...sql, transact }, at.source).catch(String)).toContain("is not empty");
    expect(await sumOf(sql, "SELECT count(*) n FROM facts WHERE name = 'transfer'")).toBe(0);
    await runStatements(sql, [{ sql: "DELETE FROM facts", args: [] }]);
    const store = storeOver(sql, { isOnlyProcess: false });
    const write: typeof store.facts.write = async (values) => {
      await store.facts.write(values);
      await add("transfer");
    };
    const node = { ...store, facts: { ...store.facts, write } };
    expect(await checkMasterKey(node, Buffer.alloc(32), testSecrets).catch(String)).toContain("is not complete");
  });

  test("writes nothing when another process has gone on with it", async () => {
    await using file = await aFile(600);
    await using at = await opened(file.path);
    const sql = await fresh();
    const { progress } = await startTransfer(sql, at.source);
    await copyRows(at.source, sql, progress, () => {});
    expect(await copyRows(at.source, sql, progress, () => {}).catch(String)).toContain("Another process is migrating");
    await verifyRows(at.source, sql, () => {});
  });

  test("names a row that PostgreSQL can't hold, after everything before it", async () => {
    await using typed = await aFile(1, (database) =>
      database.run("UPDATE accounts SET created_at = 'x' WHERE id = 'acc_a'"),
    );
    await using at = await opened(typed.path);
    const said = await run(at.source, await fresh()).catch(String);
    expect(said).toContain("The row acc_a of accounts has a value of the wrong type in created_at");
    await using broken = await aFile(1, (database) => {
      database.run("PRAGMA ignore_check_constraints = ON");
      const pause =
        "INSERT INTO pauses (id, account_id, kind, subject, cancels, created_at, created_by) VALUES (?, 'a', ?, ?, 0, 1, '')";
      database.run(pause, ["p1", "account", ""]);
      database.run(pause, ["p2", "key", ""]);
      database.run(pause, ["p3", "key", "k"]);
    });
    await using second = await opened(broken.path);
    const sql = await fresh();
    expect(await run(second.source, sql).catch(String)).toContain(
      "The row p2 of pauses is refused by PostgreSQL (23514)",
    );
    expect(await sumOf(sql, "SELECT count(*) n FROM pauses")).toBe(1);
  });

  test("is refused while a service has the file open, and leaves every byte of the file as it is", async () => {
    await using file = await aFile(600);
    const store = await openStoreAt(file.path);
    expect(await openTransferSource(file.path).catch(String)).toContain("Another Outgate has the database");
    await store.close();
    const before = Bun.hash(await Bun.file(file.path).bytes());
    {
      await using at = await opened(file.path);
      await run(at.source, await fresh());
      expect(await openStoreAt(file.path).catch(String)).toContain("Another Outgate has the database");
    }
    expect(Bun.hash(await Bun.file(file.path).bytes())).toBe(before);
    const sql = openFile(file.path);
    await sql.close();
  });
});
