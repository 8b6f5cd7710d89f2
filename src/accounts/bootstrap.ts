import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore } from "../ports/store.ts";
import { keyRow } from "./key-row.ts";
import { newAccount } from "./new-account.ts";

export interface BootstrapDeps {
  readonly accounts: AccountStore;
  readonly secrets: Secrets;
  readonly ids: Ids;
  readonly clock: Clock;
  /** `BOOTSTRAP_API_KEY`: the owner key of the first account, taken as given. */
  readonly givenOwnerKey: string | null;
}

/** The keys of a first start, in clear for the only time; null at every later start. */
export interface FirstKeys {
  /** Null where `BOOTSTRAP_API_KEY` gave it: whoever set it knows it, and a log has no business with it. */
  readonly ownerKey: string | null;
  readonly agentKey: string;
}

/**
 * Makes the first account with an owner key for the person and an agent key for the agent, once. At a later start only a
 * `BOOTSTRAP_API_KEY` that the store does not know yet is added, so that a script can change it.
 */
export async function bootstrap(deps: BootstrapDeps): Promise<FirstKeys | null> {
  const { accounts, secrets, clock, givenOwnerKey } = deps;
  const now = clock.now();
  const first = await accounts.first();
  if (first !== null) {
    if (givenOwnerKey !== null && (await accounts.keyByHash(secrets.hash(givenOwnerKey))) === null) {
      await accounts.addKey(
        keyRow(deps, { accountId: first.id, key: givenOwnerKey, name: "owner", role: "owner", hold: "none", now }),
      );
    }
    return null;
  }
  const account = newAccount(deps, now);
  const ownerKey = givenOwnerKey ?? secrets.newApiKey();
  const agentKey = secrets.newApiKey();
  await accounts.create(account, [
    keyRow(deps, { accountId: account.id, key: ownerKey, name: "owner", role: "owner", hold: "none", now }),
    keyRow(deps, { accountId: account.id, key: agentKey, name: "agent", role: "agent", hold: "none", now }),
  ]);
  return { ownerKey: givenOwnerKey === null ? ownerKey : null, agentKey };
}
