import { auditOf } from "../domain/audit.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import type { UnfinishedOnRevoke } from "../domain/pause.ts";
import { DomainError } from "../domain/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { AccountStore, Revocation } from "../ports/accounts.ts";
import type { Authenticate } from "./authenticate.ts";

/** What becomes of the actions of a key that is revoked. */
export interface PauseRevoked {
  forRevoked(caller: Caller, keyId: string, cancels: boolean): NonNullable<Revocation["pause"]>;
  whileRevoking<T>(caller: Caller, keyId: string, revoke: () => Promise<T>): Promise<T>;
  /** Returns before anything is cancelled. */
  beginCancelRest(): void;
}

export interface RevokeKeyDeps {
  readonly accounts: Pick<AccountStore, "revokeKey">;
  readonly pauseService: PauseRevoked;
  readonly clock: Pick<Clock, "now">;
  readonly forget: Authenticate["forget"];
}

/**
 * Revokes a key of the caller's account, for good; twice is the same as once. Throws `not_found` for any other. The caller's
 * own key is no exception, and neither is the account's last: one that leaked has to go at once. `outgate new-owner-key`
 * makes another on the server's machine, and so does a new `BOOTSTRAP_API_KEY`; a revoked one stays revoked. What the key
 * created goes on unless `unfinished` says otherwise: paused or cancelled, nothing of it is claimed after this resolves.
 */
export function createRevokeKey({ accounts, pauseService, clock, forget }: RevokeKeyDeps) {
  return async (caller: Caller, id: string, unfinished: UnfinishedOnRevoke = "keep"): Promise<void> => {
    authorize(caller, "manage");
    const { accountId } = caller;
    const now = clock.now();
    const audit = auditOf(caller, { kind: "key_revoked", subject: id, detail: { unfinished } }, now);
    const pause = unfinished === "keep" ? {} : { pause: pauseService.forRevoked(caller, id, unfinished === "cancel") };
    const write = () => accounts.revokeKey(accountId, id, now, { audit, ...pause });
    const revoked = await (unfinished === "keep" ? write() : pauseService.whileRevoking(caller, id, write));
    if (revoked === null) throw new DomainError("not_found", "There is no such key.");
    // After the write: whoever asks the store from now on is told that it is revoked.
    forget(revoked.hash);
    // However much it is, nothing of it is sent any more: nobody has to wait for it.
    if (unfinished === "cancel") pauseService.beginCancelRest();
  };
}
