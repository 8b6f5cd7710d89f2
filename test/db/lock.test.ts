import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { copyDatabase } from "../../db/backup.ts";
import { DatabaseInUse, lockFile, migratedMark } from "../../db/libsql/inspect.ts";
import { openAdminStore } from "../../db/open.ts";
import { openTransferSource } from "../../db/transfer.ts";
import { StoreLost } from "../../src/core/store.ts";
import { ACCOUNT, aCreation } from "../support/factory.ts";
import { openStoreAt, openStoreOf, temporaryFolder } from "../support/store.ts";
import { startChild } from "./processes.ts";

test("a second process on one file is refused within a second, and says why", async () => {
  await using folder = await temporaryFolder();
  const startedMs = performance.now();
  await using first = startChild("hold", folder.file);
  expect(await first.line()).toBe("open");

  const openMs = performance.now();
  await using second = startChild("hold", folder.file);
  expect(await second.exited).toBe(1);
  // Beside what a process takes here to start at all.
  expect(performance.now() - openMs).toBeLessThan(1_000 + 3 * (openMs - startedMs));
  expect(await second.errors()).toBe(
    `DatabaseInUse: Another Outgate has the database ${folder.file} open. Stop it, or set DATABASE_URL to another file.\n`,
  );
  expect(first.isRunning).toBe(true);
});

test("a process that is killed lets the file go at once", async () => {
  await using folder = await temporaryFolder();
  await using first = startChild("hold", folder.file);
  await first.line();
  expect(() => lockFile(folder.file)).toThrow(DatabaseInUse);
  await first.kill();
  const store = await openStoreAt(folder.file);
  await store.close();
});

test("a store that is closed lets the file go, and holds no file open that another process would miss", async () => {
  await using folder = await temporaryFolder();
  const store = await openStoreAt(folder.file);
  const { action, ...rest } = aCreation();
  await store.actions.create({ action, ...rest });
  await store.close();
  // What the log held is in the file: a copy of it alone is a whole backup.
  if (existsSync(`${folder.file}-wal`)) expect(Bun.file(`${folder.file}-wal`).size).toBe(0);
  await using next = startChild("hold", folder.file);
  expect(await next.line()).toBe("open");
});

test("a start that fails lets the file go", async () => {
  await using folder = await temporaryFolder();
  await Bun.write(folder.file, "no database at all ".repeat(100));
  expect(await openStoreAt(folder.file).then(Boolean, () => "refused")).toBe("refused");
  lockFile(folder.file).release();
});

test("a file that was migrated is opened by no service until its mark is deleted", async () => {
  await using folder = await temporaryFolder();
  await (await openStoreAt(folder.file)).close();
  const mark = migratedMark(folder.file);
  writeFileSync(mark, "");
  const link = join(folder.path, "link.db");
  symlinkSync(folder.file, link);
  for (const name of [folder.file, link]) {
    expect(await openStoreAt(name).then(String, String)).toContain(`you may delete ${mark} and go on with the file`);
  }
  // While the migration that will make it runs, the file is in use: the mark is looked for only under the lock.
  const migration = lockFile(folder.file);
  expect(await openStoreAt(folder.file).then(Boolean, (error: unknown) => error)).toBeInstanceOf(DatabaseInUse);
  migration.release();
  rmSync(mark);
  await (await openStoreAt(link)).close();
});

test.each([
  ["its lock is deleted", (file: string) => rmSync(`${file}.lock`), ".lock"],
  [
    "its folder is moved, as to restore a backup",
    (file: string) => renameSync(dirname(file), `${dirname(file)}.before`),
    "",
  ],
  [
    "another file takes its place",
    (file: string) => (renameSync(file, `${file}.old`), copyFileSync(`${file}.old`, file)),
    "",
  ],
] as const)("a service that runs is told that it may be alone no more: %s", async (_, change, suffix) => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "data/outgate.db");
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const store = await openStoreOf(`file:${file}`, { onFatal: resolve });
  change(file);
  expect(await promise).toEqual(
    new StoreLost(`The file ${file}${suffix} was deleted, moved or replaced while the service ran.`),
  );
  await store.close();
});

