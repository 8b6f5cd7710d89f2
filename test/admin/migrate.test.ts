import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { openAdminStore } from "../../db/open.ts";
import { openFile } from "../../db/libsql/file.ts";
import { migrateToPostgres } from "../../src/admin/migrate.ts";
import { readConfig } from "../../src/config/config.ts";
import { fillDatabase, refusalOf } from "../key-files.ts";
import { NOON } from "../support/factory.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";
import { temporaryFolder } from "../support/store.ts";
import { runStatements } from "../../db/commands/command.ts";

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
    await runStatements(sql, [{ sql: "INSERT INTO facts (name, value) VALUES ('next-master-key', 'x')", args: [] }]);
    await sql.close();
    expect(await refusalOf(run(folder.path, NOWHERE))).toContain("A change of the master key was interrupted");
  });

  test.skipIf(!hasPostgres)(
    "keeps services and commands off the file, also if it was killed before it said so",
    async () => {
      await using folder = await temporaryFolder();
      await fillDatabase(folder.path, 1);
      const to = await createDatabase();
      try {
        const { mark } = await run(folder.path, to);
        expect(mark).toBe(join(folder.path, "outgate.db.migrated"));
        // A new owner key, or the end of a session, would be there alone.
        expect(await refusalOf(openAdminStore(`file:${folder.path}/outgate.db`, null))).toContain("was migrated to");
        rmSync(mark ?? "");
        expect(await refusalOf(run(folder.path, to))).toContain("was migrated to this PostgreSQL database before");
        expect(existsSync(mark ?? "")).toBe(true);
      } finally {
        await dropDatabase(to);
      }
    },
  );

  test.skipIf(!hasPostgres)("is not complete where a command has written to the file meanwhile", async () => {
    await using folder = await temporaryFolder();
    await fillDatabase(folder.path, 1);
    const to = await createDatabase();
    const command = new Database(join(folder.path, "outgate.db"));
    const write = () => void command.run("UPDATE accounts SET created_at = created_at + 1");
    expect(await refusalOf(run(folder.path, to, {}, write))).toContain("was changed while it was copied");
    command.close();
    expect(existsSync(join(folder.path, "outgate.db.migrated"))).toBe(false);
    await dropDatabase(to);
  });

  test.each([
    ["", "--to takes the address of a PostgreSQL database"],
    ["https://host/name", "--to takes the address of a PostgreSQL database"],
    ["postgres:name", "--to takes the address of a PostgreSQL database"],
    ["postgres://host/", "The address behind --to names no database"],
    ["postgres://me:canary/7@host/name", "The address behind --to is not the address of a database: characters like"],
  ])("doesn't take %j for PostgreSQL", async (to, message) => {
    await using folder = await temporaryFolder();
    const refused = await refusalOf(run(folder.path, to));
    expect(refused).toContain(message);
    expect(refused).not.toContain("canary");
  });
});
