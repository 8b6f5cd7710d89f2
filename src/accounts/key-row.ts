import type { Hold, KeyScope, Role } from "../domain/roles.ts";
import type { Ids } from "../ports/ids.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { ApiKey } from "../ports/accounts.ts";

export interface NewKeyRow {
  readonly accountId: string;
  /** In clear; the row holds its hash and its last four characters. */
  readonly key: string;
  readonly name: string;
  readonly role: Role;
  readonly hold: Hold;
  readonly scope?: KeyScope;
  readonly replaces?: string | null;
  readonly now: Date;
}

/** The row of a new key. */
export function keyRow(
  { secrets, ids }: { readonly secrets: Pick<Secrets, "hash">; readonly ids: Pick<Ids, "key"> },
  { key, now, scope = "own", replaces = null, ...rest }: NewKeyRow,
): ApiKey {
  return {
    ...rest,
    scope,
    replaces,
    id: ids.key(),
    hash: secrets.hash(key),
    last4: key.slice(-4),
    createdAt: now,
    lastUsedAt: null,
    revokedAt: null,
  };
}
