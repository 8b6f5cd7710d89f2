import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { checkLog, DatabaseUnreadable, logProblem } from "../../db/libsql/inspect.ts";
import { openFile } from "../../db/libsql/file.ts";
import { copyDatabase } from "../../db/backup.ts";
import { openAdminStore, sizeOfFile } from "../../db/open.ts";
import { openTransferSource } from "../../db/transfer.ts";
import type { Store } from "../../src/core/store.ts";
import { quickestOf } from "../support/core.ts";
import { aCreation } from "../support/factory.ts";
import { openStoreAt, temporaryFolder } from "../support/store.ts";
import { maxGapMs } from "./event-loop.ts";
import { runStatements } from "../../db/commands/command.ts";

describe("a file that is no database any more", () => {
  test.each([
    ["a byte", () => 1],
    ["its head", () => 100],
    ["a page less a byte", () => 4_095],
    ["a page", () => 4_096],
    ["half", (whole: number) => whole / 2],
    ["all but a byte", (whole: number) => whole - 1],
  ])("cut to %s: the start is refused with a sentence, and the file is left as it is", async (_, sizeOf) => {
    await using folder = await temporaryFolder();
    const path = await aDatabase(folder.path);
    truncateSync(path, sizeOf(statSync(path).size));
    await expectRefused(path);
  });

  test.each([
    ["text", () => Buffer.from("What is this? ".repeat(1_000))],
    ["zeros", () => Buffer.alloc(16_384)],
    ["noise", () => Buffer.from(crypto.getRandomValues(new Uint8Array(16_384)))],
    ["a database's head and nothing sensible behind it", (whole: Buffer) => whole.subarray().fill(0x5a, 100)],
    ["a database whose list of tables is overwritten", (whole: Buffer) => whole.subarray().fill(0x5a, 2_000, 4_096)],
    ["a database with a page of noise in the middle", (whole: Buffer) => whole.subarray().fill(0x5a, 40_960, 45_056)],
    ["a database with the first byte flipped", (whole: Buffer) => whole.subarray().fill(0x54, 0, 1)],
  ])("%s: the same", async (_, damage) => {
    await using folder = await temporaryFolder();
    const path = await aDatabase(folder.path);
    await Bun.write(path, damage(Buffer.from(await Bun.file(path).bytes())));
    await expectRefused(path);
  });

  test("cut short beside a log that goes on: the same, and the log is left as it is", async () => {
    await using folder = await temporaryFolder();
    const path = await aDatabaseWithLog(folder.path);
    const log = await Bun.file(`${path}-wal`).bytes();
    for (const size of [statSync(path).size / 2, 8_192, 100, 0]) {
      truncateSync(path, size);
      await expectRefused(path);
      expect(Buffer.compare(log, await Bun.file(`${path}-wal`).bytes())).toBe(0);
    }
  });

  test("the log of a file that a backup has replaced is told, though the pages of both fit", async () => {
    await using folder = await temporaryFolder();
    const [first = "", second = "", running = "", path = ""] = ["1", "2", "3", "4"].map((name) =>
      join(folder.path, name),
    );
    await (await openStoreAt(path)).close();
    copyDatabase(path, first);
    copyFileSync(first, running);
    const store = await openStoreAt(running);
    await store.actions.create(aCreation());
    copyDatabase(running, second);
    for (const part of ["-wal", "-shm"]) copyFileSync(running + part, path + part);
    copyFileSync(second, path);
    await store.close();
    expect(await openStoreAt(path).then(String, String)).toContain("belongs to another file");
    for (const part of ["-wal", "-shm"]) rmSync(path + part);
    await (await openStoreAt(path)).close();
    expect(await countActions(path)).toBe(1);
  });

  test("what a crash leaves, a file and its log, is opened with everything that was acknowledged", async () => {
    await using folder = await temporaryFolder();
    const path = await aDatabaseWithLog(folder.path);
    const store = await openStoreAt(path);
    expect(await countActions(path)).toBe(110);
    await store.close();
  });

  test.each([
    ["deleted", (log: string) => rmSync(log)],
    ["cut", (log: string) => truncateSync(log, statSync(log).size / 2)],
    ["damaged", (log: string) => flip(log, statSync(log).size / 2)],
    ["damaged at its head", (log: string) => flip(log, 20)],
  ])("a log that was %s after a kill is told by whatever opens the file, and not taken for none", async (_, change) => {
    await using folder = await temporaryFolder();
    const path = await aDatabaseWithLog(folder.path);
    const [copy, log] = [join(folder.path, "backup.db"), `${path}-wal`];
    copyDatabase(path, copy);
    expect(await countActions(copy)).toBe(110);
    change(log);
    const backUp = async (name: string) => copyDatabase(name, `${copy}.2`);
    const administer = (name: string) => openAdminStore(`file:${name}`, null);
    const uses = [backUp, administer, openTransferSource, openStoreAt];
    const goOn = existsSync(log) ? "" : ` Then make an empty log: touch ${log}`;
    // Whatever SQLite opens once has another index, by which nothing is missing.
    for (const use of uses) {
      expect(await use(path).then(String, String)).toBe(
        `DatabaseUnreadable: The log ${log} of the database was deleted, cut or damaged. What was written last was only there, and calls made since may be made again. Put it back, or restore a backup. To go on without it, or if the file is a backup, stop what uses it and delete ${path}-shm.${goOn}`,
      );
    }
    rmSync(`${path}-shm`);
    // So is a file that was copied without its log while a service ran.
    for (const use of existsSync(log) ? [] : uses) {
      expect(await use(path).then(String, String)).toBe(
        `DatabaseUnreadable: The log ${log} of the database is not there. If a program such as sqlite3 has saved it in the file after a kill, nothing is lost. If it was deleted, or the file was copied without it while a service ran, what was written last was only there, and calls made since may be made again: put it back, or restore a backup. To go on without it, stop what uses the file.${goOn}`,
      );
    }
    if (!existsSync(log)) writeFileSync(log, "");
    const store = await openStoreAt(path);
    expect(await countActions(path)).toBeLessThan(110);
    await store.close();
  });

  test.each([
    ["a service that writes nothing", openStoreAt],
    ["a command", (path: string) => openAdminStore(`file:${path}`, null)],
    ["a service that had no room", async (path: string) => openFile(path, "alone")],
    ["a look at its size", async (path: string) => void (await sizeOfFile(path, new Date()))],
  ])("a kill while the log was being saved leaves a file that is opened, also after %s", async (_, use) => {
    await using folder = await temporaryFolder();
    const path = await aDatabaseWithLog(folder.path, "nothing", "PRAGMA user_version = 1");
    await (await use(path))?.close();
    const store = await openStoreAt(path);
    expect(await countActions(path)).toBe(110);
    await store.close();
  });

  test("the log begins again soon after somebody who read through it for long", async () => {
    await using folder = await temporaryFolder();
    const path = await aDatabase(folder.path);
    const file = openFile(path);
    const write = (statement: string) => runStatements(file, [{ sql: statement, args: [] }]);
    await write("create table filler (bytes blob)");
    const reader = new Database(path, { readonly: true });
    for (let round = 0; round < 2_200; round += 20) {
      reader.run("BEGIN; SELECT count(*) FROM filler");
      await write("insert into filler values (zeroblob(80000))");
      reader.run("COMMIT");
    }
    reader.close();
    for (let round = 0; round < 1_600; round += 20) await write("insert into filler values (zeroblob(80000))");
    expect(statSync(`${path}-wal`).size).toBeLessThan(2_800 * 4_096);
    await file.close();
  });

  test("a damaged log doesn't hide what the file has, and leaves with its index", async () => {
    await using folder = await temporaryFolder();
    const path = await aDatabaseWithLog(folder.path, "all");
    flip(`${path}-wal`, 8_000);
    expect(await openStoreAt(path).then(String, String)).toBe(
      `DatabaseUnreadable: The log ${path}-wal of the database was cut or damaged. Nothing is lost: the database file has all of it. Stop what uses the database, and delete ${path}-wal and ${path}-shm.`,
    );
    for (const suffix of ["-wal", "-shm"]) rmSync(path + suffix);
    const store = await openStoreAt(path);
    expect(await countActions(path)).toBe(110);
    await store.close();
  });

  test("nobody is told to go on without a log whose pages the file has in part", async () => {
    await using folder = await temporaryFolder();
    const path = await aDatabaseWithLog(folder.path, "a part");
    rmSync(`${path}-wal`);
    expect(await openStoreAt(path).then(String, String)).toEndWith(
      `restore a backup. If the file is a backup, stop what uses it and delete ${path}-shm.`,
    );
  });

  test("a log that another process saves and deletes meanwhile is not missing", async () => {
    await using folder = await temporaryFolder();
    const path = await aDatabaseWithLog(folder.path);
    const log = readFileSync(`${path}-wal`);
    rmSync(`${path}-wal`);
    const problem = logProblem(path);
    expect(problem).not.toBeNull();
    checkLog(path, () => {
      if (!existsSync(`${path}-shm`)) return null;
      writeFileSync(`${path}-wal`, log);
      openAndSave(path);
      return problem;
    });
  });

  test("an empty file becomes a new database", async () => {
    await using folder = await temporaryFolder();
    await Bun.write(folder.file, "");
    const store = await openStoreAt(folder.file);
    await store.probe();
    await store.close();
  });
});

