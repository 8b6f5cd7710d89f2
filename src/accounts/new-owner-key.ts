import { auditOfSystem } from "../domain/audit.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore } from "../ports/accounts.ts";
import { keyCreated } from "./create-key.ts";
import { keyRow } from "./key-row.ts";

export interface NewOwnerKeyDeps {
  readonly accounts: Pick<AccountStore, "addKey" | "first">;
  readonly people: Pick<PeopleStore, "find">;
  readonly secrets: Pick<Secrets, "hash" | "newApiKey">;
  readonly ids: Pick<Ids, "key">;
  readonly clock: Pick<Clock, "now">;
}

/**
 * Makes another owner key for whoever holds the machine and has lost theirs: of the account of the person with this
 * address, or of the first account. The other keys stay as they are, and however many there are: a lost one is revoked
 * with this one. Null: there is no such account.
 */
export function createNewOwnerKey({ accounts, people, secrets, ids, clock }: NewOwnerKeyDeps) {
  return async (email: string | null): Promise<string | null> => {
    const accountId = email === null ? (await accounts.first())?.id : (await people.find(email))?.accountId;
    if (accountId === undefined) return null;
    const key = secrets.newApiKey();
    const row = { accountId, key, name: "owner", role: "owner", hold: "none", now: clock.now() } as const;
    const made = keyRow({ secrets, ids }, row);
    await accounts.addKey(made, auditOfSystem(accountId, keyCreated(made), made.createdAt));
    return key;
  };
}
