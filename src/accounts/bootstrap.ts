import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore } from "../ports/accounts.ts";
import { keyRow } from "./key-row.ts";
import { newAccount } from "./new-account.ts";
import { createOfferWelcome } from "./welcome-link.ts";

export interface BootstrapDeps {
  readonly accounts: AccountStore;
  readonly people: Pick<PeopleStore, "find" | "offer">;
  readonly secrets: Secrets;
  readonly ids: Ids;
  readonly clock: Clock;
  /** `BOOTSTRAP_API_KEY`: the owner key of the first account, taken as given. */
  readonly givenOwnerKey: string | null;
}

/** What a first start hands out, in clear for the only time; null at every later start. */
export interface FirstKeys {
  /** Null where `BOOTSTRAP_API_KEY` gave it: whoever set it knows it, and a log has no business with it. */
  readonly ownerKey: string | null;
  readonly agentKey: string;
  /** Of the link whose visitor becomes the account's first person. */
  readonly welcomeToken: string | null;
}

/**
 * Makes the first account with an owner key and a one-time link for the person and an agent key for the agent, once. At a later start only a
 * `BOOTSTRAP_API_KEY` that the store does not know yet is added, so that a script can change it.
 */
export async function bootstrap(deps: BootstrapDeps): Promise<FirstKeys | null> {
  const { accounts, secrets, clock, givenOwnerKey } = deps;
  const now = clock.now();
  const offerWelcome = createOfferWelcome(deps);
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
  return { ownerKey: givenOwnerKey === null ? ownerKey : null, agentKey, welcomeToken: await offerWelcome() };
}
