import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { chmodSync, chownSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openFile } from "../db/libsql/file.ts";
import { fillDatabase, readThroughKey, refusalOf } from "./key-files.ts";
import { temporaryFolder } from "./support/store.ts";
import { runStatements } from "../db/commands/command.ts";

const pathIn = (folder: string) => join(folder, "outgate.db");

const keyIn = (folder: string) => `${pathIn(folder)}.key`;

const ROOT = join(import.meta.dir, "..");
/** Starts the service. */
const RUN = `await import(${JSON.stringify(join(ROOT, "src/main.ts"))});`;

/** The user id of nobody. */
const NOBODY = 65_534;

const newKey = () => randomBytes(32).toString("base64");

/** Runs a statement on the database as a hand would. */
async function byHand(folder: string, sql: string): Promise<void> {
  const database = openFile(pathIn(folder));
  await runStatements(database, [{ sql, args: [] }]);
  await database.close();
}

/** What a folder holds, byte for byte, but for what SQLite keeps beside an open file. */
function contents(folder: string): Readonly<Record<string, string>> {
  const names = readdirSync(folder).filter((name) => !/-(wal|shm)$|\.lock$/.test(name));
  return Object.fromEntries(names.map((name) => [name, readFileSync(join(folder, name), "latin1")]));
}

/** What somebody does to a whole installation, and a part of the sentence with which the next start is refused. */
const DAMAGES: readonly (readonly [what: string, damage: (folder: string) => unknown, sentence: RegExp])[] = [
  ["another key in its file", (folder) => writeFileSync(keyIn(folder), newKey()), /^The master key is not the one/],
  ["a broken key file", (folder) => truncateSync(keyIn(folder), 20), /^The key file \S+ is broken: it must hold 32/],
  ["no key file", (folder) => rmSync(keyIn(folder)), /its key file \S+ is missing. Put the file back/],
  ["a database cut short", (folder) => truncateSync(pathIn(folder), 8_192), /can't be read: it is damaged, cut short/],
  [
    "a root secret that does not open",
    (folder) => byHand(folder, "UPDATE accounts SET sealed_root_secret = substr(sealed_root_secret, 1, 30)"),
    /^The root secret of account acc_\w+ can't be opened: the database is damaged/,
  ],
  [
    "neither a check value nor its key",
    async (folder) => {
      writeFileSync(keyIn(folder), newKey());
      await byHand(folder, "DELETE FROM facts");
    },
    /can't be opened: the database is damaged, or its master key is another one/,
  ],
  [
    "a link key that does not open",
    (folder) => byHand(folder, "INSERT INTO facts (name, value) VALUES ('link-key', 'x')"),
    /^The sealed value of facts link-key/,
  ],
];

describe("a start that can't read or unseal what is there", () => {
  test.each(DAMAGES)("is refused with a sentence and writes nothing: %s", async (_what, damage, sentence) => {
    await using folder = await temporaryFolder();
    await fillDatabase(folder.path, 300);
    await damage(folder.path);
    const before = contents(folder.path);
    const refused = await readThroughKey(folder.path).then(String, (error: unknown) => error);
    expect(refused).toBeInstanceOf(Error);
    expect(refused instanceof Error ? refused.message : "").toMatch(sentence);
    expect(contents(folder.path)).toEqual(before);
  });

  test("is refused by a setting that is another key, and the key file is not looked at", async () => {
    await using folder = await temporaryFolder();
    const whole = await fillDatabase(folder.path, 2);
    const refused = await readThroughKey(folder.path, { SECRET_KEY: newKey() }).then(String, String);
    expect(refused).toContain("Set SECRET_KEY to that key, or put its key file back.");
    expect(await readThroughKey(folder.path)).toEqual(whole);
  });
});

describe("a start where no database can be says so, and what to set", () => {
  test("a file is in the place of a folder", async () => {
    await using folder = await temporaryFolder();
    const file = join(folder.path, "file");
    writeFileSync(file, "");
    expect(await refusalOf(readThroughKey(join(file, "data")))).toBe(
      `The database ${file}/data/outgate.db can't be opened: ${file} is no folder that the service may write to (ENOTDIR). ` +
        "Make it one, or set DATABASE_URL to a file in another folder.",
    );
  });

  test("a file can only be read, also for commands beside the service", async () => {
    await using folder = await temporaryFolder();
    const path = pathIn(folder.path);
    await fillDatabase(folder.path, 1);
    chmodSync(path, 0o400);
    // The system lets root write it.
    const isRoot = process.getuid?.() === 0;
    for (const name of isRoot ? [".", ...readdirSync(folder.path)] : []) {
      chownSync(join(folder.path, name), NOBODY, NOBODY);
    }
    const refusalOfRun = async (script: string) => {
      const asNobody = isRoot ? `process.setuid(${NOBODY}); ` : "";
      const env = { ...process.env, PORT: "0", DATABASE_URL: `file:${path}` };
      const options = { env, stdout: "ignore", stderr: "pipe", timeout: 30_000 } as const;
      return Bun.spawn([process.execPath, "-e", asNobody + script], options).stderr.text();
    };
    expect(await refusalOfRun(RUN)).toBe(
      `Outgate can't start. The database ${path} can't be read or written (EACCES). Run the service as the user that it ` +
        "belongs to, and let that user write it.\n",
    );
    chmodSync(path, 0o600);
    chmodSync(`${path}.lock`, 0);
    expect(await refusalOfRun(RUN)).toContain(`can't start. The database ${path} can't be opened (SQLITE_CANTOPEN).`);
    chmodSync(folder.path, 0);
    expect(await refusalOfRun(RUN)).toContain(`${folder.path} is no folder that the service may write to (EACCES).`);
    chmodSync(folder.path, 0o700);
    chmodSync(path, 0o400);
    const open = `const { openAdminStore } = await import(${JSON.stringify(join(ROOT, "db/open.ts"))});
      await openAdminStore(process.env.DATABASE_URL, null).catch(({ message }) => process.stderr.write(message));`;
    expect(await refusalOfRun(open)).toBe(
      `The database ${path} can't be opened: ${path} can't be written (EACCES). Run this as the user of the service, and let ` +
        "that user write it.",
    );
  });
});
