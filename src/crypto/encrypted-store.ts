import { databaseExists, openStore } from "../../db/open.ts";
import { type Config, VERSION } from "../config/config.ts";
import { addressOf } from "../config/values.ts";
import { checkMasterKey, keptLinkKey } from "./master-key.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Secrets } from "./types.ts";
import { type Store, StoreUnavailable } from "../../db/store.ts";
import { keyFileOf, loadMasterKey } from "./key-file.ts";
import { createSecrets } from "./secrets.ts";
import type { Server } from "bun";
import { bootstrap, type FirstKeys } from "../accounts/first-start.ts";
import { OPEN_AGAIN_MS } from "../config/limits.ts";
import { openUnavailableServer } from "../http/server.ts";
import type { Log } from "../observability/log.ts";

/** The store and what opens its sealed texts: one is worth nothing without the other. */
export interface EncryptedStore {
  readonly store: Store;
  readonly secrets: Secrets;
  readonly warnings: readonly string[];
}

interface EncryptedStoreDeps {
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

export interface OpeningDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  /**
   * A commit was accepted and could not be made durable, or (`StoreLost`) another service has the database by now: the
   * process has to end at once.
   */
  readonly onFatal: (cause: unknown) => void;
}

/** The vault with its first account in it, and the socket that was listened on meanwhile, if any. */
export interface Opened {
  readonly encryptedStore: EncryptedStore;
  readonly firstKeys: FirstKeys | null;
  readonly listening: Server<unknown> | null;
}

/**
 * Opens the vault. Where its store is away, locked or full, that is as if it went away later: everybody is answered 503,
 * and once a second it is tried again. Throws what no waiting mends: a sentence for the operator.
 */
export async function openStoreWithRetry(config: Config, deps: OpeningDeps): Promise<Opened> {
  let listening: Server<unknown> | null = null;
  for (;;) {
    try {
      return { ...(await open(config, deps)), listening };
    } catch (error) {
      if (error instanceof StoreUnavailable) {
        deps.log.warn("service.waiting", { reason: "the store can't be opened" });
        listening ??= openUnavailableServer(config.port, config.host, { ids: deps.ids, version: VERSION });
        await new Promise<void>((resolve) => void deps.clock.after(OPEN_AGAIN_MS, resolve));
        continue;
      }
      await listening?.stop(true);
      throw error;
    }
  }
}

async function open(config: Config, deps: OpeningDeps) {
  const onWait = () => deps.log.warn("service.waiting", { reason: "another service holds the database, or did" });
  const encryptedStore = await openEncryptedStore(config, { ...deps, onWait });
  const { store, secrets } = encryptedStore;
  try {
    const { accounts, people, facts } = store;
    const givenOwnerKey = config.bootstrapApiKey;
    const firstKeys = await bootstrap({ ...deps, accounts, people, facts, secrets, givenOwnerKey });
    return { encryptedStore, firstKeys };
  } catch (error) {
    await store.close();
    throw error;
  }
}
