import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { openFile } from "../../db/libsql/file.ts";
import { TRANSFER_TABLES } from "../../db/transfer/source.ts";
import { migrateToPostgres } from "../../src/admin/migrate.ts";
import { readConfig } from "../../src/config/config.ts";
import { fillDatabase, refusalOf } from "../key-files.ts";
import { TcpProxy } from "../support/cluster/tcp-proxy.ts";
import { NOON } from "../support/factory.ts";
import { createDatabase, hasPostgres } from "../support/postgres.ts";
import { temporaryFolder } from "../support/store.ts";

type OnProgress = Parameters<typeof migrateToPostgres>[2]["onProgress"];

function run(
  folder: string,
  to: string,
  env: Readonly<Record<string, string>> = {},
  onProgress: OnProgress = () => {},
) {
  const kinds: string[] = [];
  const config = readConfig({ DATABASE_URL: `file:${folder}/outgate.db`, ...env });
  const deps = { clock: { now: () => NOON }, onStart: ({ kind }: { kind: string }) => kinds.push(kind), onProgress };
  return migrateToPostgres(config, to, deps).then((migrated) => ({ ...migrated, kinds }));
}

const NOWHERE = "postgres://me:canary@127.0.0.1:1/outgate";

describe("a migration", () => {
  test("needs a file, and the master key that it is sealed under", async () => {
    await using folder = await temporaryFolder();
    await fillDatabase(folder.path, 1);
    const remote = { DATABASE_URL: "libsql://db.example.com", SECRET_KEY: randomBytes(32).toString("hex") };
    expect(await refusalOf(run(folder.path, NOWHERE, remote))).toContain("This migrates a database file");
    expect(await refusalOf(run(folder.path, NOWHERE, { SECRET_KEY: randomBytes(32).toString("hex") }))).toContain(
      "The master key is not the one that this database is sealed under",
    );
    const sql = openFile(join(folder.path, "outgate.db"));
    await sql.batch([{ sql: "INSERT INTO facts (name, value) VALUES ('next-master-key', 'x')", args: [] }]);
    await sql.close();
    expect(await refusalOf(run(folder.path, NOWHERE))).toContain("A change of the master key was interrupted");
  });

  test.each([
    ["", "--to takes the address of a PostgreSQL database"],
    ["https://host/name", "--to takes the address of a PostgreSQL database"],
    ["postgres:name", "--to takes the address of a PostgreSQL database"],
    ["postgres://host/", "The address behind --to names no database"],
    ["postgres://me:canary/7@host/name", "The address behind --to is no address of a store: characters like"],
  ])("doesn't take %j for PostgreSQL", async (to, message) => {
    await using folder = await temporaryFolder();
    const refused = await refusalOf(run(folder.path, to));
    expect(refused).toContain(message);
    expect(refused).not.toContain("canary");
  });
});

describe.skipIf(!hasPostgres)("a migration to PostgreSQL", () => {
  test("names a database or user that is not there, and never the password", async () => {
    await using folder = await temporaryFolder();
    await fillDatabase(folder.path, 1);
    const url = new URL(await createDatabase());
    url.pathname = "/nothing";
    const { host } = url;
    expect(await refusalOf(run(folder.path, url.href))).toBe(
      `PostgreSQL at ${host}/nothing has no such database: create it first. What was copied is kept: run the same command again, and it continues.`,
    );
    url.password = "canary";
    const refused = await refusalOf(run(folder.path, url.href));
    expect(refused).toStartWith(`PostgreSQL at ${host}/nothing refuses the user or the password.`);
    expect(refused).not.toContain("canary");
  });

  test("that loses its connection says so, and the next run goes on", async () => {
    await using folder = await temporaryFolder();
    const sight = await fillDatabase(folder.path, 1_200);
    const url = new URL(await createDatabase());
    await using proxy = await TcpProxy.start(Number(url.port));
    url.port = String(proxy.port);
    const cut: OnProgress = ({ table, phase }) => {
      if (table === "actions" && phase === "copied") proxy.moveTo(null);
    };
    const lost = await refusalOf(run(folder.path, url.href, {}, cut));
    expect(lost).toMatch(
      /^PostgreSQL at \S+ (doesn't answer any more|can't be used \(E[A-Z]+\))\. What was copied is kept/,
    );
    proxy.moveTo(Number(new URL(await createDatabase()).port));
    const { tables, kinds, keyFile } = await run(folder.path, url.href);
    expect(kinds).toEqual(["resumed"]);
    expect(tables.map(({ name }) => name)).toEqual(TRANSFER_TABLES.map(({ name }) => name));
    expect(tables.find(({ name }) => name === "actions")?.rows).toBe(sight.headers.length);
    expect(keyFile).toBe(`${folder.path}/outgate.db.key`);
  });
});
