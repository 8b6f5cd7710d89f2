import { beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import { isWellFormedApiKey } from "../support/api-key.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { newFolders, shared } from "../support/shared.ts";
import { outgateAlone } from "./outgate.ts";
import { runStatements } from "../../db/commands/command.ts";

setDefaultTimeout(60_000);

const PASSWORD = "correct horse battery staple";

/** Runs the command as somebody on the server's machine does, in the folder of the service. */
const outgate = (folder: string, ...args: string[]) =>
  outgateAlone(args, { folder, env: { BASE_URL: "http://outgate.test" } });

/** Sends a form as a page at this address does. */
async function send(service: Service, path: string, fields: Readonly<Record<string, string>>) {
  const origin = await service.ready();
  const init = { method: "POST", headers: { origin }, body: new URLSearchParams(fields), redirect: "manual" } as const;
  return (await fetch(origin + path, init)).status;
}

const signUp = (email: string) =>
  service.request("/auth/signup", { method: "POST", body: JSON.stringify({ email, password: PASSWORD }) });

const pathIn = (out: string) => /^http:\/\/outgate\.test(\/welcome\/[0-9a-f]{64})\n$/.exec(out)?.[1] ?? "";

const service = await shared(new Service({ env: { RATE_LIMIT_PER_SECOND: "0" } }));
await service.ready();

describe("while the service runs", () => {
  test("backup names the folder that it can't make", async () => {
    const { code, err } = await outgate(service.folder, "backup", "data/outgate.db/monday");
    expect({ code, err }).toEqual({
      code: 1,
      err: "The folder data/outgate.db/monday can't be made (ENOTDIR). Choose another one.\n",
    });
  });

  test("welcome-link prints a link that works at once and voids the one before, until somebody has taken it", async () => {
    const first = await outgate(service.folder, "welcome-link");
    expect({ code: first.code, err: first.err }).toEqual({ code: 0, err: expect.stringContaining("works once") });
    const second = await outgate(service.folder, "welcome-link");
    const ann = { email: "ann@example.com", password: PASSWORD };
    expect(await send(service, pathIn(first.out), ann)).toBe(404);
    expect(await send(service, pathIn(second.out), ann)).toBe(303);
    const third = await outgate(service.folder, "welcome-link");
    expect({ code: third.code, out: third.out }).toEqual({ code: 1, out: "" });
    expect(third.err).toContain("outgate reset-password <email>");
  });

  test("reset-password prints a link that lets its person choose a new one", async () => {
    await signUp("bob@example.com");
    const { out, code } = await outgate(service.folder, "reset-password", "Bob@Example.com");
    expect(code).toBe(0);
    expect(await send(service, pathIn(out), { email: "bob@example.com", password: "another password" })).toBe(303);
    expect(await send(service, "/auth/login", { email: "bob@example.com", password: "another password" })).toBe(303);
  });

  test("new-owner-key prints a key of the first account that works at once, and the others go on", async () => {
    const { out, err, code } = await outgate(service.folder, "new-owner-key");
    expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining("outgate keys revoke <id>") });
    const key = out.trim();
    expect(isWellFormedApiKey(key)).toBe(true);
    const accountOf = async (asking: string) => {
      const { id, key: shown } = (await (await service.request("/v1/account", { key: asking })).json()) as {
        id: string;
        key: { role: string };
      };
      return { id, role: shown.role };
    };
    expect(await accountOf(key)).toEqual({ ...(await accountOf(OWNER_KEY)), role: "owner" });
  });

  test("new-owner-key with an address prints one of that person's account", async () => {
    const signedUp = await signUp("carl@example.com");
    const { account } = (await signedUp.json()) as { account: { id: string } };
    const { out } = await outgate(service.folder, "new-owner-key", "CARL@example.com");
    const answer = await service.request("/v1/account", { key: out.trim() });
    expect(await answer.json()).toMatchObject({ id: account.id, email: "carl@example.com" });
  });

  test("says whose address nobody has, and how it is called", async () => {
    for (const [args, code, complaint] of [
      [["reset-password", "nobody@example.com"], 1, "No person has the address nobody@example.com."],
      [["new-owner-key", "nobody@example.com"], 1, "No person has the address nobody@example.com."],
      [["reset-password"], 2, "Usage: outgate reset-password <email>"],
      [["welcome-link", "now"], 2, "welcome-link takes no arguments."],
    ] as const) {
      const said = await outgate(service.folder, ...args);
      expect({ code: said.code, out: said.out }, JSON.stringify(args)).toEqual({ code, out: "" });
      expect(said.err).toContain(complaint);
    }
  });

  test("under load nothing that was acknowledged is lost, and both get through", async () => {
    let isOver = false;
    const ids: string[] = [];
    const creator = async () => {
      while (!isOver) {
        ids.push(String((await service.create({ url: "http://127.0.0.1:9/", approve: true }))["id"]));
      }
    };
    const creating = [creator(), creator(), creator()];
    const commands = await Promise.all([1, 2, 3].map(() => outgate(service.folder, "new-owner-key")));
    isOver = true;
    await Promise.all(creating);
    expect(commands.map(({ code }) => code)).toEqual([0, 0, 0]);
    for (const id of ids) expect((await service.request(`/v1/actions/${id}`)).status).toBe(200);
    console.log(`commands beside the service: ${ids.length} creates meanwhile`);
    for (const { out } of commands) expect((await service.request("/v1/keys", { key: out.trim() })).status).toBe(200);
  });
});

