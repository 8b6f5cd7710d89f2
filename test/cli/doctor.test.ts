import { expect, test } from "bun:test";
import { Database } from "bun:sqlite";
import { chmodSync, existsSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { diagnose } from "../../src/cli/commands/doctor.ts";
import { readConfig, serverSettings } from "../../src/config/config.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { temporaryFolder } from "../support/store.ts";
import { fillDatabase } from "../key-files.ts";
import { outgate } from "./outgate.ts";
import { freePort } from "../support/free-port.ts";
import { shared } from "../support/shared.ts";

const service = await shared(new Service());
const url = await service.ready();
const { port } = new URL(url);

interface Report {
  readonly ok: boolean;
  readonly findings: readonly { readonly what: string; readonly state: string; readonly found: string }[];
}

async function examine(env: Readonly<Record<string, string>>) {
  const { code, out } = await outgate(["doctor", "--json"], { env });
  const report = JSON.parse(out) as Report;
  const found = (what: string) => report.findings.find((finding) => finding.what === what);
  return { code, out, report, found };
}

test("outgate doctor finds nothing wrong where nothing is", async () => {
  const { code, report, found } = await examine({ OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY });
  expect(report.findings.filter(({ state }) => state === "wrong")).toEqual([]);
  expect({ code, ok: report.ok }).toEqual({ code: 0, ok: true });
  expect(found("service")?.found).toMatch(/^Outgate [\d.]+ answers in \d+ ms$/);
  expect(found("key")?.found).toContain("owner");
  expect(found("settings")?.found).toBe("a service started here uses the defaults");
  const { out } = await outgate(["doctor"], { env: { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY } });
  expect(out).toMatch(/^ok +OUTGATE_URL/);
});

test("outgate doctor cuts no advice where the terminal is narrow", async () => {
  let said = "";
  const env = { OUTGATE_URL: `http://127.0.0.1:${await freePort()}`, OUTGATE_API_KEY: OWNER_KEY };
  await diagnose({ env, out: (text) => void (said += text), err: () => {}, isTty: false, columns: 40 }, {});
  expect(said).toContain("or set OUTGATE_URL to its address.");
});

test("outgate doctor shows the size of the database file, also while a service uses it, and what retention would free", async () => {
  const path = join(service.folder, "data/outgate.db");
  const env = { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY, DATABASE_URL: `file:${path}` };
  const { code, found } = await examine(env);
  expect(code).toBe(0);
  expect(found("database")?.found.replace(/[\d.]+ (kB|bytes)/g, "so much")).toMatch(
    /outgate\.db has so much(, of which so much are free for the next rows)?\. Retention would free: Nothing yet \(RETENTION_DAYS=30, which is not set\)\.$/,
  );
  expect(found("database")?.found).not.toContain(" 0 bytes");
  const server = (await (await service.request("/v1/server")).json()) as object;
  expect(server).toMatchObject({ database: { can_shrink: true, deletable_bytes: 0, deletable_days: 30 } });
  // By the real path, as the service: a link to it is the same file.
  const link = join(service.folder, "link.db");
  symlinkSync(path, link);
  expect((await examine({ ...env, DATABASE_URL: `file:${link}` })).found("database")?.state).toBe("ok");
  const broken = join(service.folder, "broken.db");
  writeFileSync(broken, "no database ".repeat(1_000));
  const refused = await examine({ ...env, DATABASE_URL: `file:${broken}` });
  expect(refused.found("database")).toMatchObject({ state: "wrong", found: expect.stringContaining("can't be read") });
  const none = await examine({ ...env, DATABASE_URL: `file:${join(service.folder, "none.db")}` });
  expect(none.found("database")).toBeUndefined();
  expect(existsSync(join(service.folder, "none.db"))).toBe(false);
});

test("outgate doctor writes nothing: not to an empty file, and not to a backup", async () => {
  const env = { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY };
  const empty = join(service.folder, "empty.db");
  writeFileSync(empty, "");
  expect((await examine({ ...env, DATABASE_URL: `file:${empty}` })).found("database")).toBeUndefined();
  expect(statSync(empty).size).toBe(0);
  const backup = join(service.folder, "backup.db");
  using database = new Database(join(service.folder, "data/outgate.db"), { readonly: true });
  database.run("VACUUM INTO ?", [backup]);
  const before = readFileSync(backup);
  expect((await examine({ ...env, DATABASE_URL: `file:${backup}` })).found("database")?.state).toBe("ok");
  expect(readFileSync(backup).equals(before)).toBe(true);
});

test("outgate doctor says with which master key no service could start", async () => {
  await using folder = await temporaryFolder();
  const path = join(folder.path, "outgate.db");
  await fillDatabase(folder.path, 1);
  const env = { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY, DATABASE_URL: `file:${path}` };
  const keyIs = async (more: Readonly<Record<string, string>> = {}) =>
    (await examine({ ...env, ...more })).found("master key");
  expect(await keyIs()).toMatchObject({ state: "ok" });
  chmodSync(`${path}.key`, 0o644);
  expect(await keyIs()).toMatchObject({ state: "note", found: expect.stringContaining("run chmod 600 on it") });
  const another = { state: "wrong", found: expect.stringContaining("Set SECRET_KEY to that key") };
  expect(await keyIs({ SECRET_KEY: "ab".repeat(32) })).toMatchObject(another);
  writeFileSync(`${path}.key`, `${"A".repeat(43)}=`);
  expect(await keyIs()).toMatchObject(another);
  rmSync(`${path}.key`);
  expect(await keyIs()).toMatchObject({ state: "wrong", found: expect.stringContaining("Put the file back") });
});

test("outgate doctor says why a database on another machine can't be used", async () => {
  const there = `postgres://outgate@127.0.0.1:${await freePort()}/outgate`;
  const env = { OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY, SECRET_KEY: "ab".repeat(32), DATABASE_URL: there };
  const { code, found } = await examine(env);
  expect(code).toBe(1);
  expect(found("database")).toEqual({
    what: "database",
    state: "wrong",
    found: "The database can't be used now: it could not be reached. Try again.",
  });
});

test("a command without OUTGATE_URL talks to the service at PORT of this machine", async () => {
  const env = { OUTGATE_API_KEY: OWNER_KEY, PORT: port };
  const { found } = await examine(env);
  expect(found("OUTGATE_URL")).toEqual({
    what: "OUTGATE_URL",
    state: "ok",
    found: `http://127.0.0.1:${port} (by PORT)`,
  });
  expect(found("service")?.state).toBe("ok");
  expect((await outgate(["list"], { env })).code).toBe(0);
  // A port that is no port, or any free one, names no address.
  for (const none of ["many", "0", "70000"]) {
    expect((await examine({ ...env, PORT: none })).found("OUTGATE_URL")?.found).toBe("http://127.0.0.1:3000 (default)");
  }
});

test("outgate doctor shows no secret of the settings, and all that is wrong with them", async () => {
  const secrets = serverSettings(readConfig({})).filter(({ isSecret }) => isSecret);
  const env = {
    OUTGATE_URL: url,
    OUTGATE_API_KEY: OWNER_KEY,
    ...Object.fromEntries(secrets.map(({ name }) => [name, `canary ${name}`])),
    PORT: "canary in the wrong line",
    LOG_LEVEL: "debug",
  };
  const { code, out, found } = await examine(env);
  expect(code).toBe(1);
  expect(out).not.toContain("canary");
  expect(out).not.toContain(OWNER_KEY);
  expect([found("PORT")?.found, found("LOG_LEVEL")?.found]).toEqual(["••••", "debug"]);
  for (const { name } of secrets) expect(found(name)?.found).toBe("••••");
  expect(found("settings")?.state).toBe("wrong");
  for (const name of ["PORT", "SECRET_KEY", "MAILGUN_DOMAIN"]) expect(found("settings")?.found).toContain(`${name} `);
});

test.each([
  ["no service", { OUTGATE_URL: "http://127.0.0.1:9" }, "service", "Start it with `npm start` or `outgate serve`"],
  ["no key", { OUTGATE_API_KEY: "" }, "OUTGATE_API_KEY", "set it to an API key"],
  ["a wrong key", { OUTGATE_API_KEY: "og_wrong_0123456789abcdefghij" }, "key", "mistyped, revoked"],
])("outgate doctor says what to do where there is %s", async (_what, env, what, advice) => {
  const { code, found } = await examine({ OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY, ...env });
  expect(code).toBe(1);
  expect(found(what)).toMatchObject({ state: "wrong", found: expect.stringContaining(advice) });
});

test.each([[[]], [["--ready"]]])("outgate health %p says yes of a service that runs, without a key", async (flags) => {
  const { code, out, err } = await outgate(["health", ...flags], { env: { PORT: port, HOST: "0.0.0.0" } });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^ok \d+\.\d+\.\d+\n$/);
});

test("outgate health says no, in one line, where nothing listens", async () => {
  const { code, out, err } = await outgate(["health"], { env: { PORT: "9" } });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("http://127.0.0.1:9");
});

test("outgate health --ready says no while the service can't store actions, and health says yes", async () => {
  using starting = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      const isReady = new URL(request.url).pathname !== "/ready";
      return Response.json(
        { status: isReady ? "ok" : "unavailable", version: "1.2.3" },
        { status: isReady ? 200 : 503 },
      );
    },
  });
  const env = { PORT: String(starting.port) };
  expect((await outgate(["health"], { env })).out).toBe("ok 1.2.3\n");
  expect((await outgate(["health", "--ready"], { env })).code).toBe(1);
});

test("outgate health refuses settings that no service could start with", async () => {
  const { code, err } = await outgate(["health"], { env: { PORT: "many" } });
  expect(code).toBe(1);
  expect(err).toContain("PORT is not a whole number");
});
