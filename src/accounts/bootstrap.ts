import { auditOfSystem } from "../domain/audit.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { SealedPlace, Secrets } from "../ports/secrets.ts";
import type { AccountStore } from "../ports/accounts.ts";
import { keyCreated } from "./create-key.ts";
import type { FactStore } from "../ports/store.ts";
import { keyRow } from "./key-row.ts";
import { newAccount } from "./new-account.ts";
import { createOfferWelcome, welcomeLink } from "./welcome-link.ts";

export interface BootstrapDeps {
  readonly accounts: AccountStore;
  readonly people: Pick<PeopleStore, "find" | "link" | "offer">;
  readonly facts: FactStore;
  readonly secrets: Secrets;
  readonly ids: Ids;
  readonly clock: Clock;
  /** `BOOTSTRAP_API_KEY`: the owner key of the first account, taken as given. */
  readonly givenOwnerKey: string | null;
}

/** What the first start hands out, in clear. */
export interface FirstKeys {
  /** Null where `BOOTSTRAP_API_KEY` gave it: whoever set it knows it, and a log has no business with it. */
  readonly ownerKey: string | null;
  readonly agentKey: string;
  /** Of the link whose visitor becomes the account's first person. */
  readonly welcomeToken: string | null;
}

/** The fact that holds the first keys, sealed, until somebody has been shown them. */
export const FIRST_KEYS_FACT = "first-keys";
export const FIRST_KEYS_PLACE: SealedPlace = { table: "facts", row: FIRST_KEYS_FACT, column: "value" };

/**
 * Makes the first account with an owner key, an agent key and a one-time link for the person, in one commit, and returns
 * them: at this start and at every later one until `forgetFirstKeys`, since a start may end before it has shown them. Null:
 * they were shown. At a later start a `BOOTSTRAP_API_KEY` that the store does not know yet is added, so that a script can
 * change it.
 */
export async function bootstrap(deps: BootstrapDeps): Promise<FirstKeys | null> {
  const { accounts, secrets, ids, clock, givenOwnerKey } = deps;
  const now = clock.now();
  const first = await accounts.first();
  if (first !== null) {
    if (givenOwnerKey !== null && (await accounts.keyByHash(secrets.hash(givenOwnerKey))) === null) {
      const given = {
        accountId: first.id,
        key: givenOwnerKey,
        name: "owner",
        role: "owner",
        hold: "none",
        now,
      } as const;
      const row = keyRow(deps, given);
      await accounts.addKey(row, auditOfSystem(first.id, keyCreated(row), now));
    }
    return unshownKeys(deps);
  }
  const account = newAccount({ secrets, ids }, now);
  const ownerKey = givenOwnerKey ?? secrets.newApiKey();
  const agentKey = secrets.newApiKey();
  const welcomeToken = secrets.newToken();
  const keys = { ownerKey: givenOwnerKey === null ? ownerKey : null, agentKey, welcomeToken };
  const rows = [
    keyRow(deps, { accountId: account.id, key: ownerKey, name: "owner", role: "owner", hold: "none", now }),
    keyRow(deps, { accountId: account.id, key: agentKey, name: "agent", role: "agent", hold: "none", now }),
  ];
  await accounts.create(account, rows, {
    link: welcomeLink(secrets.hash(welcomeToken), account.id, now),
    facts: { [FIRST_KEYS_FACT]: secrets.seal(JSON.stringify(keys), FIRST_KEYS_PLACE) },
    audit: rows.map((row) => auditOfSystem(account.id, keyCreated(row), now)),
  });
  return keys;
}

/** To be called once the keys were shown: from then on nobody can read them here. */
export async function forgetFirstKeys(facts: Pick<FactStore, "writeAll">): Promise<void> {
  await facts.writeAll({ [FIRST_KEYS_FACT]: null });
}

/** The keys of a first start that ended before it showed them; null once they were shown, or one of them was revoked. */
async function unshownKeys(deps: BootstrapDeps): Promise<FirstKeys | null> {
  const { accounts, people, facts, secrets, clock } = deps;
  const sealed = await facts.read(FIRST_KEYS_FACT);
  const keys = sealed === null ? null : openKeys(secrets, sealed);
  if (keys === null) return null;
  const { ownerKey, agentKey, welcomeToken } = keys;
  const isLive = async (key: string) => (await accounts.keyByHash(secrets.hash(key)))?.revokedAt === null;
  const live = await Promise.all([ownerKey, agentKey].filter((key) => key !== null).map(isLive));
  if (live.includes(false)) {
    // Whoever revoked it holds an owner key.
    await forgetFirstKeys(facts);
    return null;
  }
  const isTokenLive = welcomeToken !== null && (await people.link(secrets.hash(welcomeToken), clock.now())) !== null;
  return { ownerKey, agentKey, welcomeToken: isTokenLive ? welcomeToken : await createOfferWelcome(deps)() };
}

/** Null where the row was altered by hand. `outgate new-owner-key` makes another key. */
function openKeys(secrets: Pick<Secrets, "open">, sealed: string): FirstKeys | null {
  try {
    // Safe: sealed above, under a key and a place that nothing else uses.
    return JSON.parse(secrets.open(sealed, FIRST_KEYS_PLACE).toString()) as FirstKeys;
  } catch {
    return null;
  }
}
