import type { SealedPlace } from "../ports/secrets.ts";
import type { AccountStore } from "../ports/accounts.ts";

/** What opens a sealed secret of an account. Throws `UnreadableSecret`. */
export type OpenSecret = (accountId: string, sealed: string, place: SealedPlace) => Uint8Array;

/** Opens the root secret of an account, from which its signing secrets are derived. Throws when there is no account. */
export type RootSecretOf = (accountId: string) => Promise<Uint8Array>;

const ROOT_SECRETS_REMEMBERED_MAX = 10_000;

/** Remembers opened secrets: each attempt signs, and a root secret never changes. */
export function createRootSecretOf(accounts: AccountStore, openSecret: OpenSecret): RootSecretOf {
  const opened = new Map<string, Uint8Array>();
  return async (accountId) => {
    const known = opened.get(accountId);
    if (known !== undefined) return known;
    const account = await accounts.find(accountId);
    if (account === null) throw new Error(`Account ${accountId} has no row.`);
    const place = { table: "accounts", row: accountId, column: "sealed_root_secret" };
    const secret = openSecret(accountId, account.sealedRootSecret, place);
    if (opened.size >= ROOT_SECRETS_REMEMBERED_MAX) opened.clear();
    opened.set(accountId, secret);
    return secret;
  };
}
