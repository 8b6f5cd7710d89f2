import { expect, test } from "bun:test";
import { readFileSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Service } from "../support/service.ts";
import { temporaryFolder } from "../support/store.ts";

test.each([
  ["outgate.db", (path: string) => truncateSync(path, 5_000), "/data/outgate.db can't be read"],
  ["outgate.db", (path: string) => writeFileSync(path, readFileSync(path).fill(0x5a, 100, 9_000)), "can't be read"],
  ["outgate.db.key", (path: string) => truncateSync(path, 11), "The key file ./data/outgate.db.key is broken"],
] as const)("a damaged %s ends the start with one sentence, and stays as it is", async (name, damage, sentence) => {
  await using folder = await temporaryFolder();
  {
    await using first = new Service({ folder: folder.path });
    await first.create({ url: "http://127.0.0.1:9/", approve: true });
    await first.end();
  }
  const path = join(folder.path, "data", name);
  damage(path);
  const damaged = readFileSync(path);
  await using second = new Service({ folder: folder.path });
  expect(await second.process.exited).toBe(1);
  const complaint = await second.complaint();
  expect(complaint).toStartWith("Outgate can't start. ");
  expect(complaint).toContain(sentence);
  // No stack, no library's words.
  expect(complaint.trim().split("\n")).toHaveLength(1);
  expect(Buffer.compare(readFileSync(path), damaged)).toBe(0);
});
