import { callerOfKey } from "../accounts/authenticate.ts";
import type { Caller } from "../core/roles.ts";
import type { Clock } from "../core/clock.ts";
import type { AccountStore } from "../core/account-store.ts";
import type { BulkJob, BulkStore } from "../core/bulk-job.ts";
import type { ActionService } from "../actions/service.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { type JobLeases, NO_JOB_LEASES } from "../runtime/job-leases.ts";
import { BulkRunner } from "./runner.ts";
import { createBulkService } from "./service.ts";

interface BulkNeeds {
  readonly actionService: ActionService;
  readonly isStopped: (accountId: string) => boolean;
  /** By default those of the only process of a database. */
  readonly leases?: JobLeases | undefined;
}

/** The service of bulk jobs, and what carries them out. */
export function createBulk(app: AppContext, { actionService, isStopped, leases = NO_JOB_LEASES }: BulkNeeds) {
  const { store, clock, ids, log } = app;
  const { actions, bulk } = store;
  const callerOf = createJobCaller({ ...store, isStopped, clock });
  const bulkRunner = new BulkRunner({ clock, log, bulk, actions, decide: actionService, callerOf, leases });
  return { bulkService: createBulkService({ clock, ids, bulk, actions, runner: bulkRunner }), bulkRunner };
}

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
