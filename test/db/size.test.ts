import { createPrune } from "../../src/app/housekeeping.ts";
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { copyDatabase } from "../../db/backup.ts";
import type { Store } from "../../src/core/store.ts";
import { SIZE_SAMPLE_ROWS } from "../../src/core/limits.ts";
import { slowness } from "../support/core.ts";
import { ACCOUNT, aCreation, anAction, creationOf, later, NOON } from "../support/factory.ts";
import { openStoreAt, temporaryFolder } from "../support/store.ts";
import { maxGapMs } from "./event-loop.ts";

const DAY_MS = 86_400_000;

const BODY = JSON.stringify({ a: "x".repeat(4_000) });

/** Finished actions of some age, and held ones. */
async function fill(store: Store, counts: { readonly old: number; readonly young: number; readonly held: number }) {
  const finished = (ageMs: number) => {
    const at = later(-ageMs);
    return anAction({ status: "completed", dueAt: null, createdAt: at, finishedAt: at, body: BODY });
  };
  const times = (count: number, make: () => ReturnType<typeof anAction>) => Array.from({ length: count }, make);
  const actions = [
    ...times(counts.old, () => finished(40 * DAY_MS)),
    ...times(counts.young, () => finished(DAY_MS)),
    ...times(counts.held, () => anAction({ status: "awaiting_approval", approve: true, dueAt: null, body: BODY })),
  ];
  for (let at = 0; at < actions.length; at += 500) {
    await Promise.all(actions.slice(at, at + 500).map((action) => store.actions.create(creationOf(action))));
  }
}

/** Retention of 30 days, whose pauses are a turn of the loop. */
function pruneOf({ upkeep, file }: Store) {
  const after = (_delayMs: number, run: () => void) => {
    setImmediate(run);
    return () => {};
  };
  const prune = createPrune(upkeep, file, { log: { info: () => {} }, clock: { after } }, 30);
  return () => prune(NOON, new AbortController().signal);
}

const pragma = (path: string, name: string) => {
  const file = new Database(path, { readonly: true });
  const [[value] = []] = file.query(`PRAGMA ${name}`).values();
  file.close();
  return value;
};

test("a new file gets smaller when retention has deleted much, while others write and read", async () => {
  await using folder = await temporaryFolder();
  const store = await openStoreAt(folder.file);
  await fill(store, { old: 4_000, young: 500, held: 0 });
  const before = await store.file?.size(later(-30 * DAY_MS));
  let isOver = false;
  let created = 0;
  const client = async () => {
    while (!isOver) {
      const { action, ...rest } = aCreation();
      await store.actions.create({ action, ...rest });
      expect((await store.actions.find(ACCOUNT, action.id))?.id).toBe(action.id);
      created += 1;
    }
  };
  const clients = client();
  const idleGapMs = await maxGapMs(() => Bun.sleep(200));
  const gapMs = await maxGapMs(pruneOf(store));
  isOver = true;
  await clients;
  const after = await store.file?.size(later(-30 * DAY_MS));
  await store.close();
  expect(created).toBeGreaterThan(10);
  expect(after?.canShrink).toBe(true);
  expect(after?.bytes).toBeLessThan((before?.bytes ?? 0) / 2);
  // What is free is kept for the next rows: a few megabytes, or a tenth.
  expect(after?.freeBytes).toBeLessThan(8_000_000);
  expect(statSync(folder.file).size).toBe(after?.bytes ?? 0);
  expect(pragma(folder.file, "integrity_check")).toBe("ok");
  expect(gapMs).toBeLessThan(Math.max(300 * slowness(), 4 * idleGapMs));
});

test("a file of version 0.1 stays as large, and a backup of it can get smaller", async () => {
  await using folder = await temporaryFolder();
  await (await openStoreAt(folder.file)).close();
  const old = new Database(folder.file);
  old.run("PRAGMA journal_mode = DELETE");
  old.run("PRAGMA auto_vacuum = NONE");
  old.run("VACUUM");
  old.close();
  const store = await openStoreAt(folder.file);
  await fill(store, { old: 2_000, young: 0, held: 0 });
  const before = await store.file?.size(NOON);
  await pruneOf(store)();
  const after = await store.file?.size(NOON);
  expect(after).toMatchObject({ canShrink: false, bytes: before?.bytes });
  expect(after?.freeBytes).toBeGreaterThan((before?.bytes ?? 0) / 2);
  const copy = join(folder.path, "copy.db");
  copyDatabase(folder.file, copy);
  await store.close();
  const restored = await openStoreAt(copy);
  expect((await restored.file?.size(NOON))?.canShrink).toBe(true);
  await restored.close();
  // Copies of copies too.
  copyDatabase(copy, join(folder.path, "second.db"));
  expect(pragma(join(folder.path, "second.db"), "auto_vacuum")).toBe(2);
});

test.each([
  ["all", { old: 300, young: 0, held: 0 }, 1],
  ["none", { old: 0, young: 200, held: 100 }, 0],
  ["a third", { old: 200, young: 300, held: 100 }, 1 / 3],
  ["two thirds, of more than are looked at", { old: 2 * SIZE_SAMPLE_ROWS, young: SIZE_SAMPLE_ROWS, held: 0 }, 2 / 3],
])("what retention would free is estimated: %s of the actions", async (_, counts, part) => {
  await using folder = await temporaryFolder();
  const store = await openStoreAt(folder.file);
  await fill(store, counts);
  const size = await store.file?.size(later(-30 * DAY_MS));
  await store.close();
  expect((size?.deletableBytes ?? 0) / ((size?.bytes ?? 0) - (size?.freeBytes ?? 0))).toBeCloseTo(part, 1);
});

test("the size of an empty database is read, and nothing would be freed", async () => {
  await using folder = await temporaryFolder();
  const store = await openStoreAt(folder.file);
  expect(await store.file?.size(NOON)).toMatchObject({ deletableBytes: 0, canShrink: true });
  await store.close();
});
