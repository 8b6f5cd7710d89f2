import { afterAll, describe, expect, test } from "bun:test";
import { runStatements } from "../../db/commands/command.ts";
import { openRemote, LOCK_TIMES, takeDatabase } from "../../db/libsql/remote.ts";
import { migrate } from "../../db/libsql/migrate.ts";
import { toStatement } from "../../db/sql/dialect.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { aCreation, aQuery, NOON } from "../support/factory.ts";
import { findSqld, startSqld } from "../support/sqld.ts";
import { lockTimesOf, openStoreOf, storeOver } from "../support/store.ts";
import { startChild } from "./processes.ts";

const program = await findSqld();

const sqld = program === null ? null : await startSqld(program);

afterAll(() => sqld?.[Symbol.asyncDispose]());

const server = sqld?.url ?? "";

/** Calls are given up after this here. */
const CALL_MS = 1_000;

const LOCK_MS = 1_000;

const NEVER = new Promise<Response>(() => {});

describe.skipIf(sqld === null)("a write without an answer", () => {
  test("is committed never or before anything else, and what follows works", async () => {
    using proxy = between(server);
    await using db = await openOver(proxy.url);
    const [held, next] = [aCreation(), aCreation()];
    proxy.holds = isCommit;
    expect(await failureOf(db.store.actions.create(held))).toBeInstanceOf(StoreUnavailable);
    // As long as its end is open nothing is read or written, and nobody waits.
    expect(await failureOf(db.store.actions.position())).toBeInstanceOf(StoreUnavailable);
    await db.isBack();
    expect(await db.store.actions.findById(held.action.id)).toBeNull();
    await db.store.actions.create(next);
    expect(await proxy.deliverLate()).toContain("TRANSACTION_TIMEOUT");
    expect(await db.store.actions.findById(held.action.id)).toBeNull();
    expect(await db.store.actions.findById(next.action.id)).toEqual(next.action);
    expect(db.fatal).toEqual([]);
  });

  test.each([
    ["is lost", NEVER],
    ["is a page of a proxy", "<html>Log in</html>"],
    ["is cut", '{"baton":null,"base'],
    ["is an error of a proxy", Response.json({ message: "Bad gateway" }, { status: 502 })],
  ])("whose answer %s is there when the database is back, and its retry finds it", async (key, answer) => {
    using proxy = between(server);
    await using db = await openOver(proxy.url);
    const creation = aCreation({ idempotencyKey: key });
    proxy.loses = isCommit;
    proxy.answer = async () => (typeof answer === "string" ? new Response(answer) : answer);
    expect(await failureOf(db.store.actions.create(creation))).toBeInstanceOf(StoreUnavailable);
    await db.isBack();
    const again = await db.store.actions.create(aCreation({ idempotencyKey: key }));
    expect(again).toEqual({ kind: "matched", by: "idempotency", action: creation.action });
    expect(db.fatal).toEqual([]);
  });
});

describe.skipIf(sqld === null)("one remote database is one service's", () => {
  test("a second one is refused with a sentence, and one that was killed is not waited for long", async () => {
    await using first = startChild("holdRemote", server, String(LOCK_MS));
    expect(await first.line()).toBe("open");
    const refused = await failureOf(openStoreOf(server, { lockTimes: lockTimesOf(LOCK_MS) }));
    expect(String(refused)).toStartWith(`DatabaseInUse: Another Outgate (process ${first.pid} on `);
    expect(String(refused)).toEndWith("Several at a time need PostgreSQL (postgres://).");
    await first.kill();
    let waits = 0;
    const second = await openStoreOf(server, { lockTimes: lockTimesOf(LOCK_MS), onWait: () => (waits += 1) });
    expect(waits).toBe(1);
    await second.close();
    // A stop leaves nothing to wait for.
    const third = await openStoreOf(server, { onWait: () => (waits += 1) });
    expect(waits).toBe(1);
    await third.close();
  });

  test("one that stood still for longer than its lock lasts is replaced, writes nothing more and ends", async () => {
    await using first = startChild("holdRemote", server, String(LOCK_MS));
    expect(await first.line()).toBe("open");
    process.kill(first.pid, "SIGSTOP");
    const second = await openStoreOf(server, { lockTimes: lockTimesOf(LOCK_MS) });
    process.kill(first.pid, "SIGCONT");
    expect(await first.line()).toBe(`StoreLost: ${LOST}`);
    expect(await first.exited).toBe(1);
    await second.probe();
    await second.close();
  });
});

describe.skipIf(sqld === null)("a service whose database is replaced writes nothing to it and ends", () => {
  test.each([
    ["by an older copy", "UPDATE service_lock SET fence = fence - 1"],
    ["by an empty one", "DROP TABLE service_lock"],
  ])("%s", async (_, replace) => {
    await using db = await openOver(server);
    await db.store.probe();
    const other = openRemote(server, null, CALL_MS);
    await runStatements(other, [toStatement(replace)]);
    const { action, ...rest } = aCreation();
    expect(await failureOf(db.store.actions.create({ action, ...rest }))).toBeInstanceOf(StoreUnavailable);
    expect(db.fatal.map(String)).toEqual([`StoreLost: ${LOST}`]);
    const id = toStatement("SELECT id FROM actions WHERE id = ?", [action.id]);
    expect(await other.read(id)).toEqual([]);
    await runStatements(other, [toStatement("DROP TABLE IF EXISTS service_lock")]);
    await other.close();
  });
});

const LOST = "Another Outgate has taken the database over, or an older copy is in its place.";

async function failureOf(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

/** A store on the server at the end of the URL, with short deadlines. */
async function openOver(url: string) {
  const raw = openRemote(url, null, CALL_MS);
  const holder = { id: crypto.randomUUID(), name: "a test" };
  const fatal: unknown[] = [];
  const onLost = (cause: unknown) => fatal.push(cause);
  const sql = await takeDatabase(raw, { holder, times: LOCK_TIMES, onWait: () => {}, onLost });
  await migrate(sql, NOON);
  const store = storeOver(sql, { isOnlyProcess: false });
  return {
    store,
    fatal,
    async isBack() {
      while ((await failureOf(store.actions.list(aQuery({ limit: 1 })))) !== null) await Bun.sleep(10);
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}

/** Stands between the store and its server: the first call that `holds` knows is not passed on, the answer to the first that `loses` knows is not. */
function between(target: string) {
  let late: { readonly path: string; readonly init: RequestInit } | null = null;
  const proxy = {
    url: "",
    holds: isNone,
    loses: isNone,
    /** What comes in place of the answer that it loses. */
    answer: (): Promise<Response> => NEVER,
    /** Passes on what was held; resolves with the answer. */
    async deliverLate(): Promise<string> {
      if (late === null) throw new Error("Nothing was held.");
      return (await fetch(target + late.path, late.init)).text();
    },
    [Symbol.dispose]: () => void listener.stop(true),
  };
  const listener = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const body = await request.text();
      const path = new URL(request.url).pathname;
      const init = { method: request.method, headers: { "content-type": "application/json" }, body };
      if (proxy.holds(body)) {
        proxy.holds = isNone;
        late = { path, init };
        return NEVER;
      }
      const answer = await fetch(target + path, init);
      if (proxy.loses(body)) {
        proxy.loses = isNone;
        return proxy.answer();
      }
      return new Response(await answer.arrayBuffer(), { status: answer.status });
    },
  });
  proxy.url = `http://127.0.0.1:${listener.port}`;
  return proxy;
}

const isNone = (_body: string) => false;

/** The commit of commands, not that of a batch. */
const isCommit = (body: string) => body.includes("COMMIT") && !body.includes("BEGIN");
