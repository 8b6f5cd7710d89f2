import { readKey } from "../../src/config/values.ts";
import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseInUse } from "../../db/libsql/inspect.ts";
import { bootstrap } from "../../src/accounts/bootstrap.ts";
import { changeKey, checkKeys } from "../../src/admin/rotate-key.ts";
import { systemClock } from "../../src/core/clock.ts";
import { readConfig } from "../../src/config/config.ts";
import { RESEAL_ROWS_MAX } from "../../src/core/limits.ts";
import { systemIds } from "../../src/core/ids.ts";
import type { Store } from "../../src/core/store.ts";
import { KEY_FACTS, masterKeyId, readNextKey, makeNextKey } from "../../src/crypto/master-key.ts";
import { bytesOfDatabase, fillDatabase, rotateKeyOf, readThroughKey, refusalOf } from "../key-files.ts";
import { openEncryptedStore } from "../../src/app/encrypted-store.ts";
import { openStoreAt, temporaryFolder } from "../support/store.ts";

const newKeyText = () => randomBytes(32).toString("base64");

const keyIn = (file: string) => readKey(readFileSync(file, "latin1").trim()) ?? new Uint8Array();

/** A database in a folder of its own, and what hangs on its key. */
async function filled(...given: [actions: number, env?: Readonly<Record<string, string>>]) {
  const folder = await temporaryFolder();
  return { ...folder, keyFile: `${folder.file}.key`, before: await fillDatabase(folder.path, ...given) };
}

describe("a new master key", () => {
  test("seals everything, and what was read, signed and sent with a link stays what it is", async () => {
    await using folder = await filled(2 * RESEAL_ROWS_MAX + 7);
    const { keyFile } = folder;
    const oldId = masterKeyId(keyIn(keyFile));
    expect(bytesOfDatabase(folder.path)).toContain(`${oldId}.`);

    const rotated = await rotateKeyOf(folder.path);
    expect(rotated).toEqual({
      // The headers, two seeds of signing secrets, one root secret.
      count: 2 * RESEAL_ROWS_MAX + 7 + 2 + 1,
      unopened: 0,
      named: [],
      newKeyId: masterKeyId(keyIn(keyFile)),
      keptFile: `${keyFile}.${oldId}`,
    });
    expect(rotated.newKeyId).not.toBe(oldId);
    expect(bytesOfDatabase(folder.path)).not.toContain(`${oldId}.`);
    expect(masterKeyId(keyIn(`${keyFile}.${oldId}`))).toBe(oldId);
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
    const modes = readdirSync(folder.path).map((name) => statSync(join(folder.path, name)).mode & 0o777);
    expect(new Set(modes)).toEqual(new Set([0o600]));
  });

  test("opens the first keys, too, that no start has shown yet", async () => {
    await using folder = await temporaryFolder();
    const config = readConfig({ DATABASE_URL: `file:${folder.path}/outgate.db` });
    const start = async () => {
      const { store, secrets } = await openEncryptedStore(config, {
        clock: systemClock,
        ids: systemIds,
        onFatal: () => {},
      });
      const keys = await bootstrap({ ...store, secrets, ids: systemIds, clock: systemClock, givenOwnerKey: null });
      await store.close();
      return keys;
    };
    const made = await start();
    await rotateKeyOf(folder.path);
    expect(made?.ownerKey).toStartWith("og_");
    expect(await start()).toEqual(made);
  });

  test("can be followed by another one, and another", async () => {
    await using folder = await filled(3);
    for (let n = 0; n < 3; n += 1) await rotateKeyOf(folder.path);
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
    expect(readdirSync(folder.path).filter((name) => /\.key\.[0-9a-f]{8}$/.test(name))).toHaveLength(3);
  });

  test.each(["beside the file", "beside a link to it, where earlier versions made it"])(
    "is found and kept %s",
    async (place) => {
      await using elsewhere = await temporaryFolder();
      await using folder = await filled(3);
      const link = join(elsewhere.path, "link.db");
      symlinkSync(folder.file, link);
      const isBesideFile = place === "beside the file";
      const keyFile = isBesideFile ? folder.keyFile : `${link}.key`;
      if (!isBesideFile) renameSync(folder.keyFile, keyFile);
      const env = { DATABASE_URL: `file:${link}` };
      const { newKeyId } = await rotateKeyOf(folder.path, {}, env);
      expect(masterKeyId(keyIn(keyFile))).toBe(newKeyId);
      expect(await readThroughKey(folder.path, env)).toEqual(folder.before);
      if (isBesideFile) expect(await readThroughKey(folder.path)).toEqual(folder.before);
      else expect(readdirSync(folder.path).some((name) => name.endsWith(".key"))).toBe(false);
    },
  );

  test("makes links that were sent worthless where that is asked for, and nothing else", async () => {
    await using folder = await filled(3);
    await rotateKeyOf(folder.path, { newLinks: true });
    const after = await readThroughKey(folder.path);
    expect({ ...after, links: folder.before.links, receipts: folder.before.receipts }).toEqual(folder.before);
    const same = [...after.links, ...after.receipts].filter((link) =>
      [...folder.before.links, ...folder.before.receipts].includes(link),
    );
    expect(same).toEqual([]);
    // A change after that keeps the new ones again.
    await rotateKeyOf(folder.path);
    expect(await readThroughKey(folder.path)).toEqual(after);
  });

  test("is taken from the settings where the old one is", async () => {
    const [old, next] = [newKeyText(), newKeyText()];
    await using folder = await filled(3, { SECRET_KEY: old });
    const rotated = await rotateKeyOf(folder.path, { newKey: readKey(next) }, { SECRET_KEY: old });
    expect(rotated).toMatchObject({
      count: 6,
      keptFile: null,
      newKeyId: masterKeyId(readKey(next) ?? new Uint8Array()),
    });
    expect(await readThroughKey(folder.path, { SECRET_KEY: next })).toEqual(folder.before);
    expect(await refusalOf(readThroughKey(folder.path, { SECRET_KEY: old }))).toContain(
      "The master key is not the one",
    );
    // Run again by mistake, it says that it is done and changes nothing.
    expect(await rotateKeyOf(folder.path, { newKey: readKey(next) }, { SECRET_KEY: old })).toMatchObject({ count: 0 });
    expect(await readThroughKey(folder.path, { SECRET_KEY: next })).toEqual(folder.before);
  });

  test("moves from the file into the settings", async () => {
    await using folder = await filled(3);
    const next = newKeyText();
    expect(await rotateKeyOf(folder.path, { newKey: readKey(next) })).toMatchObject({ keptFile: null });
    expect(await readThroughKey(folder.path, { SECRET_KEY: next })).toEqual(folder.before);
    expect(await refusalOf(readThroughKey(folder.path))).toContain("Set SECRET_KEY to that key");
  });

  test("leaves a text that somebody altered as it is, and names it", async () => {
    await using folder = await temporaryFolder();
    await fillDatabase(folder.path, 5);
    const path = join(folder.path, "outgate.db");
    const store = await openStoreAt(path);
    const first = (await store.sealed.find("none", null, 99)).find(({ place }) => place.table === "actions");
    if (first === undefined) throw new Error("There is no sealed header.");
    const altered = `${first.sealed.slice(0, -8)}AAAAAAA=`;
    await store.sealed.replace([{ ...first, by: altered }]);
    await store.close();
    expect(await rotateKeyOf(folder.path)).toMatchObject({ count: 5 + 2, unopened: 1, named: [first.place] });
    const again = await openStoreAt(path);
    expect((await again.sealed.find("none", null, 99)).map(({ sealed }) => sealed)).toContain(altered);
    await again.close();
  });
});