const newFolder = newFolders();

describe("while the service is stopped", () => {
  let folder: string;
  beforeEach(() => {
    folder = newFolder();
  });

  test("there is nothing to open before its first start, and nothing is made", async () => {
    const { code, err } = await outgate(folder, "welcome-link");
    expect([code, err]).toEqual([1, expect.stringContaining("There is no database ./data/outgate.db.")]);
    expect(existsSync(join(folder, "data"))).toBe(false);
  });

  test("the commands work on its database, leave no log behind, and the next start knows of it", async () => {
    await using first = new Service({ folder });
    await first.ready();
    await first.end();
    const files = readdirSync(join(folder, "data")).toSorted();
    const { out } = await outgate(folder, "new-owner-key");
    expect(readdirSync(join(folder, "data")).toSorted()).toEqual(files);
    await using second = new Service({ folder });
    expect((await second.request("/v1/keys", { key: out.trim() })).status).toBe(200);
    await second.end();
  });

  test("a database of another version is left as it is", async () => {
    await using stopped = new Service({ folder });
    await stopped.ready();
    await stopped.end();
    const path = join(folder, "data/outgate.db");
    const change = async (sql: string) => {
      const file = openFile(path);
      await runStatements(file, [{ sql, args: [] }]);
      await file.close();
    };
    await change("INSERT INTO migrations (name, ran_at) VALUES ('0099-later', 0)");
    const newer = await outgate(folder, "new-owner-key");
    expect({ code: newer.code, out: newer.out }).toEqual({ code: 1, out: "" });
    expect(newer.err).toContain("newer version of Outgate (0099-later). Start that version.");
    await change("DELETE FROM migrations");
    const older = await outgate(folder, "new-owner-key");
    expect({ code: older.code, out: older.out }).toEqual({ code: 1, out: "" });
    expect(older.err).toContain("Start this version once.");
  });

  test("a file that is no database is not written", async () => {
    await Bun.write(join(folder, "data/outgate.db"), "this is no database, whatever it is called ".repeat(100));
    const before = await Bun.file(join(folder, "data/outgate.db")).text();
    const { code, err } = await outgate(folder, "reset-password", "ann@example.com");
    expect({ code, isTold: err.includes("outgate.db") }).toEqual({ code: 1, isTold: true });
    expect(await Bun.file(join(folder, "data/outgate.db")).text()).toBe(before);
  });
});
