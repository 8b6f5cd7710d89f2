import { keyRow } from "../../src/accounts/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { readConfig } from "../../src/config/config.ts";
import { systemIds } from "../../src/core/ids.ts";
import { openEncryptedStore } from "../../src/app/encrypted-store.ts";

/** Makes an account with an owner key for each of the keys, in a folder that no service runs on yet. */
export async function addAccounts(folder: string, keys: readonly string[]): Promise<void> {
  const ids = systemIds;
  const onFatal = (cause: unknown) => {
    throw cause;
  };
  const config = readConfig({ DATABASE_URL: `file:${folder}/outgate.db` });
  const { store, secrets } = await openEncryptedStore(config, { clock: systemClock, ids, onFatal });
  for (const key of keys) {
    const now = systemClock.now();
    const id = ids.account();
    const place = { table: "accounts", row: id, column: "sealed_root_secret" };
    const sealedRootSecret = secrets.seal(secrets.newRootSecret(), place);
    const row = keyRow({ secrets, ids }, key, { accountId: id, name: "owner", role: "owner" }, now);
    await store.accounts.create({ id, sealedRootSecret, createdAt: now }, [row]);
  }
  await store.close();
}
