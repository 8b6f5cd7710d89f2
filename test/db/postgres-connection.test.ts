import { describe, expect, test } from "bun:test";
import { DatabaseError } from "pg";
import { command, runStatements } from "../../db/commands/command.ts";
import {
  again,
  openPostgres,
  type Send,
  faultIn,
  isBeyondConnections,
  isConnectionSound,
} from "../../db/postgres/connection.ts";
import { createNodeStore } from "../../db/postgres/cluster.ts";
import { errorReason } from "../../db/sql/errors.ts";
import { TRANSACTION_MS_MAX } from "../../src/core/limits.ts";
import { ACTION_STATUSES } from "../../src/core/action.ts";
import { NO_SEARCH } from "../../src/core/search.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { approve, cancel } from "../../src/core/changes.ts";
import { ACCOUNT, NOON, aCreation, aDecision, aQuery, writeOf } from "../support/factory.ts";
import { hasPostgres } from "../support/postgres.ts";
import { migratePostgres } from "../../db/postgres/migrate.ts";
import { START_LOCK } from "../../db/postgres/queries.ts";
import { openMigrated } from "../support/postgres-store.ts";
import { hasPooler, Pooler } from "../support/postgres/pooler.ts";
import { TcpProxy } from "../support/cluster/tcp-proxy.ts";
import { storeOver } from "../support/store.ts";
import { eventually } from "../support/eventually.ts";
import { besideTimer } from "../support/lateness.ts";
import { until } from "../support/until.ts";
import { claimed, createdAction, stored } from "./conformance/steps.ts";
import { facts } from "../../db/tables.ts";

const CALL_MS = 500;

const SELECT = { sql: "select name from facts limit 1", args: [] };

