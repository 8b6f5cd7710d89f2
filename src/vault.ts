import { databaseExists, openStore } from "../db/store.ts";
import type { Config } from "./config.ts";
import { addressOf } from "./config/database.ts";
import { checkMasterKey, keptLinkKey } from "./master-key.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Secrets } from "./ports/secrets.ts";
import type { Store } from "./ports/store.ts";
import { keyFileOf, loadMasterKey } from "./secrets/key-file.ts";
import { createSecrets } from "./secrets/secrets.ts";

/** The store and what opens its sealed texts: one is worth nothing without the other. */
export interface EncryptedStore {
  readonly store: Store;
  readonly secrets: Secrets;
  readonly warnings: readonly string[];
}

export interface EncryptedStoreDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly onFatal: (cause: unknown) => void;
  /** Hears that another service holds the database, or did until it was killed. */
  readonly onWait?: () => void;
}

/**
 * Opens the store under its master key. Throws a sentence for the operator when the key is missing, broken or another
 * one than the store was made with; nothing is written in that case.
 */
export async function openEncryptedStore(
  { database, secretKey }: Config,
  deps: EncryptedStoreDeps,
): Promise<EncryptedStore> {
  const { clock, ids, onFatal, onWait } = deps;
  const { url, authToken } = addressOf(database);
  const random = (count: number) => ids.bytes(count);
  const masterKey = loadMasterKey({
    secretKey,
    keyFile: database.kind === "file" ? keyFileOf(database.path) : null,
    databaseExists: databaseExists(url),
    random,
  });
  const seal = createSecrets(masterKey.bytes, random);
  const store = await openStore({ url, authToken, seal, now: clock.now(), onFatal, ...(onWait && { onWait }) });
  try {
    await checkMasterKey(store, masterKey.bytes, seal);
    const linkKey = await keptLinkKey(store, seal);
    const secrets = linkKey === null ? seal : createSecrets(masterKey.bytes, random, linkKey);
    return { store, secrets, warnings: masterKey.warning === null ? [] : [masterKey.warning] };
  } catch (error) {
    await store.close();
    throw error;
  }
}
