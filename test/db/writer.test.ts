import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import { command, listCommand, type Tx, type DbConnection, execute, runStatements } from "../../db/commands/command.ts";
import { tellingAway } from "../../db/sql/errors.ts";
import { Writer } from "../../db/sql/writer.ts";
import {
  FLUSH_BYTES_MAX,
  FLUSH_ROWS_MAX,
  STORE_CALL_MS_MAX,
  WRITES_WAITING_BYTES_MAX,
  WRITES_WAITING_MAX,
} from "../../src/core/limits.ts";
import { StoreBusy, StoreUnavailable } from "../../src/core/store.ts";
import { FakeClock } from "../support/clock.ts";
import { slowness } from "../support/core.ts";
import { temporaryFolder } from "../support/store.ts";
import { maxGapMs } from "./event-loop.ts";
import { until } from "../support/until.ts";
import { facts } from "../../db/tables.ts";
import { openTx } from "../../db/libsql/tx.ts";

type Fact = readonly [name: string, value: string];

/** Writes facts; an empty name is refused. */
const put = listCommand(
  async ({ db }, list: readonly (readonly Fact[])[]) => {
    for (const [name, value] of list.flat()) {
      if (name === "") throw new Error("A fact needs a name.");
      await db.insert(facts).values({ name, value });
    }
    return list.map((written) => written.length);
  },
  {
    locks: () => [],
    size: (written) => ({
      rows: written.length,
      bytes: written.reduce((sum, [name, value]) => sum + name.length + value.length, 0),
    }),
  },
);

const insert = (name: string, value = ""): Fact => [name, value];

