import { keyRow } from "../../src/accounts/keys.ts";
import { readConfig } from "../../src/config/config.ts";
import { openEncryptedStore } from "../../src/app/encrypted-store.ts";
import { systemClock } from "../../src/core/clock.ts";
import { systemIds } from "../../src/core/ids.ts";
import { aCreation } from "../../test/support/factory.ts";

const GROUP = 200;
const SAMPLE = 5_000;
const HOSTS = 100;
const DAY_MS = 86_400_000;

/**
 * Makes an account with an owner key and so many finished actions, the newest an hour old, in a folder that no service
 * runs on yet; resolves with ids from all over them.
 */
export async function seedActions(folder: string, key: string, rows: number): Promise<readonly string[]> {
  const ids = systemIds;
  const onFatal = (cause: unknown) => {
    throw cause;
  };
  const config = readConfig({ DATABASE_URL: `file:${folder}/outgate.db` });
  const { store, secrets } = await openEncryptedStore(config, { clock: systemClock, ids, onFatal });
  const now = systemClock.now();
  const accountId = ids.account();
  const place = { table: "accounts", row: accountId, column: "sealed_root_secret" };
  const sealedRootSecret = secrets.seal(secrets.newRootSecret(), place);
  const owner = keyRow({ secrets, ids }, key, { accountId, name: "owner", role: "owner" }, now);
  await store.accounts.create({ id: accountId, sealedRootSecret, createdAt: now }, [owner]);
  const sample: string[] = [];
  const everyNth = Math.max(1, Math.floor(rows / SAMPLE));
  for (let from = 0; from < rows; from += GROUP) {
    const group = Array.from({ length: Math.min(GROUP, rows - from) }, (_, at) => {
      const createdAt = new Date(now.getTime() - DAY_MS + ((from + at) / rows) * DAY_MS * (23 / 24));
      return finished({ accountId, keyId: owner.id, at: from + at, createdAt });
    });
    await Promise.all(group.map((creation) => store.actions.create(creation)));
    for (const [at, { action }] of group.entries()) if ((from + at) % everyNth === 0) sample.push(action.id);
  }
  await store.close();
  return sample;
}

interface Finished {
  readonly accountId: string;
  readonly keyId: string;
  readonly at: number;
  readonly createdAt: Date;
}

function finished({ accountId, keyId, at, createdAt }: Finished) {
  const { action, outbox } = aCreation({
    accountId,
    keyId,
    createdBy: `key:${keyId}`,
    createdAt,
    url: `https://host${at % HOSTS}.example.com/orders/${at}`,
    body: JSON.stringify({ order: at, note: "x".repeat(120) }),
    status: "completed",
    attempts: 1,
    revision: 3,
    dueAt: null,
    finishedAt: createdAt,
  });
  const created = { type: "created", actor: action.createdBy } as const;
  return { action, outbox, claim: null, rulesVersion: "", events: [created, { type: "completed" } as const] };
}
