import { type AdminStore, openAdminStore } from "../../db/open.ts";
import { DatabaseFault, errorReason } from "../../db/sql/errors.ts";
import type { AccountStore, PeopleStore } from "../core/account-store.ts";
import { type FactStore, StoreUnavailable } from "../core/store.ts";
import { keyCreated, keyRow } from "../accounts/keys.ts";
import { SYSTEM } from "../core/roles.ts";
import { auditOfSystem } from "../core/audit.ts";
import { type Config, type Env, readConfig } from "../config/config.ts";
import { databaseAddress } from "../config/values.ts";
import { createCredentials, type CredentialFactory } from "../crypto/tokens.ts";
import { systemClock, type Clock } from "../core/clock.ts";
import { systemIds, type Ids } from "../core/ids.ts";

/** What an admin command works with. Needs no master key. */
export interface AdminParts {
  readonly accounts: AccountStore;
  readonly people: PeopleStore;
  readonly facts: Pick<FactStore, "read">;
  readonly secrets: CredentialFactory;
  readonly ids: Pick<Ids, "key">;
  readonly clock: Pick<Clock, "now">;
}

/** Runs on the database of these settings, even while a service is running. Throws an error for the operator. */
export async function withAdminStore<T>(
  env: Env,
  work: (parts: AdminParts & { readonly config: Config }) => Promise<T>,
): Promise<T> {
  const config = readConfig(env);
  const { url, authToken } = databaseAddress(config.database);
  const secrets = createCredentials((count) => systemIds.bytes(count));
  let store: AdminStore | null = null;
  try {
    store = await openAdminStore(url, authToken);
    return await work({ config, ...store, secrets, ids: systemIds, clock: systemClock });
  } catch (cause) {
    if (!(cause instanceof StoreUnavailable || cause instanceof DatabaseFault)) throw cause;
    throw new Error(`The database can't be used now: ${errorReason(cause)}. Try again.`, { cause });
  } finally {
    await store?.close();
  }
}

/** Creates an owner key for this person's account, or the first (null), even beyond `LIVE_KEYS_MAX`. Null: no such account. */
export async function createOwnerKey(parts: AdminParts, email: string | null): Promise<string | null> {
  const { accounts, people, secrets, clock } = parts;
  const accountId = email === null ? (await accounts.first())?.id : (await people.find(email))?.accountId;
  if (accountId === undefined) return null;
  const key = secrets.newApiKey();
  const row = keyRow(parts, key, { accountId, name: "owner", role: "owner", createdBy: SYSTEM }, clock.now());
  await accounts.addKey(row, auditOfSystem(accountId, keyCreated(row), row.createdAt));
  return key;
}