describe("group commit", () => {
  test("all writes of a turn go into one transaction, and each hears of its own after the commit", async () => {
    await using db = await openFacts();
    const writes = Array.from({ length: 64 }, (_, at) => db.writer.run(put, [insert(`n${at}`), insert(`m${at}`)]));
    expect(await db.names()).toEqual([]);
    const first = await Promise.race(writes);
    expect(first).toBe(2);
    expect(await db.names()).toHaveLength(128);
    await Promise.all(writes);
    expect(db.batches).toEqual([64]);
  });

  test("the next commit is under way before those of the last hear of it", async () => {
    const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let begun = 0;
    await using db = await openFacts({ before: () => gates[begun++]?.promise ?? null });
    const first = db.writer.run(put, [insert("a")]);
    await until(() => begun === 1);
    const second = db.writer.run(put, [insert("b")]);
    gates[0]?.resolve();
    await first;
    expect(begun).toBe(2);
    expect(await db.names()).toEqual(["a"]);
    gates[1]?.resolve();
    await second;
    expect(await db.names()).toEqual(["a", "b"]);
  });

  test("nothing is under way behind a commit whose end is not known", async () => {
    const gate = Promise.withResolvers<void>();
    let begun = 0;
    await using db = await openFacts({ before: () => (begun++ === 0 ? gate.promise : null) });
    const first = db.writer.run(put, [insert("a")]);
    await until(() => begun === 1);
    const second = db.writer.run(put, [insert("b")]);
    for (let turns = 0; turns < 20; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toBe(1);
    gate.resolve();
    await Promise.all([first, second]);
    expect(begun).toBe(2);
  });

  test("keeps the order in which writes came, over many commits", async () => {
    await using db = await openFacts();
    const names = Array.from({ length: 2 * FLUSH_ROWS_MAX + 7 }, (_, at) => `n${at}`);
    const settled: string[] = [];
    await Promise.all(names.map((name) => db.writer.run(put, [insert(name)]).then(() => settled.push(name))));
    expect(await db.names()).toEqual(names);
    expect(settled).toEqual(names);
    expect(db.batches).toEqual([FLUSH_ROWS_MAX, FLUSH_ROWS_MAX, 7]);
  });

  test("takes a bounded number of bytes, and a write that is larger alone", async () => {
    await using db = await openFacts();
    const third = "x".repeat(FLUSH_BYTES_MAX / 3);
    const notes = [third, third, third, "x".repeat(FLUSH_BYTES_MAX + 1), "small"];
    await Promise.all(notes.map((note, at) => db.writer.run(put, [insert(`n${at}`, note)])));
    expect(db.batches).toEqual([2, 1, 1, 1]);
  });
});

test("a write that the database refuses is rejected with the database's error, and takes no other write of its turn along", async () => {
  await using db = await openFacts();
  const names = Array.from({ length: 100 }, (_, at) => (at === 37 || at === 90 ? "n0" : `n${at}`));
  const ends = await Promise.allSettled(names.map((name) => db.writer.run(put, [insert(name)])));
  const rejected = ends.flatMap((end, at) => (end.status === "rejected" ? [at] : []));
  expect(rejected).toEqual([37, 90]);
  expect(await db.names()).toEqual(names.filter((_, at) => !rejected.includes(at)));
  expect(ends[37]).toMatchObject({ reason: { code: "SQLITE_CONSTRAINT_PRIMARYKEY" } });
});

describe("a database that is locked by another connection", () => {
  test("is waited for, and the event loop goes on meanwhile", async () => {
    await using db = await openFacts();
    const other = new Database(db.path);
    other.run("BEGIN IMMEDIATE");
    let isDone = false;
    const write = db.writer.run(put, [insert("a")]).finally(() => (isDone = true));
    const gap = await maxGapMs(() => until(() => db.batches.length >= 4));
    expect(isDone).toBe(false);
    other.run("COMMIT");
    await write;
    expect(await db.names()).toEqual(["a"]);
    expect(gap / slowness()).toBeLessThan(300);
    other.close();
  });

  test("for good ends in StoreUnavailable, and the next write works", async () => {
    let isBusy = true;
    await using db = await openFacts({ before: () => (isBusy ? Promise.reject(failure("SQLITE_BUSY")) : null) });
    const end = await db.writer.run(put, [insert("a")]).catch((error: unknown) => error);
    expect(end).toBeInstanceOf(StoreUnavailable);
    expect([db.writer.isAway, db.away.length]).toEqual([true, 1]);
    isBusy = false;
    await db.writer.run(put, [insert("b")]);
    expect(db.writer.isAway).toBe(false);
    expect(await db.names()).toEqual(["b"]);
  });
});

describe("a disk that fails", () => {
  test.each(["SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_IOERR"])(
    "%s: every write of the turn is told StoreUnavailable, the outage is told once, and the next one may work",
    async (code) => {
      const failures = [failure(code)];
      await using db = await openFacts({ before: () => rejection(failures.shift() ?? null) });
      const ends = await Promise.allSettled(["a", "b"].map((name) => db.writer.run(put, [insert(name)])));
      expect(ends.map((end) => end.status === "rejected" && end.reason instanceof StoreUnavailable)).toEqual([
        true,
        true,
      ]);
      expect(db.fatal).toEqual([]);
      expect(db.away).toHaveLength(1);
      await db.writer.run(put, [insert("c")]);
      expect(await db.names()).toEqual(["c"]);
    },
  );

  test.each(["SQLITE_IOERR_FSYNC", "SQLITE_IOERR_DIR_FSYNC"])(
    "%s ends the process, and nothing is written behind it",
    async (code) => {
      const failures = [failure(code)];
      await using db = await openFacts({ before: () => rejection(failures.shift() ?? null) });
      const [first, second] = await Promise.allSettled([
        db.writer.run(put, [insert("a")]),
        db.writer.run(put, [insert("b")]),
      ]);
      const later = await Promise.allSettled([db.writer.run(put, [insert("c")])]);
      for (const end of [first, second, ...later]) {
        expect(end).toMatchObject({ status: "rejected", reason: expect.any(StoreUnavailable) });
      }
      expect(db.fatal).toMatchObject([{ code }]);
      expect(await db.names()).toEqual([]);
    },
  );
});

test("a database that hangs is away: whoever waits is told in time, and nothing is written behind a commit whose end is open", async () => {
  const gate = Promise.withResolvers<void>();
  let begun = 0;
  await using db = await openFacts({ before: () => (begun++ === 0 ? gate.promise : null), commitMsMax: 50 });
  const first = db.writer.run(put, [insert("a")]);
  await until(() => begun === 1);
  const ends = await Promise.allSettled([first, db.writer.run(put, [insert("b")])]);
  const later = await Promise.allSettled([db.writer.run(put, [insert("c")])]);
  for (const end of [...ends, ...later]) expect(end).toMatchObject({ reason: expect.any(StoreUnavailable) });
  expect([begun, db.writer.isAway]).toEqual([1, true]);
  gate.resolve();
  await db.writer.drain();
  await db.writer.run(put, [insert("d")]);
  expect(await db.names()).toEqual(["a", "d"]);
});

test("a process that stood still during a commit takes no answer for late, but a database that hangs goes on to be away", async () => {
  for (const isHanging of [false, true]) {
    const gate = Promise.withResolvers<void>();
    const clock = new FakeClock();
    await using db = await openFacts({ before: () => gate.promise, clock });
    const written = db.writer.run(put, [insert("a")]);
    await until(() => db.batches.length === 1);
    clock.stall(60_000);
    expect([db.writer.isAway, db.away]).toEqual([false, []]);
    if (isHanging) clock.advance(STORE_CALL_MS_MAX);
    expect(db.writer.isAway).toBe(isHanging);
    gate.resolve();
    if (isHanging) expect(await written.catch((error: unknown) => error)).toBeInstanceOf(StoreUnavailable);
    else await written;
  }
});

describe("the queue", () => {
  test("is bounded: one write too many is told StoreBusy at once, and the others are written", async () => {
    await using db = await openFacts({ before: () => null, commits: false });
    const writes = Array.from({ length: WRITES_WAITING_MAX }, () => db.writer.run(put, [insert("a")]));
    const end = await db.writer.run(put, [insert("b")]).catch((error: unknown) => error);
    expect(end).toBeInstanceOf(StoreBusy);
    await Promise.all(writes);
    expect(db.batches.reduce((sum, count) => sum + count, 0)).toBe(WRITES_WAITING_MAX);
    await db.writer.run(put, [insert("c")]);
  });

  test("is bounded in bytes too, one write at least, and what was refused may come again", async () => {
    await using db = await openFacts({ commits: false });
    const half = "x".repeat(WRITES_WAITING_BYTES_MAX / 2 - 1_000);
    const writes = [db.writer.run(put, [insert("a", half)]), db.writer.run(put, [insert("b", half)])];
    const refused = db.writer.run(put, [insert("c", "y".repeat(2_001))]);
    const small = db.writer.run(put, [insert("d", "z")]);
    expect(await refused.catch((error: unknown) => error)).toBeInstanceOf(StoreBusy);
    await Promise.all([...writes, small]);
    await db.writer.run(put, [insert("e", "x".repeat(WRITES_WAITING_BYTES_MAX + 1))]);
  });

  test("is drained when everything is written, what came meanwhile too", async () => {
    await using db = await openFacts();
    await db.writer.drain();
    const late: Promise<unknown>[] = [];
    const first = db.writer.run(put, [insert("a")]).then(() => late.push(db.writer.run(put, [insert("b")])));
    await db.writer.drain();
    expect(await db.names()).toEqual(["a", "b"]);
    await Promise.all([first, ...late]);
  });
});

async function addTo({ db }: Tx, name: string): Promise<string> {
  await db.insert(facts).values({ name, value: "" });
  return `add ${name}`;
}

const add = command(addTo);

const addThenFail = command(async (tx, name: string) => {
  await addTo(tx, name);
  throw new Error(`No ${name}.`);
});

describe("commands on a file", () => {
  test("that fail write nothing, and those beside them are written", async () => {
    await using db = await openFacts();
    const ran = await Promise.allSettled([
      db.writer.run(add, "a"),
      db.writer.run(addThenFail, "b"),
      db.writer.run(add, "a"),
      db.writer.run(add, "c"),
    ]);
    expect(ran.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(ran[1]).toMatchObject({ reason: new Error("No b.") });
    expect(await db.names()).toEqual(["a", "c"]);
  });

  test("share the file with statements: one transaction at a time", async () => {
    await using db = await openFacts();
    const statement = { sql: "insert into facts values (?, '')", args: ["s"] };
    const names = { sql: "select name from facts", args: [] };
    const [, , seen] = await Promise.all([
      runStatements(db.sql, [statement]),
      db.writer.run(add, "a"),
      db.sql.read(names),
    ]);
    expect(seen).toEqual([{ name: "s" }]);
    expect(await db.names()).toEqual(["s", "a"]);
  });

  test("that run statements stop at one that fails: after a full disk the next would be committed by itself", async () => {
    const sent: string[] = [];
    const tx = openTx(async (sql) => {
      sent.push(sql);
      if (sql === "full") throw failure("SQLITE_FULL");
      return [];
    });
    const statements = ["first", "full", "next"].map((sql) => ({ sql, args: [] }));
    expect(await execute.run(tx, [[statements]]).catch(String)).toBe("Error: failed with SQLITE_FULL");
    expect(sent).toEqual(["first", "full"]);
  });

  test("that wait for anything but their statements fail, and write nothing later", async () => {
    await using db = await openFacts();
    const { promise: waited, resolve } = Promise.withResolvers<unknown>();
    const ended = Promise.withResolvers<void>();
    const slow = command(async (tx, name: string) => {
      await addTo(tx, name);
      await ended.promise;
      await addTo(tx, `${name} late`).catch((error: unknown) => {
        resolve(error instanceof Error ? String(error.cause) : error);
      });
    });
    const ran = await Promise.allSettled([db.writer.run(slow, "a"), db.writer.run(add, "b")]);
    expect(ran[0]).toMatchObject({
      reason: { message: "A command waits for something that is no statement of its own." },
    });
    ended.resolve();
    expect(await waited).toBe("Error: The command has ended.");
    await db.writer.run(add, "c");
    expect(await db.names()).toEqual(["b", "c"]);
  });

  test("that keep their transaction can't use it when they have ended", async () => {
    await using db = await openFacts();
    const kept: Tx[] = [];
    const keep = command(async (tx, to: Tx[]) => void to.push(tx));
    await db.writer.run(keep, kept);
    const late = await Promise.allSettled(kept.map((tx) => addTo(tx, "a")));
    expect(late.map(({ status }) => status)).toEqual(["rejected"]);
    expect(await db.names()).toEqual([]);
  });
});

interface FactsOptions {
  /** Comes before each batch; a rejection stands for a failure of the database. */
  readonly before?: () => Promise<void> | null;
  /** False: nothing is written, and each write hears that it was. */
  readonly commits?: boolean;
  readonly commitMsMax?: number;
  readonly clock?: FakeClock;
}

/** A writer on a real file, and a list of what it committed: writes a commit, failed tries too. */
async function openFacts({ before = () => null, commits = true, ...timing }: FactsOptions = {}) {
  const folder = await temporaryFolder();
  const path = join(folder.path, "facts.db");
  const real = openFile(path);
  await runStatements(real, [{ sql: "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)", args: [] }]);
  const look = openFile(path);
  const batches: number[] = [];
  const fatal: unknown[] = [];
  const away: StoreUnavailable[] = [];
  const onAway = (error: StoreUnavailable) => void away.push(error);
  const tried: DbConnection = {
    ...real,
    async transact(calls) {
      batches.push(calls.length);
      await before();
      return commits ? real.transact(calls) : calls.map(() => 1);
    },
  };
  const writer = new Writer(tellingAway(tried, onAway), (cause) => fatal.push(cause), { onAway, ...timing });
  return {
    path,
    sql: real,
    writer,
    batches,
    fatal,
    away,
    async names(): Promise<readonly unknown[]> {
      return (await look.read({ sql: "SELECT name FROM facts ORDER BY rowid", args: [] })).map((row) => row["name"]);
    },
    async [Symbol.asyncDispose]() {
      await writer.drain();
      await real.close();
      await look.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** An error as the binding throws it. */
function failure(code: string): Error {
  return Object.assign(new Error(`failed with ${code}`), { code });
}

function rejection(reason: Error | null): Promise<never> | null {
  return reason === null ? null : Promise.reject(reason);
}
