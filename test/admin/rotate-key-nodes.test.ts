import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { rotateKey } from "../../src/admin/rotate-key.ts";
import { readConfig } from "../../src/config/config.ts";
import { NODE_LIVES_MS } from "../../src/core/limits.ts";
import { openEncryptedStore } from "../../src/app/encrypted-store.ts";
import { systemClock } from "../../src/core/clock.ts";
import { KeyChanged } from "../../src/crypto/master-key.ts";
import { systemIds } from "../../src/core/ids.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";

test.skipIf(!hasPostgres)("a node that hung while the master key was changed ends when it is back", async () => {
  const url = await createDatabase();
  const config = readConfig({ DATABASE_URL: url, SECRET_KEY: randomBytes(32).toString("hex") });
  const ends: unknown[] = [];
  const deps = { clock: systemClock, ids: systemIds, onFatal: (cause: unknown) => void ends.push(cause) };
  const { store, recheckKey } = await openEncryptedStore(config, deps);
  try {
    await recheckKey();
    expect(ends).toEqual([]);
    await rotateKey(config, { newKey: new Uint8Array(randomBytes(32)), newLinks: false }, deps);
    expect(await recheckKey().catch(String)).toContain("The master key is not the one");
    expect(ends).toEqual([expect.any(KeyChanged)]);
  } finally {
    await store.close();
    await dropDatabase(url);
  }
});

test.skipIf(!hasPostgres)("the master key of a database is not changed while services use it", async () => {
  const url = await createDatabase();
  const secretKey = () => randomBytes(32).toString("hex");
  const config = readConfig({ DATABASE_URL: url, SECRET_KEY: secretKey() });
  const deps = { clock: systemClock, ids: systemIds, onFatal: () => {} };
  const newKey = new Uint8Array(randomBytes(32));
  const rotate = () => rotateKey(config, { newKey, newLinks: false }, deps);
  const { store } = await openEncryptedStore(config, deps);
  try {
    const node = { id: "nod_one", startedAt: new Date(), version: "1" };
    await store.cluster?.beat(node, NODE_LIVES_MS);
    const refused = await rotate().catch(String);
    expect(refused).toBe(
      "Error: A service uses this database. Stop every one, then run this again; one that was killed counts for 15 more seconds.",
    );
    await store.cluster?.leave(node.id);
    expect(await rotate()).toMatchObject({ unopened: 0 });
  } finally {
    await store.close();
    await dropDatabase(url);
  }
});
