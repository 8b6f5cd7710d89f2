import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { command, type Tx } from "../../db/commands/command.ts";
import { openFile } from "../../db/libsql/file.ts";
import type { Sql } from "../../db/sql/sql.ts";
import { Writer } from "../../db/sql/writer.ts";
import { temporaryFolder } from "../support/store.ts";

const put = command(async ({ db, tables: { facts } }, name: string) => {
  await db.insert(facts).values({ name, value: "" });
  return `put ${name}`;
});

const putThenFail = command(async (tx, name: string) => {
  await put.run(tx, name);
  throw new Error(`No ${name}.`);
});

describe("commands on a file", () => {
  test("of a turn are one transaction, and each hears of its own result after the commit", async () => {
    await using db = await openFacts();
    const ran = await Promise.all(["a", "b", "c"].map((name) => db.writer.run(put, name)));
    expect(ran).toEqual(["put a", "put b", "put c"]);
    expect(await db.names()).toEqual(["a", "b", "c"]);
    expect(db.transactions()).toBe(1);
  });

  test("that fail write nothing, and those beside them are written", async () => {
    await using db = await openFacts();
    const ran = await Promise.allSettled([
      db.writer.run(put, "a"),
      db.writer.run(putThenFail, "b"),
      db.writer.run(put, "a"),
      db.writer.run(put, "c"),
    ]);
    expect(ran.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
    expect(ran[1]).toMatchObject({ reason: new Error("No b.") });
    expect(await db.names()).toEqual(["a", "c"]);
  });

  test("share the file with statements: one transaction at a time", async () => {
    await using db = await openFacts();
    const insert = { sql: "insert into facts values (?, '')", args: ["s"] };
    const [, , seen] = await Promise.all([db.sql.batch([insert]), db.writer.run(put, "a"), db.names()]);
    expect(seen).toEqual(["s"]);
    expect(await db.names()).toEqual(["a", "s"]);
  });

  test("that wait for anything but their statements fail, and write nothing later", async () => {
    await using db = await openFacts();
    const { promise: waited, resolve } = Promise.withResolvers<unknown>();
    const slow = command(async (tx, name: string) => {
      await put.run(tx, name);
      await Bun.sleep(1);
      await put.run(tx, `${name} late`).catch((error: unknown) => {
        resolve(error instanceof Error ? String(error.cause) : error);
      });
    });
    const ran = await Promise.allSettled([db.writer.run(slow, "a"), db.writer.run(put, "b")]);
    expect(ran[0]).toMatchObject({
      reason: { message: "A command waits for something that is no statement of its own." },
    });
    expect(await waited).toBe("Error: The command has ended.");
    await db.writer.run(put, "c");
    expect(await db.names()).toEqual(["b", "c"]);
  });

  test("that keep their transaction can't use it when they have ended", async () => {
    await using db = await openFacts();
    const kept: Tx[] = [];
    const keep = command(async (tx, to: Tx[]) => void to.push(tx));
    await db.writer.run(keep, kept);
    const late = await Promise.allSettled(kept.map((tx) => put.run(tx, "a")));
    expect(late.map(({ status }) => status)).toEqual(["rejected"]);
    expect(await db.names()).toEqual([]);
  });
});

async function openFacts() {
  const folder = await temporaryFolder();
  const real = openFile(join(folder.path, "facts.db"));
  await real.batch([{ sql: "create table facts (name text primary key, value text not null)", args: [] }]);
  let transactions = 0;
  const sql: Sql = { ...real, transact: (work) => ((transactions += 1), real.transact(work)) };
  const writer = new Writer(sql, (cause) => {
    throw new Error("The writer died.", { cause });
  });
  return {
    sql,
    writer,
    transactions: () => transactions,
    names: async () =>
      (await sql.read({ sql: "select name from facts order by name", args: [] })).map(({ name }) => name),
    async [Symbol.asyncDispose]() {
      await writer.drain();
      await real.close();
      await folder[Symbol.asyncDispose]();
    },
  };
}
