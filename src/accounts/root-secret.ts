import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore } from "../ports/accounts.ts";

/** Opens the root secret of an account, from which its signing secrets are derived. Throws when there is no account. */
export type RootSecretOf = (accountId: string) => Promise<Uint8Array>;

const REMEMBERED_MAX = 10_000;

/** Remembers opened secrets: each attempt signs, and a root secret never changes. */
export function createRootSecretOf(accounts: AccountStore, secrets: Pick<Secrets, "open">): RootSecretOf {
  const opened = new Map<string, Uint8Array>();
  return async (accountId) => {
    const known = opened.get(accountId);
    if (known !== undefined) return known;
    const account = await accounts.find(accountId);
    if (account === null) throw new Error(`Account ${accountId} has no row.`);
    const place = { table: "accounts", row: accountId, column: "sealed_root_secret" };
    const secret = secrets.open(account.sealedRootSecret, place);
    if (opened.size >= REMEMBERED_MAX) opened.clear();
    opened.set(accountId, secret);
    return secret;
  };
}