test("the database and everything beside it is for its owner alone", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "new", "outgate.db");
  const store = await openStoreAt(path);
  await Promise.all(Array.from({ length: 50 }, () => store.actions.create(aCreation())));
  const modes = readdirSync(join(folder.path, "new")).map((name) => {
    return `${name} ${(statSync(join(folder.path, "new", name)).mode & 0o777).toString(8)}`;
  });
  expect(modes.toSorted()).toEqual(
    ["outgate.db 600", "outgate.db-shm 600", "outgate.db-wal 600", "outgate.db.lock 600"].toSorted(),
  );
  expect(statSync(join(folder.path, "new")).mode & 0o777).toBe(0o700);
  await store.close();
});

test("a file that others could read is closed to them", async () => {
  await using folder = await temporaryFolder();
  const path = await aDatabase(folder.path);
  Bun.spawnSync(["chmod", "644", path]);
  const store = await openStoreAt(path);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  await store.close();
});

test("header values are not in the file in clear", async () => {
  await using folder = await temporaryFolder();
  const store = await openStoreAt(folder.file);
  await store.actions.create(
    aCreation({ headers: { Authorization: "Bearer canary-4711" }, body: '{"a":"open-4711"}' }),
  );
  await store.close();
  const bytes = Buffer.from(await Bun.file(folder.file).bytes());
  expect(bytes.includes("open-4711")).toBe(true);
  expect(bytes.includes("canary-4711")).toBe(false);
});

