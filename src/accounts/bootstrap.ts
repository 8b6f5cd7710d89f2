import type { SealedPlace } from "../core/account-store.ts";
import { auditOfSystem } from "../core/audit.ts";
import { SYSTEM } from "../core/roles.ts";
import type { FactStore, Store } from "../core/store.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { keyCreated, keyRow } from "./keys.ts";
import { newAccount } from "./people.ts";
import { createWelcomeLink, newWelcomeLink } from "./welcome-links.ts";

/** The credentials of the first start, in clear text. */
export interface FirstKeys {
  /** Null if `BOOTSTRAP_API_KEY` gave it: the operator knows it, and no log should contain it. */
  readonly ownerKey: string | null;
  readonly agentKey: string;
  /** Token of the link whose visitor becomes the account's first person; null: used. */
  readonly welcomeToken: string | null;
}

interface BootstrapDeps extends Pick<Store, "accounts" | "people" | "facts">, Pick<AppContext, "ids" | "clock"> {
  readonly secrets: Secrets;
  /** `BOOTSTRAP_API_KEY`: the owner key of the first account, taken as given. */
  readonly givenOwnerKey: string | null;
}

/** Name of the fact that keeps the first keys, encrypted, until they were shown. */
export const FIRST_KEYS_FACT = "first-keys";

export const FIRST_KEYS_PLACE: SealedPlace = { table: "facts", row: FIRST_KEYS_FACT, column: "value" };

/**
 * Creates the first account with an owner key, an agent key and a one-time link, in one commit. Returns them at this and
 * every later start until `forgetFirstKeys`, since a start may end before it has shown them; null: they were shown. A later
 * start adds a new `BOOTSTRAP_API_KEY` as another owner key.
 */
export async function bootstrap(deps: BootstrapDeps): Promise<FirstKeys | null> {
  const { accounts, secrets, clock, givenOwnerKey } = deps;
  const now = clock.now();
  const ownerRow = (accountId: string, key: string) =>
    keyRow(deps, key, { accountId, name: "owner", role: "owner", createdBy: SYSTEM }, now);
  const first = await accounts.first();
  if (first !== null) {
    if (givenOwnerKey !== null && (await accounts.keyByHash(secrets.hash(givenOwnerKey))) === null) {
      const row = ownerRow(first.id, givenOwnerKey);
      await accounts.addKey(row, auditOfSystem(first.id, keyCreated(row), now));
    }
    return unshownKeys(deps);
  }
  const account = newAccount(deps, now);
  const ownerKey = givenOwnerKey ?? secrets.newApiKey();
  const agentKey = secrets.newApiKey();
  const { token: welcomeToken, link } = newWelcomeLink(secrets, { accountId: account.id, personId: null }, now);
  const keys = { ownerKey: givenOwnerKey === null ? ownerKey : null, agentKey, welcomeToken };
  const rows = [
    ownerRow(account.id, ownerKey),
    keyRow(deps, agentKey, { accountId: account.id, name: "agent", role: "agent", createdBy: SYSTEM }, now),
  ];
  const isFirst = await accounts.create(account, rows, {
    link,
    facts: { [FIRST_KEYS_FACT]: secrets.seal(JSON.stringify(keys), FIRST_KEYS_PLACE) },
    audit: rows.map((row) => auditOfSystem(account.id, keyCreated(row), now)),
  });
  // If not, another node was first, and its keys are there by now.
  return isFirst ? keys : bootstrap(deps);
}

/** Deletes the first keys. Call it once they were shown. */
export async function forgetFirstKeys(facts: Pick<FactStore, "write">): Promise<void> {
  await facts.write({ [FIRST_KEYS_FACT]: null });
}

/** The first keys that no start has shown yet; null: shown, or one of them was revoked. */
async function unshownKeys(deps: BootstrapDeps): Promise<FirstKeys | null> {
  const { accounts, people, facts, secrets, clock } = deps;
  const sealed = await facts.read(FIRST_KEYS_FACT);
  if (sealed === null) return null;
  let keys: FirstKeys;
  try {
    // Safe: `bootstrap` sealed it, and nothing else uses this place.
    keys = JSON.parse(secrets.open(sealed, FIRST_KEYS_PLACE).toString()) as FirstKeys;
  } catch {
    // The row was altered. `outgate new-owner-key` creates another key.
    return null;
  }
  const { ownerKey, agentKey, welcomeToken } = keys;
  const isLive = async (key: string) => (await accounts.keyByHash(secrets.hash(key)))?.revokedAt === null;
  const live = await Promise.all([ownerKey, agentKey].filter((key) => key !== null).map(isLive));
  if (live.includes(false)) {
    // Somebody with an owner key revoked it, so nobody needs to be shown these.
    await forgetFirstKeys(facts);
    return null;
  }
  const isTokenLive = welcomeToken !== null && (await people.link(secrets.hash(welcomeToken), clock.now())) !== null;
  return { ownerKey, agentKey, welcomeToken: isTokenLive ? welcomeToken : await createWelcomeLink(deps) };
}