test.each([
  ["its log is deleted", (file: string) => rmSync(`${file}-wal`), "-wal"],
  ["another log takes its place", (file: string) => replace(`${file}-wal`), "-wal"],
  [
    "something takes its place that can't be deleted",
    (file: string) => (rmSync(`${file}-wal`), mkdirSync(`${file}-wal`)),
    "-wal",
  ],
  ["its shared memory is deleted", (file: string) => rmSync(`${file}-shm`), "-shm"],
] as const)("what is acknowledged is saved in the file, and the service ends: %s", async (what, change, suffix) => {
  await using folder = await temporaryFolder();
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const store = await openStoreOf(`file:${folder.file}`, { onFatal: resolve });
  const { action, ...rest } = aCreation();
  await store.actions.create({ action, ...rest });
  // Somebody who reads keeps a part of the log from the file, until then.
  const reader = new Database(folder.file, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM actions").get();
  await store.actions.create(aCreation());
  change(folder.file);
  const refused = await store.actions.create(aCreation()).catch((error: unknown) => error);
  expect(refused).toMatchObject({ name: "StoreUnavailable", reason: "its log was deleted, replaced or cut" });
  reader.run("COMMIT");
  reader.close();
  const lost = String(await promise);
  const isLeft = suffix === "-wal" && existsSync(`${folder.file}-wal`);
  expect(isLeft).toBe(what.includes("can't be deleted"));
  const advice = isLeft ? ` Delete ${folder.file}-wal before the next start: it is not the log of the database.` : "";
  expect(lost).toBe(
    `StoreLost: The file ${folder.file}${suffix} was deleted, moved or replaced while the service ran. Nothing is lost: the database file has all of it.${advice}`,
  );
  // As a kill leaves it.
  const copy = join(folder.path, "copy.db");
  copyFileSync(folder.file, copy);
  const again = await openStoreAt(copy);
  expect(await again.actions.find(ACCOUNT, action.id)).not.toBeNull();
  await again.close();
  await store.close();
});

function replace(file: string): void {
  copyFileSync(file, `${file}.copy`);
  renameSync(`${file}.copy`, file);
}

test("a log that is cut is told, and its holes don't get into the file; one that another program has emptied is none", async () => {
  await using folder = await temporaryFolder();
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const store = await openStoreOf(`file:${folder.file}`, { onFatal: resolve });
  await store.actions.create(aCreation());
  const other = new Database(folder.file);
  other.run("PRAGMA wal_checkpoint(TRUNCATE)");
  other.close();
  expect(statSync(`${folder.file}-wal`).size).toBe(0);
  await store.actions.create(aCreation());
  const before = readFileSync(folder.file);
  truncateSync(`${folder.file}-wal`);
  expect(await store.actions.create(aCreation()).then(Boolean, String)).toContain(
    "its log was deleted, replaced or cut",
  );
  expect(String(await promise)).toContain(`${folder.file}-wal was cut short while the service ran.`);
  await store.close();
  expect(Buffer.compare(readFileSync(folder.file), before)).toBe(0);
});

describe("a file has one lock under all its names", () => {
  /** A database in `real`, and the other names that a service may get for it. */
  async function named(folder: string) {
    const [real, elsewhere] = [join(folder, "real"), join(folder, "elsewhere")];
    for (const each of [real, elsewhere]) mkdirSync(each);
    const path = join(real, "outgate.db");
    await (await openStoreAt(path)).close();
    symlinkSync(path, join(elsewhere, "link.db"));
    symlinkSync("link.db", join(elsewhere, "link-of-link.db"));
    symlinkSync("../real/outgate.db", join(elsewhere, "relative.db"));
    symlinkSync(real, join(folder, "linked-folder"));
    const names = ["link.db", "link-of-link.db", "relative.db"].map((name) => join(elsewhere, name));
    return { path, elsewhere, names: [...names, join(folder, "linked-folder/outgate.db")] };
  }

  test("so that a second process is refused that gets it by a symbolic link", async () => {
    await using folder = await temporaryFolder();
    const { path, names } = await named(folder.path);
    await using first = startChild("hold", names[0] ?? "");
    expect(await first.line()).toBe("open");
    await using second = startChild("hold", names[1] ?? "");
    expect(await second.exited).toBe(1);
    expect(await second.errors()).toContain(`Another Outgate has the database ${names[1]} (${path}) open.`);
    for (const name of [path, ...names]) {
      expect(() => lockFile(name)).toThrow(DatabaseInUse);
      expect(await openTransferSource(name).catch((error: unknown) => error)).toBeInstanceOf(DatabaseInUse);
    }
  });

  test("and one log and one owner, so that nothing of it lies beside a link", async () => {
    await using folder = await temporaryFolder();
    const { elsewhere, names } = await named(folder.path);
    const before = readdirSync(elsewhere);
    const store = await openStoreAt(names[0] ?? "");
    const { action, ...rest } = aCreation();
    await store.actions.create({ action, ...rest });
    await store.close();
    expect(readdirSync(elsewhere)).toEqual(before);
    const again = await openStoreAt(names[3] ?? "");
    expect((await again.actions.find(ACCOUNT, action.id))?.id).toBe(action.id);
    await again.close();
  });

  test("also while a service of an older version, which locks the name that it was given, runs", async () => {
    await using folder = await temporaryFolder();
    const { names } = await named(folder.path);
    const [link = ""] = names;
    const old = new Database(`${link}.lock`, { create: true });
    old.run("BEGIN EXCLUSIVE");
    expect(() => lockFile(link)).toThrow(DatabaseInUse);
    old.run("ROLLBACK");
    old.close();
    lockFile(link).release();
  });

  test("and a link whose file is not there yet leads to where it is made", async () => {
    await using folder = await temporaryFolder();
    const link = join(folder.path, "link.db");
    symlinkSync("outgate.db", link);
    const store = await openStoreAt(link);
    expect(() => lockFile(folder.file)).toThrow(DatabaseInUse);
    await store.close();
    expect(readdirSync(folder.path).toSorted()).toEqual(["link.db", "outgate.db", "outgate.db.lock"]);
  });

  test("and a link into a folder that is not there makes none: a disk may not be mounted", async () => {
    await using folder = await temporaryFolder();
    const link = join(folder.path, "link.db");
    symlinkSync(join(folder.path, "disk/outgate.db"), link);
    expect(await openStoreAt(link).catch(String)).toBe(
      `Error: The database ${link} is a link to ${folder.path}/disk/outgate.db, and there is no folder ${folder.path}/disk. Mount the disk or make the folder.`,
    );
    symlinkSync("round.db", join(folder.path, "round.db"));
    expect(await openStoreAt(join(folder.path, "round.db")).catch(String)).toContain("is a link that leads nowhere");
    expect(existsSync(join(folder.path, "disk"))).toBe(false);
  });
});

/** Whatever opens a file, by its name; a copy is made in the folder. */
const USES: readonly ((name: string, folder: string) => Promise<unknown>)[] = [
  openStoreAt,
  openTransferSource,
  (name) => openAdminStore(`file:${name}`, null),
  async (name, folder) => copyDatabase(name, join(folder, "copy.db")),
];

test("a folder in place of the file is named by whatever opens it", async () => {
  await using folder = await temporaryFolder();
  for (const use of USES) {
    expect(await use(folder.path, folder.path).catch(String)).toBe(
      `Error: The database ${folder.path} is a folder. Set DATABASE_URL to a file in it, such as file:${folder.path}/outgate.db.`,
    );
  }
});

test("a file with two hard links is refused by whatever opens it, as it is", async () => {
  await using folder = await temporaryFolder();
  const [path, second] = [folder.file, join(folder.path, "second.db")];
  await (await openStoreAt(path)).close();
  const before = readFileSync(path);
  linkSync(path, second);
  for (const name of [path, second]) {
    for (const use of USES) {
      expect(await use(name, folder.path).catch(String)).toBe(
        `Error: The file of the database ${name} has 2 names (hard links). SQLite keeps a log for each, so that what is written under one name is missing under the other. Stop what uses the file, delete the other names, and keep the one that has a log (-wal) beside it, if there is one. \`find <folder> -samefile ${name}\` lists them.`,
      );
    }
  }
  expect(Buffer.compare(readFileSync(path), before)).toBe(0);
  expect(existsSync(join(folder.path, "copy.db"))).toBe(false);
  rmSync(second);
  await (await openStoreAt(path)).close();
});
