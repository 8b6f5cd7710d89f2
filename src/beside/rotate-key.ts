import { databaseExists, openStore } from "../../db/store.ts";
import { changeKey, keysOf, type NextKey } from "./change-key.ts";
import type { Config } from "../config.ts";
import { addressOf } from "../config/database.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { NOTHING_RESEALED, type Resealed } from "./reseal.ts";
import { keyFileOf, loadMasterKey } from "../secrets/key-file.ts";
import { keyIdOf } from "../secrets/master.ts";
import { adoptNextKey, leftNextKey, makeNextKey } from "../secrets/next-key-file.ts";
import { createSecrets } from "../secrets/secrets.ts";

export interface RotateKeyOptions {
  /** `NEW_SECRET_KEY`; null: a new one is made beside the key file. */
  readonly newKey: Uint8Array | null;
  /** Makes worthless whatever link was sent so far, as after a leak of the key. */
  readonly newLinks: boolean;
}

export interface RotateKeyDeps {
  readonly clock: Pick<Clock, "now">;
  readonly ids: Pick<Ids, "bytes">;
  readonly onFatal: (cause: unknown) => void;
}

export interface RotatedKey extends Resealed {
  readonly newKeyId: string;
  /** Where the old key is kept; null: it is not in a file, or the file was left as it is. */
  readonly keptFile: string | null;
}

/**
 * Seals everything in the store under a new master key. The store is this process's alone meanwhile. Stopped at any
 * point, it leaves a store that no service opens and that another run brings to its end; the old key stays until then.
 * Throws a sentence for the operator.
 */
export async function rotateKey(config: Config, options: RotateKeyOptions, deps: RotateKeyDeps): Promise<RotatedKey> {
  const { database, secretKey } = config;
  const { url, authToken } = addressOf(database);
  if (database.kind === "file" && !databaseExists(url)) throw new Error(`There is no database ${database.path}.`);
  const random = (count: number) => deps.ids.bytes(count);
  const keyFile = database.kind === "file" && secretKey === null ? keyFileOf(database.path) : null;
  const present = loadMasterKey({ secretKey, keyFile, databaseExists: true, random }).bytes;
  const seal = createSecrets(present, random);
  const store = await openStore({ url, authToken, seal, now: deps.clock.now(), onFatal: deps.onFatal });
  try {
    const keys = await keysOf(store, present, nextKeyOf(options.newKey, keyFile, random));
    const done = keys.isDone ? NOTHING_RESEALED : await changeKey(store, { ...keys, random }, options.newLinks);
    const isInFile = keyFile !== null && options.newKey === null;
    const keptFile = isInFile ? adoptNextKey(keyFile, keyIdOf(present)) : null;
    return { ...done, newKeyId: keyIdOf(keys.next), keptFile };
  } finally {
    await store.close();
  }
}

function nextKeyOf(given: Uint8Array | null, keyFile: string | null, random: (count: number) => Uint8Array): NextKey {
  if (given !== null) return { left: given, make: () => given };
  if (keyFile !== null) return { left: leftNextKey(keyFile), make: () => makeNextKey(keyFile, random) };
  throw new Error(
    "The master key is the setting SECRET_KEY: give the one to follow it as NEW_SECRET_KEY. Make one: openssl rand -base64 32.",
  );
}
