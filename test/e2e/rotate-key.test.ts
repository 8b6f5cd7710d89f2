import { readKey } from "../../src/config/values.ts";
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { masterKeyId, readNextKey } from "../../src/crypto/master-key.ts";
import { bytesOfDatabase, fillDatabase, readThroughKey } from "../key-files.ts";
import { saidBy, start } from "../cli/outgate.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { openStoreAt, temporaryFolder } from "../support/store.ts";

/** A start costs a second where others run too; then it is left alone to come to its end. */
const KILLS_MAX = process.env["LONG_TESTS"] === undefined ? 4 : 12;

/** Enough for eight commits. */
const ACTIONS = 1_600;

/** The command as a person runs it on the server's machine. */
const rotate = (folder: string) =>
  start(["rotate-secret-key"], { folder, env: { DATABASE_URL: `file:${folder}/outgate.db` } });

test("the command changes the key of a service's database, and says where the old one is kept", async () => {
  await using folder = await temporaryFolder();
  const env = { DATABASE_URL: `file:${folder.path}/outgate.db` };
  const receipt = await (async () => {
    await using service = new Service({ folder: folder.path, env });
    const action = await service.create({
      url: "http://127.0.0.1:9/",
      approve: true,
      headers: { "X-A": "canary-4711" },
    });
    const running = await saidBy(rotate(folder.path));
    expect(running).toMatchObject({ code: 1, err: expect.stringContaining("Another Outgate has the database") });
    expect(await service.end()).toBe(0);
    return action["receipt_url"];
  })();
  const { code, out: told } = await saidBy(rotate(folder.path));
  expect(code).toBe(0);
  expect(told).toMatch(
    /^Everything is encrypted with the new master key [0-9a-f]{8} \(values encrypted in this run: 2\)\.\n/,
  );
  const kept = /kept in (\S+):/.exec(told)?.[1] ?? "";
  expect(existsSync(kept)).toBe(true);
  // Nothing that the command prints is a key.
  for (const name of readdirSync(folder.path).filter((file) => file.includes(".key"))) {
    expect(told).not.toContain(readFileSync(join(folder.path, name), "latin1").trim());
  }
  await using again = new Service({ folder: folder.path, env });
  const [action] = ((await (await again.request("/v1/actions", { key: OWNER_KEY })).json()) as { data: unknown[] })
    .data;
  expect(action).toMatchObject({ receipt_url: receipt, headers: { "X-A": "canary-4711" } });
}, 60_000);

test("stopped by the loss of its log and killed over and over, it says so and is brought to its end with nothing lost, and the old key opens nothing more", async () => {
  await using folder = await temporaryFolder();
  const before = await fillDatabase(folder.path, ACTIONS);
  const keyFile = join(folder.path, "outgate.db.key");
  const oldId = masterKeyId(readKey(readFileSync(keyFile, "latin1").trim()) ?? new Uint8Array());
  const lost = rotate(folder.path);
  await commits(folder.path, 2, () => lost.exitCode === null);
  rmSync(join(folder.path, "outgate.db-wal"));
  const said = { code: 1, err: expect.stringMatching(/-wal was deleted, .* run this again/) };
  expect(await saidBy(lost)).toMatchObject(said);
  const stopped = new Set<number>();
  let kills = 0;
  for (let isDone = false; !isDone;) {
    const command = rotate(folder.path);
    // After its second commit, its third and so on, and in the middle of the one that follows.
    if (kills < KILLS_MAX) {
      await commits(folder.path, 2 + (kills % 4), () => command.exitCode === null);
      command.kill("SIGKILL");
    }
    isDone = (await command.exited) === 0;
    if (!isDone) kills += 1;
    stopped.add(await stateOf(folder.path));
  }
  console.log(`rotate-key: killed ${kills} times, at ${stopped.size} different points`);
  expect(stopped.size).toBeGreaterThan(1);
  expect(await readThroughKey(folder.path)).toEqual(before);
  expect(bytesOfDatabase(folder.path).split(`${oldId}.`)).toHaveLength(1);
  expect(existsSync(`${keyFile}.next`)).toBe(false);
  expect(existsSync(`${keyFile}.${oldId}`)).toBe(true);
}, 120_000);

/** Resolves when the log of the database has changed so often, or nobody is there any more who would change it. */
async function commits(folder: string, count: number, goesOn: () => boolean): Promise<void> {
  const changed = () => statSync(join(folder, "outgate.db-wal"), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  for (let seen = 0, last = changed(); seen < count && goesOn();) {
    await Bun.sleep(0);
    if (changed() === last) continue;
    last = changed();
    seen += 1;
  }
}

/** How many texts are still sealed under a key that is not the next one. */
async function stateOf(folder: string): Promise<number> {
  const keyFile = join(folder, "outgate.db.key");
  const next = readNextKey(keyFile);
  const store = await openStoreAt(join(folder, "outgate.db"));
  const left = next === null ? [] : await store.sealed.find(masterKeyId(next), null, 100_000);
  await store.close();
  return left.length;
}
