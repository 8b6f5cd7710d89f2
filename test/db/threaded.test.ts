import { expect, test } from "bun:test";
import { join } from "node:path";
import { UNREADABLE } from "../../db/libsql/inspect.ts";
import { errorCode } from "../../db/sql/errors.ts";
import type { Statement } from "../../db/sql/dialect.ts";
import { openThreaded } from "../../db/libsql/threaded.ts";
import { StoreUnavailable } from "../../src/core/store.ts";
import { eventually } from "../support/eventually.ts";
import { librariesOf } from "../support/libraries.ts";
import { temporaryFolder } from "../support/store.ts";
import { maxGapMs } from "./event-loop.ts";
import { type DbConnection, runStatements } from "../../db/commands/command.ts";

const insert = (name: string): Statement => ({ sql: "INSERT INTO notes (name) VALUES (?)", args: [name] });

const names: Statement = { sql: "SELECT name FROM notes ORDER BY rowid", args: [] };

test("a commit that takes long does not stop the event loop", async () => {
  await using db = await openNotes();
  const long = `INSERT INTO notes (name)
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000000) SELECT max(i) FROM n`;
  const began = performance.now();
  const gap = await maxGapMs(() => runStatements(db.sql, [{ sql: long, args: [] }]));
  const took = performance.now() - began;
  expect(await db.sql.read(names)).toEqual([{ name: "2000000" }]);
  expect(gap).toBeLessThan(took / 2);
});

test("an error of the database comes over with its code, and the batch leaves nothing behind", async () => {
  await using db = await openNotes();
  const failed = await runStatements(db.sql, [insert("a"), insert("a")]).catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: "SQLITE_CONSTRAINT_UNIQUE" });
  expect(await db.sql.read(names)).toEqual([]);
  await runStatements(db.sql, [insert("b")]);
  expect(await db.sql.read(names)).toEqual([{ name: "b" }]);
});

test("more texts than have a number are written all the same, and again", async () => {
  await using db = await openNotes();
  const texts = Array.from({ length: 1_200 }, (_, at) => ({
    sql: `INSERT INTO notes (name) VALUES ('${at}' || ?)`,
    args: ["x"],
  }));
  await runStatements(db.sql, texts);
  await runStatements(
    db.sql,
    texts.map(({ sql }) => ({ sql, args: ["y"] })),
  );
  const rows = await db.sql.read(names);
  expect(rows.map((row) => row["name"])).toEqual(["x", "y"].flatMap((end) => texts.map((_, at) => `${at}${end}`)));
});

test("half a character is replaced before it is stored, since reading it back would end the process", async () => {
  await using db = await openNotes();
  await runStatements(db.sql, [insert("a\ud800b"), insert("\udc00")]);
  expect(await db.sql.read(names)).toEqual([{ name: "a\ufffdb" }, { name: "\ufffd" }]);
});

test("the connection that reads can't write", async () => {
  await using db = await openNotes();
  expect(await db.sql.read(insert("a")).then(Boolean, () => "refused")).toBe("refused");
  expect(await db.sql.read(names)).toEqual([]);
});

test("a file that is no database is refused in the words of its check, by its path", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "notes.db");
  await Bun.write(path, "no database ".repeat(1_000));
  const refused = await openThreaded(path, () => {}).catch((error: unknown) => error);
  expect([errorCode(refused), String(refused).includes(`The database ${path} can't be read`)]).toEqual([
    UNREADABLE,
    true,
  ]);
});

test("writes that go on while it closes are refused, and none of them aborts the process", async () => {
  // An abort can't be caught: it ends this process with all its tests.
  for (let round = 0; round < 10; round += 1) {
    const db = await openNotes();
    const ends = new Set<string>();
    let isOver = false;
    const pump = () => {
      if (isOver) return;
      for (let at = 0; at < 3; at += 1) {
        runStatements(db.sql, [insert(`${at}`)]).then(
          () => ends.add("written"),
          (error: unknown) => ends.add(String(error)),
        );
      }
      setImmediate(pump);
    };
    pump();
    await Bun.sleep(2);
    await db[Symbol.asyncDispose]();
    const refusals = () => [...ends].filter((end) => end !== "written" && !end.includes("UNIQUE"));
    await eventually(() => refusals().length > 0 || null, "a refused write");
    isOver = true;
    expect(refusals()).toEqual(["DatabaseError: The database connection is not open"]);
  }
});

test("what was under way at the end has its answer, and what comes later is refused", async () => {
  await using db = await openNotes();
  const writing = runStatements(db.sql, [insert("a")]);
  await db.sql.close();
  expect(await writing).toHaveLength(1);
  const late = await Promise.allSettled([runStatements(db.sql, [insert("b")]), db.sql.read(names)]);
  expect(late.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(late[1]).toMatchObject({ reason: expect.any(StoreUnavailable) });
});

async function openNotes(): Promise<AsyncDisposable & { readonly sql: DbConnection }> {
  const folder = await temporaryFolder();
  const sql = await openThreaded(join(folder.path, "notes.db"), (cause) => {
    throw new Error("The thread died.", { cause });
  });
  await runStatements(sql, [{ sql: "CREATE TABLE notes (name TEXT NOT NULL UNIQUE)", args: [] }]);
  return {
    sql,
    async [Symbol.asyncDispose]() {
      await sql.close().catch(() => {});
      await folder[Symbol.asyncDispose]();
    },
  };
}

test("the thread loads no library beside those of the database but one: schemas alone would triple its start", async () => {
  const libraries = await librariesOf(join(import.meta.dir, "../../db/libsql/worker.ts"), { isLazyToo: true });
  expect(libraries.filter((name) => !name.startsWith("drizzle-orm"))).toEqual(["ipaddr.js"]);
});