/** A store with short deadlines over a proxy, and a connection beside it. */
async function openOver() {
  const database = await openMigrated();
  const proxy = await between(database.url);
  const sql = openPostgres(proxy.url, { callMsMax: CALL_MS, transactionMsMax: CALL_MS - 100 });
  const store = storeOver(sql, { isOnlyProcess: false });
  return {
    url: database.url,
    store,
    proxy,
    raw: database.client,
    async [Symbol.asyncDispose]() {
      proxy.mode = "pass";
      await store.close();
      await proxy[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

test.each(["EPIPE", "ECONNRESET", "EBUSY"])("%s is no answer of the server: the connection is lost", (code) => {
  const error = Object.assign(new Error("write failed"), { code });
  expect(isConnectionSound(error)).toBe(false);
  expect(faultIn(error)).toMatchObject({ kind: "unavailable" });
});

test("a pooler that has no more connections is known by its words, since it has one code for everything", () => {
  const refused = new DatabaseError("no more connections allowed (max_client_conn)", 40, "error");
  expect(isBeyondConnections(Object.assign(refused, { code: "08P01" }))).toBe(true);
});

test("a prepared statement whose tables have changed is known in any language, and given up if a pooler keeps it", async () => {
  const changed = new DatabaseError("gecachter Plan darf den Ergebnistyp nicht ändern", 40, "error");
  Object.assign(changed, { code: "0A000", routine: "RevalidateCachedQuery" });
  const preparing = { isOn: true };
  const run = () => (preparing.isOn ? Promise.reject(changed) : Promise.resolve("unprepared"));
  expect(await again(preparing, run, () => false)).toBe("unprepared");
});

test.each([
  ["42501", "permission denied"],
  ["42P01", "its tables are missing"],
])("what the operator took away (%s) comes back: the database is away until then", (code, reason) => {
  const denied = Object.assign(new DatabaseError("of a table or function", 40, "error"), { code });
  expect(faultIn(denied)).toMatchObject({ kind: "unavailable" });
  expect(isConnectionSound(denied)).toBe(true);
  expect(errorReason(faultIn(denied))).toBe(reason);
  // The log has names of errors alone.
  expect(faultIn(denied).name).toBe(`DatabaseFault ${code}`);
});

describe.skipIf(!hasPostgres)("a connection to PostgreSQL", () => {
  test("that is cut tells nodes that it is away, whatever they write", async () => {
    await using db = await openOver();
    const sql = openPostgres(db.proxy.url, { callMsMax: CALL_MS });
    const node = createNodeStore(sql);
    expect(await node.takeJob("start", "nod_a", 1_000)).toBe(true);
    db.proxy.mode = "hold";
    const calls = [
      node.takeJob("start", "nod_a", 1_000),
      node.releaseJob("start", "nod_a"),
      node.beat({ id: "nod_a", version: "1", startedAt: new Date(0) }, 1_000),
      node.leave("nod_a"),
    ].map(failureOf);
    await Bun.sleep(50);
    db.proxy.cut();
    expect(await Promise.all(calls)).toEqual(calls.map(() => expect.any(StoreUnavailable)));
    await sql.close();
  });

  test("that was cut refuses what was under way, and the next call connects again", async () => {
    await using db = await openOver();
    const action = await createdAction(db.store.actions);
    db.proxy.mode = "hold";
    const calls = [db.store.actions.create(aCreation()), db.store.actions.create(aCreation())].map(failureOf);
    await Bun.sleep(50);
    db.proxy.cut();
    db.proxy.mode = "pass";
    expect(await Promise.all(calls)).toEqual([expect.any(StoreUnavailable), expect.any(StoreUnavailable)]);
    expect(db.store.isUnavailable).toBe(true);
    expect(await stored(db.store.actions, action)).toEqual(action);
    await db.store.probe();
    expect(db.store.isUnavailable).toBe(false);
  });

  test("that went away between two calls is not noticed by either", async () => {
    await using db = await openOver();
    const action = await createdAction(db.store.actions);
    await stored(db.store.actions, action);
    await db.raw.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()",
    );
    await Bun.sleep(50);
    expect(await stored(db.store.actions, action)).toEqual(action);
    await createdAction(db.store.actions);
  });

  test("that is silent while tables are migrated is given up, and so is a lock that another node holds for long", async () => {
    await using db = await openOver();
    const sql = openPostgres(db.proxy.url, { callMsMax: CALL_MS });
    const migrating = () => failureOf(migratePostgres(sql, NOON, CALL_MS / 2));
    await db.raw.query(`begin; select pg_advisory_xact_lock(${START_LOCK})`);
    expect(errorReason(await migrating())).toStartWith("another node is changing the tables");
    await db.raw.query("rollback");
    expect(await migrating()).toBeNull();
    // Bounds of the role for statements, and since PostgreSQL 17 for transactions, end no migration.
    const bounds = "select name from pg_settings where name in ('statement_timeout', 'transaction_timeout')";
    for (const { name } of (await db.raw.query<{ name: string }>(bounds)).rows) {
      await db.raw.query(`alter database ${db.raw.database} set ${name} = 100`);
    }
    await db.raw.query(`begin; select pg_advisory_xact_lock(${START_LOCK})`);
    const waiting = failureOf(migratePostgres(sql, NOON));
    await db.raw.query("select pg_sleep(0.3); rollback");
    expect(await waiting).toBeNull();
    const silenced = sql.alone(async (run) => {
      await run("begin");
      db.proxy.mode = "deaf";
      await run("select 1");
    });
    expect(errorReason(await failureOf(silenced))).toBe("it could not be reached");
    expect(errorReason(await migrating())).toBe("no answer came in time");
    await sql.close();
  });

  test("that migrates waits less long for a table than what is written meanwhile waits for it", async () => {
    await using db = await openMigrated();
    // A little less than by default, since it begins later than the migration.
    const sql = openPostgres(db.url, { transactionMsMax: TRANSACTION_MS_MAX - 800 });
    const store = storeOver(sql, { isOnlyProcess: false });
    await db.client.query("delete from migrations where name = '0015_histories'");
    // As a backup does for hours.
    await db.client.query("begin; select base from positions");
    const migrating = failureOf(migratePostgres(sql, NOON));
    const waiting = "select 1 from pg_locks where not granted and relation = 'positions'::regclass";
    await until(async () => (await db.client.query(waiting)).rows.length > 0);
    await createdAction(store.actions);
    expect(errorReason(await migrating)).toEndWith("or a backup or another program holds them");
    await db.client.query("rollback");
    await store.close();
  });

  test("that is silent is given up in time, and its late transaction too", async () => {
    await using db = await openOver();
    const action = await createdAction(db.store.actions);
    db.proxy.mode = "hold";
    const { result: failures, lateMs } = await besideTimer(CALL_MS, () =>
      Promise.all([db.store.actions.create(aCreation()), db.store.actions.find(ACCOUNT, action.id)].map(failureOf)),
    );
    expect(lateMs).toBeLessThan(3 * CALL_MS);
    expect(failures).toEqual([expect.any(StoreUnavailable), expect.any(StoreUnavailable)]);
    db.proxy.mode = "pass";
    expect(await stored(db.store.actions, action)).toEqual(action);
  });

  test("that is silent just after it was opened is given up, and the next call opens another", async () => {
    await using db = await openOver();
    db.proxy.mode = "deaf to commits";
    const sql = openPostgres(db.proxy.url, { callMsMax: CALL_MS, onWriterOpen: "commit" });
    const write = () => failureOf(runStatements(sql, [SELECT]));
    expect(errorReason(await write())).toBe("no answer came in time");
    db.proxy.mode = "pass";
    await until(async () => (await write()) === null);
    await sql.close();
    const slow = openPostgres(db.url, { transactionMsMax: CALL_MS, onWriterOpen: "select pg_sleep(60)" });
    expect(errorReason(await failureOf(runStatements(slow, [SELECT])))).toBe("no answer came in time");
    const running = "select 1 from pg_stat_activity where state = 'active' and query like '%pg_sleep(60)'";
    await until(async () => (await db.raw.query(running)).rows.length === 0);
    await slow.close();
  });

  test("whose answer to a commit was lost: the change is known to be written, and is not written twice", async () => {
    await using db = await openOver();
    const held = await createdAction(db.store.actions, { approve: true });
    const write = writeOf(approve(held, aDecision()));
    expect(await db.store.actions.isApplied(write)).toBe(false);
    db.proxy.mode = "deaf to commits";
    expect(await failureOf(db.store.actions.apply(write))).toBeInstanceOf(StoreUnavailable);
    db.proxy.mode = "pass";
    expect(await db.store.actions.isApplied(write)).toBe(true);
    expect(await db.store.actions.apply(write)).toBe(false);
    expect(await db.store.actions.timeline(ACCOUNT, held.id)).toHaveLength(3);
  });

  test("whose wait for a standby was canceled: the commit is not told as made", async () => {
    await using db = await openMigrated();
    const { rows } = await db.client.query("show synchronous_standby_names");
    // A server of somebody's own.
    if (rows[0]?.["synchronous_standby_names"] === "") return;
    await db.client.query(`alter database ${db.client.database} set synchronous_commit = on`);
    const store = storeOver(openPostgres(db.url), { isOnlyProcess: false });
    const failure = failureOf(store.actions.create(aCreation()));
    const endWait =
      "select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep' and datname = current_database()";
    await until(async () => (await db.client.query(endWait)).rows.length > 0);
    expect(String(await failure)).toContain("standby");
    await store.close();
  });

  test("that is lost in a transaction writes nothing of it over the next one", async () => {
    await using db = await openOver();
    const sql = openPostgres(db.url);
    const cutOff = command(async (tx) => {
      await tx.run(SELECT);
      await db.raw.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction' and datname = current_database()",
      );
      await until(async () => {
        const { rows } = await db.raw.query("select 1 from pg_stat_activity where state = 'idle in transaction'");
        return rows.length === 0;
      });
      // The client hears of its end.
      for (let turns = 0; turns < 50; turns += 1) await new Promise((resolve) => setImmediate(resolve));
      await tx.db.insert(facts).values({ name: "late", value: "" });
    });
    const end = await sql.transact([{ command: cutOff, args: [] }]).catch((error: unknown) => error);
    expect(end).toBeInstanceOf(Error);
    expect((await db.raw.query("select name from facts where name = 'late'")).rows).toEqual([]);
    await sql.close();
  });

  test("runs one transaction at a time: what is written beside a command commits nothing of it", async () => {
    await using db = await openOver();
    const sql = openPostgres(db.url);
    const [began, goes] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const fails = command(async ({ db: tx }) => {
      await tx.insert(facts).values({ name: "half", value: "" });
      began.resolve();
      await goes.promise;
      throw new Error("No.");
    });
    const failed = sql.transact([{ command: fails, args: [] }]).catch(() => "failed");
    await began.promise;
    const beside = runStatements(sql, [{ sql: "insert into facts (name, value) values ('beside', '')", args: [] }]);
    await Bun.sleep(50);
    goes.resolve();
    expect(await failed).toBe("failed");
    await beside;
    const { rows } = await db.raw.query("select name from facts where name in ('half', 'beside')");
    expect(rows).toEqual([{ name: "beside" }]);
    await sql.close();
  });

  test("sends what follows a commit beside the next transaction, and not in it", async () => {
    await using db = await openMigrated();
    const first = Promise.withResolvers<Send>();
    const sql = openPostgres(db.url, { onCommit: first.resolve });
    await storeOver(sql, { isOnlyProcess: false }).actions.create(aCreation());
    const send = await first.promise;
    const fails = command(async (tx) => {
      await tx.db.insert(facts).values({ name: "half", value: "" });
      send("insert into facts (name, value) values ($1, '')", ["hint"]);
      await tx.run(SELECT);
      throw new Error("No.");
    });
    await sql.transact([{ command: fails, args: [] }]).catch(() => {});
    const names = async () => (await db.client.query("select name from facts where name in ('half', 'hint')")).rows;
    expect(await eventually(async () => ((await names()).length > 0 ? names() : null), "the hint")).toEqual([
      { name: "hint" },
    ]);
    await sql.close();
  });

  test("that was dropped is told late: its end takes no other along", async () => {
    await using db = await openOver();
    const sql = openPostgres(db.url);
    await db.raw.query("insert into facts (name, value) values ('taken', '')");
    const fails = command(async ({ db: tx }) => {
      await tx.insert(facts).values({ name: "taken", value: "" });
    });
    const pidOf = command(async (tx) => {
      const pids: unknown[] = [];
      for (let n = 0; n < 20; n += 1) {
        const [row] = await tx.read({ sql: "select pg_backend_pid() as pid", args: [] });
        pids.push(row?.["pid"]);
      }
      return new Set(pids).size;
    });
    for (let n = 0; n < 20; n += 1) {
      await sql.transact([{ command: fails, args: [] }]).catch(() => {});
      expect(await sql.transact([{ command: pidOf, args: [] }])).toEqual([1]);
    }
    await sql.close();
  });

  test("holds no lock for longer than a transaction may take, though its process stands still", async () => {
    await using db = await openOver();
    const action = await createdAction(db.store.actions);
    await db.raw.query("begin; update actions set revision = revision");
    const timed = await besideTimer(CALL_MS, () => failureOf(db.store.actions.apply(writeOf(cancelOf(action)))));
    expect(timed.result).toBeInstanceOf(StoreUnavailable);
    expect(timed.lateMs).toBeLessThan(3 * CALL_MS);
    await db.raw.query("rollback");
    expect(await db.store.actions.apply(writeOf(cancelOf(action)))).toBe(true);
  });

  test("writes by an index before the server has counted the rows of a table", async () => {
    await using db = await openMigrated();
    const sql = openPostgres(db.url);
    const [plan] = await runStatements(sql, [
      {
        sql: `explain update actions old set status = row.status
          from unnest('{act_one,act_two}'::text[], '{failed,failed}'::text[]) as row(id, status) where old.id = row.id`,
        args: [],
      },
    ]);
    const steps = (plan?.rows ?? []).map((row) => String(row["QUERY PLAN"])).join("\n");
    expect(steps).toContain("Index Scan using actions_pkey on actions");
    await sql.close();
  });

  test("stores nulls of lists, and on the server's disk, whatever the role sets", async () => {
    await using db = await openMigrated();
    const settings = ["array_nulls = off", "synchronous_commit = off"];
    for (const setting of settings) await db.client.query(`alter database ${db.client.database} set ${setting}`);
    const sql = openPostgres(db.url);
    const store = storeOver(sql, { isOnlyProcess: false });
    expect(await createdAction(store.actions)).toMatchObject({ dedupe: null, finishedAt: null });
    const shown = { sql: "select current_setting('synchronous_commit') as waits", args: [] };
    expect((await runStatements(sql, [shown]))[0]?.rows).toEqual([{ waits: "local" }]);
    await db.client.query(`alter database ${db.client.database} set synchronous_commit = remote_apply`);
    const waiting = openPostgres(db.url);
    expect((await runStatements(waiting, [shown]))[0]?.rows).toEqual([{ waits: "remote_apply" }]);
    await waiting.close();
    await store.close();
  });

  test("reads and writes over as few connections as the server has left", async () => {
    await using db = await openMigrated();
    await db.client
      .query(`drop role if exists outgate_few; create role outgate_few login password 'few' connection limit 2;
      grant all on all tables in schema public to outgate_few`);
    const sql = openPostgres(Object.assign(new URL(db.url), { username: "outgate_few", password: "few" }).href);
    const open = "select 1 from pg_stat_activity where usename = 'outgate_few'";
    await until(async () => {
      await Promise.all(Array.from({ length: 8 }, () => sql.read(SELECT)));
      return (await db.client.query(open)).rows.length === 2;
    });
    const write = () => runStatements(sql, [{ sql: "insert into facts (name, value) values ('a', 'b')", args: [] }]);
    expect(errorReason(await failureOf(write()))).toBe("too many connections");
    // The server may still count the connection that was given back.
    await until(async () => (await failureOf(write())) === null);
    expect(await sql.read(SELECT)).toHaveLength(1);
    await sql.close();
    await db.client.query("drop owned by outgate_few; drop role outgate_few");
  });

  test("prepares a bounded number of lists, whatever filters callers combine", async () => {
    await using db = await openMigrated();
    const sql = openPostgres(db.url);
    const store = storeOver(sql, { isOnlyProcess: false });
    const statuses = ACTION_STATUSES.filter((status) => status !== "completed");
    for (let chosen = 0; chosen < 2 ** (statuses.length + 3); chosen += 1) {
      const [own, method, createdBy, title] = [chosen >> 3, chosen & 1, chosen & 2, chosen & 4];
      const query = aQuery({
        statuses: statuses.filter((_, bit) => (own & (2 ** bit)) > 0),
        method: method > 0 ? "GET" : null,
        createdBy: createdBy > 0 ? "key_1" : null,
        search: { ...NO_SEARCH, title: title > 0 ? "refund" : null },
      });
      await store.actions.list(query);
    }
    const prepared = "select count(*) as prepared from pg_prepared_statements where statement like 'with \"s\"%'";
    const [row] = await sql.read({ sql: prepared, args: [] });
    expect(Number(row?.["prepared"])).toBeWithin(50, 101);
    await store.close();
  });

  test("keeps texts with U+0000, and finds them", async () => {
    await using db = await openOver();
    const texts = ["a\0b", "\0", "\u001a", "\u001a0", "\u001a1\0", "\0\u001a\0\u001a1"];
    for (const dedupe of texts) {
      const action = await createdAction(db.store.actions, { dedupe, idempotencyKey: dedupe, notifyEmail: dedupe });
      expect(action).toMatchObject({ dedupe, idempotencyKey: dedupe, notifyEmail: dedupe });
      const { actions } = await db.store.actions.list(aQuery({ dedupe }));
      expect(actions.map(({ id }) => id)).toEqual([action.id]);
      expect(await db.store.actions.create(aCreation({ dedupe }))).toMatchObject({ kind: "matched" });
    }
  });

  test.skipIf(!hasPooler)("works through a pooler that lends a connection for each transaction", async () => {
    await using db = await openMigrated();
    await using pooler = await Pooler.start(db.url);
    const stores = Array.from({ length: 3 }, () => storeOver(openPostgres(pooler.url), { isOnlyProcess: false }));
    // Different statements of different clients on the same few connections.
    for (let round = 0; round < 15; round += 1) {
      const created = await Promise.all(stores.flatMap((store) => [0, 1, 2].map(() => createdAction(store.actions))));
      const first = await Promise.all(stores.map((store) => store.actions.list(aQuery({ limit: 5 }))));
      expect(first.flatMap(({ actions }) => actions)).toHaveLength(15);
      const [action] = created;
      const [, second] = stores;
      if (action !== undefined && second !== undefined && round === 0) await claimed(second.actions, action);
    }
    await Promise.all(stores.map((store) => store.close()));
  });
});

function cancelOf(action: Parameters<typeof cancel>[0]) {
  return cancel(action, aDecision());
}

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

type Mode = "pass" | "hold" | "deaf" | "deaf to commits";

/** Stands between the store and its server: it passes everything on, or nothing, or no answers. */
async function between(databaseUrl: string) {
  const url = new URL(databaseUrl);
  const tcp = await TcpProxy.start(Number(url.port), { host: url.hostname });
  url.hostname = "127.0.0.1";
  url.port = String(tcp.port);
  const proxy = {
    url: url.href,
    // Safe: one of them.
    mode: "pass" as Mode,
    cut: () => tcp.cut(),
    [Symbol.asyncDispose]: () => tcp[Symbol.asyncDispose](),
  };
  tcp.passes = (bytes, from) => {
    const { mode } = proxy;
    if (from === "server") return mode === "pass" || mode === "deaf to commits";
    if (mode === "deaf to commits" && bytes.includes("commit\0")) proxy.mode = "deaf";
    return mode !== "hold";
  };
  return proxy;
}
