import { databaseExists, openStore } from "../db/store.ts";
import type { Config } from "./config.ts";
import { addressOf } from "./config/database.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Secrets } from "./ports/secrets.ts";
import type { Store } from "./ports/store.ts";
import { keyFileOf, loadMasterKey } from "./secrets/key-file.ts";
import { fingerprint } from "./secrets/master.ts";
import { createSecrets } from "./secrets/secrets.ts";

/** The store and what opens its sealed texts: one is worth nothing without the other. */
export interface Vault {
  readonly store: Store;
  readonly secrets: Secrets;
  readonly warnings: readonly string[];
}

export interface VaultDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly onFatal: (cause: unknown) => void;
}

const KEY_FACT = "master-key";

/**
 * Opens the store under its master key. Throws a sentence for the operator when the key is missing, broken or another
 * one than the store was made with; nothing is written in that case.
 */
export async function openVault({ database, secretKey }: Config, { clock, ids, onFatal }: VaultDeps): Promise<Vault> {
  const { url, authToken } = addressOf(database);
  const masterKey = loadMasterKey({
    secretKey,
    keyFile: database.kind === "file" ? keyFileOf(database.path) : null,
    databaseExists: databaseExists(url),
    random: (count) => ids.bytes(count),
  });
  const secrets = createSecrets(masterKey.bytes, (count) => ids.bytes(count));
  const store = await openStore({ url, authToken, seal: secrets, now: clock.now(), onFatal });
  await checkKey(store, fingerprint(masterKey.bytes)).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  return { store, secrets, warnings: masterKey.warning === null ? [] : [masterKey.warning] };
}

async function checkKey(store: Store, mark: string): Promise<void> {
  const known = await store.facts.read(KEY_FACT);
  if (known === null) return store.facts.write(KEY_FACT, mark);
  if (known === mark) return;
  throw new Error(
    "The master key is not the one that this database was made with. Set SECRET_KEY to that key, or put its key file back.",
  );
}
