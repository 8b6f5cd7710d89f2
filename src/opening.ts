import type { Server } from "bun";
import { bootstrap, type FirstKeys } from "./accounts/bootstrap.ts";
import type { Config } from "./config.ts";
import { OPEN_AGAIN_MS } from "./domain/limits.ts";
import { openUnavailableServer } from "./http/closed.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Log } from "./ports/log.ts";
import { StoreUnavailable } from "./ports/store.ts";
import { openEncryptedStore, type EncryptedStore } from "./vault.ts";
import { VERSION } from "./version.ts";

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
 * and once a second it is tried again (hostile 5). Throws what no waiting mends: a sentence for the operator.
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
