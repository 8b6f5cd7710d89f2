import type { ListedHost } from "../domain/callback-host.ts";
import { auditOf } from "../domain/audit.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import { CALLBACK_HOSTS_MAX } from "../domain/limits.ts";
import type { CallbackHostStore } from "../ports/callback-hosts.ts";
import type { AuditStore } from "../ports/audit.ts";
import type { Clock } from "../ports/clock.ts";

export interface CallbackHostDeps {
  readonly callbackHosts: CallbackHostStore;
  readonly audit: Pick<AuditStore, "record">;
  readonly clock: Pick<Clock, "now">;
}

/** Where callbacks of keys with a hold may go, for owners. A host has been brought into its normal form. */
export type CallbackHostService = ReturnType<typeof createCallbackHostService>;

export function createCallbackHostService({ callbackHosts, audit, clock }: CallbackHostDeps) {
  const record = (caller: Caller, host: string, change: "added" | "removed") =>
    audit.record(auditOf(caller, { kind: "callback_hosts_changed", subject: host, detail: { change } }, clock.now()));
  return {
    async list(caller: Caller): Promise<readonly ListedHost[]> {
      authorize(caller, "manage");
      return callbackHosts.list(caller.accountId);
    },

    /** One that is listed already stays as it is. Throws `validation_error` where the account lists too many. */
    async add(caller: Caller, host: string): Promise<ListedHost> {
      authorize(caller, "manage");
      const now = clock.now();
      const added = await callbackHosts.add(caller.accountId, host, now);
      if (added === "full") {
        const message = `An account lists at most ${CALLBACK_HOSTS_MAX} hosts. Remove one first.`;
        throw new DomainError("validation_error", message, [{ field: "host", message }]);
      }
      await record(caller, host, "added");
      const listed = await callbackHosts.list(caller.accountId);
      return listed.find((one) => one.host === host) ?? { host, createdAt: now };
    },

    /** Callbacks to it that still wait are given up when they are due. Throws `not_found` where it is not listed. */
    async remove(caller: Caller, host: string): Promise<void> {
      authorize(caller, "manage");
      if (await callbackHosts.remove(caller.accountId, host)) return record(caller, host, "removed");
      throw new DomainError("not_found", "This host is not listed.");
    },
  };
}
