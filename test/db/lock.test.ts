import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseInUse, lockFile } from "../../db/libsql/inspect.ts";
import { ACCOUNT, aCreation } from "../support/factory.ts";
import { openStoreAt, temporaryFolder } from "../support/store.ts";
import { startChild } from "./processes.ts";

test("a second process on one file is refused within a second, and says why", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "outgate.db");
  const startedMs = performance.now();
  await using first = startChild("hold", path);
  expect(await first.line()).toBe("open");

  const openMs = performance.now();
  await using second = startChild("hold", path);
  expect(await second.exited).toBe(1);
  // Beside what a process takes here to start at all.
  expect(performance.now() - openMs).toBeLessThan(1_000 + 3 * (openMs - startedMs));
  expect(await second.errors()).toBe(
    `DatabaseInUse: Another Outgate has the database ${path} open. Stop it, or set DATABASE_URL to another file.\n`,
  );
  expect(first.isRunning).toBe(true);
});

test("a process that is killed lets the file go at once", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "outgate.db");
  await using first = startChild("hold", path);
  await first.line();
  expect(() => lockFile(path)).toThrow(DatabaseInUse);
  await first.kill();
  const store = await openStoreAt(path);
  await store.close();
});

test("a store that is closed lets the file go, and holds no file open that another process would miss", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "outgate.db");
  const store = await openStoreAt(path);
  const { action, ...rest } = aCreation();
  await store.actions.create({ action, ...rest });
  await store.close();
  // What the log held is in the file: a copy of it alone is a whole backup.
  if (existsSync(`${path}-wal`)) expect(Bun.file(`${path}-wal`).size).toBe(0);
  await using next = startChild("hold", path);
  expect(await next.line()).toBe("open");
});

test("a start that fails lets the file go", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "outgate.db");
  await Bun.write(path, "no database at all ".repeat(100));
  expect(await openStoreAt(path).then(Boolean, () => "refused")).toBe("refused");
  lockFile(path)();
});

test("an acknowledged create survives kill -9, again and again", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "outgate.db");
  const acknowledged: string[] = [];
  for (const count of [1, 30, 90]) {
    await using child = startChild("create", path);
    for (let line = 0; line < count; line += 1) acknowledged.push(await child.line());
    await child.kill();
    acknowledged.push(...(await child.rest()));
  }
  const store = await openStoreAt(path);
  const found = await Promise.all(acknowledged.map((id) => store.actions.find(ACCOUNT, id)));
  expect(acknowledged.filter((_, at) => found[at] === null)).toEqual([]);
  const timelines = await Promise.all(acknowledged.map((id) => store.actions.timeline(ACCOUNT, id)));
  expect(new Set(timelines.map((entries) => entries.length))).toEqual(new Set([1]));
  await store.close();
});