describe("the change of the master key is refused", () => {
  test("while a service has the database", async () => {
    await using folder = await filled(2);
    const store = await openStoreAt(folder.file);
    expect(await rotateKeyOf(folder.path).catch((error: unknown) => error)).toBeInstanceOf(DatabaseInUse);
    await store.close();
    expect(readdirSync(folder.path).some((name) => name.endsWith(".next"))).toBe(false);
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
  });

  test("where there is no database, and none is made", async () => {
    await using folder = await temporaryFolder();
    expect(await refusalOf(rotateKeyOf(folder.path))).toBe(`There is no database ${folder.path}/outgate.db.`);
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test("with the key that is in use, with a wrong one, and without a new one to a setting", async () => {
    const old = newKeyText();
    await using folder = await filled(2, { SECRET_KEY: old });
    const rotate = (newKey: string | null, secretKey: string) =>
      refusalOf(
        rotateKeyOf(folder.path, { newKey: newKey === null ? null : readKey(newKey) }, { SECRET_KEY: secretKey }),
      );
    expect(await rotate(old, old)).toContain("The new key is the one that is in use");
    expect(await rotate(newKeyText(), newKeyText())).toContain("The master key is not the one");
    expect(await rotate(null, old)).toContain("set the new one as NEW_SECRET_KEY");
    expect(await readThroughKey(folder.path, { SECRET_KEY: old })).toEqual(folder.before);
  });
});

/** A store that is gone after so many writes of the change, as a kill would leave it. */
class Stopped extends Error {}

function stoppedAfter(store: Store, writes: number): Store {
  let left = writes;
  const counted = async (write: () => Promise<void>): Promise<void> => {
    if (left === 0) throw new Stopped();
    left -= 1;
    await write();
  };
  const { sealed, facts } = store;
  return {
    ...store,
    sealed: { ...sealed, replace: (texts) => counted(() => sealed.replace(texts)) },
    facts: {
      ...facts,
      write: (values) => counted(() => facts.write(values)),
    },
  };
}

describe("a change of the master key that is stopped", () => {
  const random = (count: number) => systemIds.bytes(count);

  /** Does as the command does up to a write of the store, and no more. True when it came to its end. */
  const stopAt = async (folder: string, writes: number): Promise<boolean> => {
    const keyFile = join(folder, "outgate.db.key");
    const store = await openStoreAt(join(folder, "outgate.db"));
    try {
      const stopped = stoppedAfter(store, writes);
      const next = { existing: readNextKey(keyFile), make: () => makeNextKey(keyFile, random) };
      const keys = await checkKeys(stopped, keyIn(keyFile), next);
      await changeKey(stopped, { ...keys, random, requireAlone: async () => {} }, false);
      return true;
    } catch (error) {
      if (!(error instanceof Stopped)) throw error;
      return false;
    } finally {
      await store.close();
    }
  };

  test("after any of its writes keeps the service away, and another run brings it to its end", async () => {
    await using folder = await filled(2 * RESEAL_ROWS_MAX);
    const ends: boolean[] = [];
    // Begun; three commits of texts; the end. Each time it is stopped a write further on, and goes on where it was.
    for (let writes = 0; ends.at(-1) !== true && writes < 9; writes += 1) {
      ends.push(await stopAt(folder.path, writes));
      if (writes === 0) expect(await readThroughKey(folder.path)).toEqual(folder.before);
      else if (ends.at(-1) === false) expect(await refusalOf(readThroughKey(folder.path))).toContain("was interrupted");
    }
    expect(ends.length).toBeGreaterThan(3);
    // All of it is done but for the key file.
    expect(await refusalOf(readThroughKey(folder.path))).toContain("The master key is not the one");
    expect(await rotateKeyOf(folder.path)).toMatchObject({ count: 0, unopened: 0 });
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
    expect(existsSync(`${folder.keyFile}.next`)).toBe(false);
  });

  test("because a service joined meanwhile has changed nothing", async () => {
    await using folder = await filled(3);
    const present = keyIn(folder.keyFile);
    const store = await openStoreAt(folder.file);
    const keys = await checkKeys(store, present, { existing: new Uint8Array(randomBytes(32)), make: () => present });
    const marks: unknown[] = [];
    const requireAlone = async () => {
      marks.push(await store.facts.read(KEY_FACTS.next));
      throw new Error("A service uses this database.");
    };
    expect(await refusalOf(changeKey(store, { ...keys, random, requireAlone }, false))).toContain("A service uses");
    await store.close();
    // A service that joins after this question finds the mark.
    expect(marks).toEqual([expect.any(String)]);
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
  });

  test("between its two names for the old key file is brought to its end by another run", async () => {
    await using folder = await filled(3);
    expect(await stopAt(folder.path, 99)).toBe(true);
    const { keyFile } = folder;
    const kept = `${keyFile}.${masterKeyId(keyIn(keyFile))}`;
    linkSync(keyFile, kept);
    expect(await rotateKeyOf(folder.path)).toMatchObject({ count: 0, keptFile: kept });
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
  });

  test("goes on with its own next key and no other", async () => {
    await using folder = await filled(2 * RESEAL_ROWS_MAX);
    await stopAt(folder.path, 2);
    const nextFile = join(folder.path, "outgate.db.key.next");
    const aside = join(folder.path, "aside");
    renameSync(nextFile, aside);
    expect(await refusalOf(rotateKeyOf(folder.path))).toContain("A rotation to another key was interrupted");
    expect(await refusalOf(rotateKeyOf(folder.path, { newKey: readKey(newKeyText()) }))).toContain("was interrupted");
    writeFileSync(nextFile, newKeyText());
    expect(await refusalOf(rotateKeyOf(folder.path))).toContain("A rotation to another key was interrupted");
    writeFileSync(nextFile, "broken");
    expect(await refusalOf(rotateKeyOf(folder.path))).toContain(`The key file ${nextFile} is broken`);
    rmSync(nextFile);
    renameSync(aside, nextFile);
    await rotateKeyOf(folder.path);
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
  });

  test("before anything was sealed leaves a next key that the next run takes", async () => {
    await using folder = await filled(3);
    const next = makeNextKey(folder.keyFile, random);
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
    expect(await rotateKeyOf(folder.path)).toMatchObject({ newKeyId: masterKeyId(next) });
    expect(await readThroughKey(folder.path)).toEqual(folder.before);
  });
});
