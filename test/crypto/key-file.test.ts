import { afterEach, beforeEach, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type KeyPlaces, keyFileFor, loadMasterKey } from "../../src/crypto/master-key.ts";

let folder = "";

let keyFile = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "outgate-key-"));
  keyFile = keyFileFor(join(folder, "outgate.db"));
});

afterEach(() => rmSync(folder, { recursive: true }));

function load(places: Partial<KeyPlaces> = {}) {
  return loadMasterKey({ secretKey: null, keyFile, databaseExists: false, random: randomBytes, ...places });
}

test("the first start makes a key beside the database, for its owner's eyes only, and later ones read it", () => {
  const first = load();
  expect(first).toMatchObject({ warning: null });
  expect(first.bytes).toHaveLength(32);
  expect(readdirSync(folder)).toEqual(["outgate.db.key"]);
  expect(statSync(keyFile).mode & 0o777).toBe(0o600);
  expect(load({ databaseExists: true })).toEqual({ bytes: first.bytes, warning: null });
});

test("the setting comes before the file, and makes none", () => {
  const secretKey = new Uint8Array(randomBytes(32));
  expect(load({ secretKey })).toEqual({ bytes: secretKey, warning: null });
  expect(readdirSync(folder)).toEqual([]);
});

test("a new key lies beside the file that a link leads to, where every name of the file finds it", () => {
  const [path, link] = [join(folder, "real.db"), join(folder, "link.db")];
  symlinkSync("real.db", link);
  const { bytes } = load({ keyFile: keyFileFor(link) });
  writeFileSync(path, "a database");
  expect(readdirSync(folder).toSorted()).toEqual(["link.db", "real.db", "real.db.key"]);
  for (const name of [path, link]) {
    expect(load({ keyFile: keyFileFor(name), databaseExists: true }).bytes).toEqual(bytes);
  }
});

test("a key that an earlier version made beside a link is still the key", () => {
  const [path, link] = [join(folder, "real.db"), join(folder, "link.db")];
  writeFileSync(path, "a database");
  symlinkSync("real.db", link);
  const { bytes } = load();
  renameSync(keyFile, `${link}.key`);
  expect(load({ keyFile: keyFileFor(link), databaseExists: true }).bytes).toEqual(bytes);
  // A second one beside the file, of whatever origin, changes nothing for those who start by the link.
  load({ keyFile: keyFileFor(path) });
  expect(load({ keyFile: keyFileFor(link), databaseExists: true }).bytes).toEqual(bytes);
});

test("the folder is made when it is missing", () => {
  const deep = join(folder, "a", "b", "outgate.db.key");
  const { bytes } = load({ keyFile: deep });
  expect(readFileSync(deep, "latin1")).toBe(`${Buffer.from(bytes).toString("base64")}\n`);
});

test("a database whose key file is missing stops the start, and no new key is made", () => {
  expect(() => load({ databaseExists: true })).toThrow(`its key file ${keyFile} is missing`);
  expect(readdirSync(folder)).toEqual([]);
});

test.each([
  ["empty", ""],
  ["cut short", randomBytes(32).toString("base64").slice(0, 30)],
  ["31 bytes", randomBytes(31).toString("base64")],
  ["binary", randomBytes(32).toString("latin1")],
])("a key file that is %s stops the start and is left as it is", (_, text) => {
  writeFileSync(keyFile, text, "latin1");
  for (const databaseExists of [true, false])
    expect(() => load({ databaseExists })).toThrow("is broken: it must hold 32 bytes");
  expect(readFileSync(keyFile, "latin1")).toBe(text);
  expect(readdirSync(folder)).toEqual(["outgate.db.key"]);
});

test("what a broken key file holds is not told", () => {
  writeFileSync(keyFile, "canary-canary");
  expect(() => load()).toThrow(expect.not.stringContaining("canary-canary"));
});

test("a key file that can't be read stops the start with its reason", () => {
  expect(() => load({ keyFile: folder })).toThrow("can't be read (EISDIR)");
});

test("a folder that can't be written stops the start and names the way out", () => {
  writeFileSync(join(folder, "file"), "");
  expect(() => load({ keyFile: "/proc/outgate.db.key" })).toThrow(/can't be made \(E[A-Z]+\).*or set SECRET_KEY/);
});

test("a database on another machine needs the setting", () => {
  expect(() => load({ keyFile: null })).toThrow("SECRET_KEY is not set");
});

test("a key file that others can read is used, with a warning", () => {
  load();
  chmodSync(keyFile, 0o640);
  expect(load().warning).toContain(`chmod 600`);
});

test("processes that start at the same time agree on one key", async () => {
  const source = `
    import { loadMasterKey } from ${JSON.stringify(join(import.meta.dir, "../../src/crypto/master-key.ts"))};
    const random = (count) => crypto.getRandomValues(new Uint8Array(count));
    const key = loadMasterKey({ secretKey: null, keyFile: process.argv[1], databaseExists: false, random });
    console.log(Buffer.from(key.bytes).toString("hex"));`;
  const starts = Array.from({ length: 8 }, () => Bun.spawn([process.execPath, "-e", source, keyFile]).stdout.text());
  const keys = new Set(await Promise.all(starts));
  expect(keys).toEqual(new Set([`${Buffer.from(load().bytes).toString("hex")}\n`]));
  expect(readdirSync(folder)).toEqual(["outgate.db.key"]);
});

test("a key that appears while ours is made wins, and is not replaced", () => {
  const theirs = randomBytes(32).toString("base64");
  const random = (count: number) => {
    writeFileSync(keyFile, theirs, { mode: 0o600 });
    return randomBytes(count);
  };
  expect(Buffer.from(load({ random }).bytes).toString("base64")).toBe(theirs);
  expect(readFileSync(keyFile, "latin1")).toBe(theirs);
});
