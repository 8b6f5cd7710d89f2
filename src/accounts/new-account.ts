import type { Ids } from "../ports/ids.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { Account } from "../ports/accounts.ts";

export interface NewAccountDeps {
  readonly secrets: Pick<Secrets, "seal" | "newRootSecret">;
  readonly ids: Pick<Ids, "account">;
}

/** The row of a new account, with a root secret of its own. */
export function newAccount({ secrets, ids }: NewAccountDeps, now: Date): Account {
  const id = ids.account();
  const place = { table: "accounts", row: id, column: "sealed_root_secret" };
  return { id, sealedRootSecret: secrets.seal(secrets.newRootSecret(), place), createdAt: now };
}
