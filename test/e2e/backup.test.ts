import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { Database } from "bun:sqlite";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Service } from "../support/service.ts";
import { sharedFolder } from "../support/shared.ts";
import { temporaryFolder } from "../support/store.ts";
import { openGuideShell } from "./guide-shell.ts";

const ROOT = join(import.meta.dir, "../..");

/** Several processes one after the other, on a machine that does other things too. */
setDefaultTimeout(60_000);

/** A command of the docs, as a shell runs it in a folder. */
const shell = (folder: string, script: string, env: Readonly<Record<string, string>> = {}) =>
  openGuideShell({ folder }, "")(script, env);

/** A service that has begun in a folder, and ended in order. */
async function stoppedService(folder: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  await using service = new Service({ folder, env });
  await service.ready();
  await service.end();
}

/** The code blocks of a section of docs/operations.md. */
async function blocksOf(heading: string): Promise<readonly string[]> {
  const page = await Bun.file(join(ROOT, "docs/operations.md")).text();
  const section = page.split(/^## /m).find((part) => part.startsWith(`${heading}\n`)) ?? "";
  return [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, block]) => block ?? "");
}

describe("a backup by the commands of docs/operations.md", () => {
  test("of a running service holds everything that was acknowledged before it, and is restored", async () => {
    const [backUp = "", restore = "", look = ""] = await blocksOf("Back up and restore");
    expect(backUp).toContain("npm run outgate -- backup");
    await using folder = await temporaryFolder();
    const acknowledged: unknown[] = [];
    {
      await using service = new Service({ folder: folder.path, env: { RATE_LIMIT_PER_SECOND: "0" } });
      await service.ready();
      let isOver = false;
      const create = async () => {
        const held = {
          url: "http://127.0.0.1:9/",
          approve: true,
          headers: { "X-Secret": "canary-4711" },
          body: { n: 1 },
        };
        acknowledged.push((await service.create(held))["id"]);
      };
      // The service is written to all the time.
      const clients = Array.from({ length: 4 }, async () => {
        while (!isOver) await create();
      });
      for (let n = 0; n < 10; n += 1) await create();
      const before = acknowledged.length;
      const done = await shell(folder.path, backUp);
      expect({ ...done, output: done.output.split("\n") }).toEqual({
        code: 0,
        output: ["backups/monday/outgate.db", "backups/monday/outgate.db.key", ""],
        errors: "",
      });
      isOver = true;
      await Promise.all(clients);
      acknowledged.splice(before);
      expect(await service.end()).toBe(0);
    }
    const copies = join(folder.path, "backups/monday");
    const modes = [copies, ...readdirSync(copies).map((name) => join(copies, name))].map((path) => statSync(path).mode);
    expect(modes.map((mode) => mode & 0o077)).toEqual([0, 0, 0]);

    expect((await shell(folder.path, look)).output).toMatch(/^ok +database .+monday[^]*^ok +master key/m);
    expect(await shell(folder.path, restore)).toMatchObject({ code: 0, errors: "" });
    rmSync(join(folder.path, "data.before"), { recursive: true });
    await using restored = new Service({ folder: folder.path });
    for (const id of acknowledged) {
      const action = (await (await restored.request(`/v1/actions/${String(id)}`)).json()) as Record<string, unknown>;
      expect(action).toMatchObject({ id, status: "awaiting_approval", headers: { "X-Secret": "canary-4711" } });
    }
  });

  test("of a stopped service under SECRET_KEY holds the database alone, and says so", async () => {
    await using folder = await temporaryFolder();
    const env = { SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
    await stoppedService(folder.path, env);
    const done = await shell(folder.path, "outgate backup b", env);
    expect(done).toMatchObject({ code: 0, errors: "" });
    expect(done.output).toContain("The key is the setting SECRET_KEY");
    expect(done.output).not.toContain(env.SECRET_KEY);
    expect(readdirSync(join(folder.path, "b"))).toEqual(["outgate.db"]);
  });
});

describe("a backup that is killed", () => {
  test("has its database only once it is complete, with its key", async () => {
    await using folder = await temporaryFolder();
    await stoppedService(folder.path);
    const large = new Database(join(folder.path, "data/outgate.db"));
    large.run("CREATE TABLE large AS SELECT randomblob(33554432) AS bytes");
    large.close();
    const to = join(folder.path, "b");
    const copy = join(to, "outgate.db");
    const command = openGuideShell({ folder: folder.path }, "")("exec outgate backup b", {});
    while (!existsSync(copy)) await Bun.sleep(1);
    // What a kill at this moment would leave.
    const names = readdirSync(to);
    const database = new Database(copy, { readonly: true });
    const found = database.query("PRAGMA quick_check(1)").values();
    database.close();
    expect({ names: names.filter((name) => !name.endsWith(".unfinished")).toSorted(), found }).toEqual({
      names: ["outgate.db", "outgate.db.key"],
      found: [["ok"]],
    });
    expect(await command).toMatchObject({ code: 0, errors: "" });
    expect(readdirSync(to).toSorted()).toEqual(["outgate.db", "outgate.db.key"]);
  });

  test("leaves a folder into which no other is written", async () => {
    await using folder = await temporaryFolder();
    await stoppedService(folder.path);
    mkdirSync(join(folder.path, "b/outgate.db.unfinished"), { recursive: true });
    const refused = await shell(folder.path, "outgate backup b");
    expect(refused.code).not.toBe(0);
    expect(refused.errors).toContain("Another backup to b is running or was interrupted");
    expect(readdirSync(join(folder.path, "b"))).toEqual(["outgate.db.unfinished"]);
  });
});

describe("a backup is refused", () => {
  const SECRET_KEY = Buffer.alloc(32, 1).toString("base64");
  /** What was left by a service and by a backup of it; each test has a copy. */
  const backedUp = sharedFolder();
  beforeAll(async () => {
    {
      await using service = new Service({ folder: backedUp });
      for (let n = 0; n < 20; n += 1) {
        await service.create({ url: "http://127.0.0.1:9/", approve: true, body: { n } });
      }
      await service.end();
    }
    expect((await shell(backedUp, "outgate backup b")).code).toBe(0);
  });
  const damaged = (path: string) => writeFileSync(path, readFileSync(path).fill(0x5a, 4_096));

  test.each([
    ["over another one", "outgate backup b", "There is a file b/outgate.db already", () => {}, {}],
    ["of no database", "outgate backup c", "There is no database", () => {}, { DATABASE_URL: "file:./nothing/x.db" }],
    ["under a wrong key", "outgate backup c", "The master key is not the one", () => {}, { SECRET_KEY }],
    [
      "of a database on another machine",
      "outgate backup c",
      "on another machine",
      () => {},
      { DATABASE_URL: "libsql://a.example", SECRET_KEY },
    ],
    ["without its key file", "outgate backup c", "is missing", (data: string) => rmSync(`${data}/outgate.db.key`), {}],
    ["of a damaged one", "outgate backup c", "outgate.db", (data: string) => damaged(`${data}/outgate.db`), {}],
  ] as const)("%s, and leaves nothing", async (...[, command, sentence, damage, env]) => {
    await using folder = await temporaryFolder();
    cpSync(backedUp, folder.path, { recursive: true });
    const first = readFileSync(join(folder.path, "b/outgate.db"));
    damage(join(folder.path, "data"));
    const refused = await shell(folder.path, command, env);
    expect(refused.code).not.toBe(0);
    expect(refused.errors).toContain(sentence);
    expect(refused.output).toBe("");
    expect(existsSync(join(folder.path, "c")) ? readdirSync(join(folder.path, "c")) : []).toEqual([]);
    expect(Buffer.compare(first, readFileSync(join(folder.path, "b/outgate.db")))).toBe(0);
  });
});
