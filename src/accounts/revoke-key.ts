import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { AccountStore } from "../ports/accounts.ts";
import type { Authenticate } from "./authenticate.ts";

export interface RevokeKeyDeps {
  readonly accounts: Pick<AccountStore, "revokeKey">;
  readonly clock: Pick<Clock, "now">;
  readonly forget: Authenticate["forget"];
}

/**
 * Revokes a key of the caller's account, for good; twice is the same as once. Throws `not_found` for any other. The caller's
 * own key is no exception, and neither is the account's last: one that leaked has to go at once. `outgate new-owner-key`
 * makes another on the server's machine, and so does a new `BOOTSTRAP_API_KEY`; a revoked one stays revoked.
 */
export function createRevokeKey({ accounts, clock, forget }: RevokeKeyDeps) {
  return async (caller: Caller, id: string): Promise<void> => {
    authorize(caller, "manage");
    const revoked = await accounts.revokeKey(caller.accountId, id, clock.now());
    if (revoked === null) throw new DomainError("not_found", "There is no such key.");
    // After the write: whoever asks the store from now on is told that it is revoked.
    forget(revoked.hash);
  };
}
