import { callerOfKey } from "../accounts/authenticate.ts";
import type { Caller } from "../core/roles.ts";
import type { Clock } from "../core/clock.ts";
import type { AccountStore } from "../core/account-store.ts";
import type { BulkJob, BulkStore } from "../core/bulk-job.ts";

interface JobCallerDeps {
  readonly accounts: Pick<AccountStore, "findKey" | "replacedBy">;
  readonly bulk: Pick<BulkStore, "member">;
  readonly isStopped: (accountId: string) => boolean;
  readonly clock: Pick<Clock, "now">;
}

/** Whoever began a job, with the rights that they have now; null: the key was revoked or has expired, or the person has left. */
export function createJobCaller({ accounts, bulk, isStopped, clock }: JobCallerDeps) {
  return async ({ accountId, keyId, personId, createdBy, client }: BulkJob): Promise<Caller | null> => {
    if (isStopped(accountId)) return null;
    if (keyId === "") {
      const person = await bulk.member(accountId, personId);
      if (person === null) return null;
      const named = { keyId: null, keyName: person.email, personId, actor: createdBy };
      return { accountId, ...named, role: person.role, hold: "none", client };
    }
    const key = await accounts.findKey(accountId, keyId);
    if (key === null || key.revokedAt !== null) return null;
    if (key.expiresAt !== null && clock.now() >= key.expiresAt) return null;
    const replaced = key.replaces === null ? [] : await accounts.replacedBy(keyId);
    // It is read again before each step, so nothing has to be told of a revocation.
    return { ...callerOfKey(key, replaced, new AbortController().signal), client };
  };
}
