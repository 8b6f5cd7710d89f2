import { openAdminStore } from "../../db/admin.ts";
import { systemClock, type Clock } from "../runtime/clock.ts";
import { type Config, readConfig } from "../config/config.ts";
import { addressOf } from "../config/values.ts";
import { systemIds, type Ids } from "../runtime/ids.ts";
import type { PeopleStore, AccountStore } from "../../db/account-store.ts";
import { StoreUnavailable } from "../../db/store.ts";
import { createHandedOut, type HandedOut } from "../crypto/tokens.ts";

interface AdminParts {
  readonly config: Config;
  readonly accounts: AccountStore;
  readonly people: PeopleStore;
  readonly secrets: HandedOut;
  readonly ids: Ids;
  readonly clock: Clock;
}

/**
 * Runs an admin command on the database of these settings, whether the service is running or not. Throws an error for the
 * operator if settings or database can't be used.
 */
export async function withStore<T>(
  env: Readonly<Record<string, string | undefined>>,
  work: (parts: AdminParts) => Promise<T>,
): Promise<T> {
  const config = readConfig(env);
  const { url, authToken } = addressOf(config.database);
  const store = await openAdminStore(url, authToken);
  const secrets = createHandedOut((count) => systemIds.bytes(count));
  try {
    return await work({ config, ...store, secrets, ids: systemIds, clock: systemClock });
  } catch (cause) {
    if (!(cause instanceof StoreUnavailable)) throw cause;
    throw new Error("The database can't be written now: it is busy or unreachable, or the disk is full. Try again.", {
      cause,
    });
  } finally {
    await store.close();
  }
}