test("a commit is durable before it is told: a write-ahead log, synchronous FULL", async () => {
  await using folder = await temporaryFolder();
  const sql = openFile(folder.file);
  expect(await sql.read({ sql: "PRAGMA journal_mode", args: [] })).toEqual([{ journal_mode: "wal" }]);
  expect(await sql.read({ sql: "PRAGMA synchronous", args: [] })).toEqual([{ synchronous: 2 }]);
  await sql.close();
});

test("a probe writes, also when it is the same one again: a full disk would not refuse it else", async () => {
  await using folder = await temporaryFolder();
  const store = await openStoreAt(folder.file);
  const logBytes = () => statSync(`${folder.file}-wal`).size;
  for (let count = 0; count < 3; count += 1) {
    const before = logBytes();
    await store.probe();
    expect(logBytes()).toBeGreaterThan(before);
  }
  await store.close();
});

test("a large file is checked and opened while the event loop goes on, so that a start answers probes", async () => {
  await using folder = await temporaryFolder();
  const path = await aDatabase(folder.path);
  const sql = openFile(path);
  const filler = "insert into filler values (randomblob(1000))";
  await runStatements(sql, [{ sql: "create table filler (bytes blob)", args: [] }]);
  await runStatements(
    sql,
    Array.from({ length: 100_000 }, () => ({ sql: filler, args: [] })),
  );
  await sql.close();
  const gapMs = await quickestOf(50, async () => {
    const opening: { store?: Store } = {};
    const heldMs = await maxGapMs(async () => void (opening.store = await openStoreAt(path)));
    await opening.store?.close();
    return heldMs;
  });
  // On this thread the check of so large a file takes 90 ms.
  expect(gapMs).toBeLessThan(50);
});

/** A closed database with a hundred actions; made once, and copied for each test. */
async function aDatabase(folder: string): Promise<string> {
  const path = join(folder, "outgate.db");
  if (template !== null) {
    await Bun.write(path, template);
    return path;
  }
  const store = await openStoreAt(path);
  await Promise.all(Array.from({ length: 100 }, () => store.actions.create(aCreation())));
  await store.close();
  template = await Bun.file(path).bytes();
  return path;
}

let template: Uint8Array | null = null;

/** What is on the disk when the process is killed: of 110 actions the last ten are in the log, and of these all or a part in the file, too. */
async function aDatabaseWithLog(
  folder: string,
  saved: "nothing" | "a part" | "all" = "nothing",
  last: string | null = null,
): Promise<string> {
  const path = await aDatabase(folder);
  const store = await openStoreAt(path);
  const createFive = () => Promise.all(Array.from({ length: 5 }, () => store.actions.create(aCreation())));
  await createFive();
  const other = new Database(path);
  if (saved === "a part") other.run("BEGIN; SELECT count(*) FROM actions");
  await createFive();
  if (saved !== "nothing") openAndSave(path);
  if (last !== null) other.run(last);
  other.close();
  const copy = join(folder, "copy.db");
  for (const suffix of ["", "-wal", "-shm"]) copyFileSync(path + suffix, copy + suffix);
  await store.close();
  return copy;
}

function openAndSave(path: string): void {
  const database = new Database(path);
  database.run("PRAGMA wal_checkpoint(PASSIVE)");
  database.close();
}

function flip(path: string, at: number): void {
  const bytes = readFileSync(path);
  bytes[at] = 255 - (bytes[at] ?? 0);
  writeFileSync(path, bytes);
}

async function expectRefused(path: string): Promise<void> {
  const before = await Bun.file(path).bytes();
  const refused = await openStoreAt(path).then(String, (error: unknown) => error);
  expect(refused).toBeInstanceOf(DatabaseUnreadable);
  const log =
    (statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0
      ? " Move the log next to it (-wal, and -shm if it is there) away with it: it belongs to no other file."
      : "";
  expect(String(refused)).toBe(
    `DatabaseUnreadable: The database ${path} can't be read: it is damaged, cut short or no database. ` +
      `Nothing was written to it. Put a backup in its place, or set DATABASE_URL to another file.${log}`,
  );
  expect(Buffer.compare(before, await Bun.file(path).bytes())).toBe(0);
}

async function countActions(path: string): Promise<number> {
  const sql = openFile(path);
  const [row] = await sql.read({ sql: "SELECT count(*) AS n FROM actions", args: [] });
  await sql.close();
  return Number(row?.["n"]);
}
