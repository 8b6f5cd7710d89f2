import type { Store } from "../core/store.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { ListedHost } from "../core/account-store.ts";
import { auditOf } from "../core/audit.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { DomainError, invalidField } from "../core/domain-error.ts";
import { CALLBACK_HOSTS_MAX } from "../core/limits.ts";
import { normalHost } from "../core/target.ts";
import Type, { type Static } from "typebox";
import { dateTime, hostSchema, answerObject, requestObject, closedObject } from "../api/schema-helpers.ts";

type CallbackHostDeps = Pick<Store, "callbackHosts"> & Pick<AppContext, "clock">;

/** Manages the hosts to which keys with a hold or a limit may send callbacks; for owners. Takes normalized hosts. */
export type CallbackHostService = ReturnType<typeof createCallbackHostService>;

export function createCallbackHostService({ callbackHosts, clock }: CallbackHostDeps) {
  const changeOf = (caller: Caller, host: string, change: "added" | "removed", at: Date) =>
    auditOf(caller, { kind: "callback_hosts_changed", subject: host, detail: { change } }, at);
  return {
    async list(caller: Caller): Promise<readonly ListedHost[]> {
      authorize(caller, "manage");
      return callbackHosts.list(caller.accountId);
    },

    /** Idempotent. Throws `validation_error` if the account lists too many hosts. */
    async add(caller: Caller, host: string): Promise<ListedHost> {
      authorize(caller, "manage");
      const { accountId } = caller;
      const row = { accountId, host, createdAt: clock.now() };
      if ((await callbackHosts.put(row, changeOf(caller, host, "added", row.createdAt))) === "full") {
        throw invalidField("host", `An account lists at most ${CALLBACK_HOSTS_MAX} hosts. Remove one first.`);
      }
      return (await callbackHosts.list(accountId)).find((one) => one.host === host) ?? row;
    },

    /** Waiting callbacks to the host are dropped when they are due. Throws `not_found` if it is not listed. */
    async remove(caller: Caller, host: string): Promise<void> {
      authorize(caller, "manage");
      if (await callbackHosts.remove(caller.accountId, host, changeOf(caller, host, "removed", clock.now()))) return;
      throw new DomainError("not_found", "This host is not listed.");
    },
  };
}

const entry = {
  host: hostSchema("Host name. With a port: that port only; without: the default port of the callback's scheme."),
  created_at: dateTime("When it was listed."),
};

/** A host to which callbacks of keys with a hold or a limit may go. */
export const CallbackHostJson = answerObject(
  "CallbackHost",
  "A host to which callbacks of keys with a hold or a limit may go.",
  entry,
);

export type CallbackHostJson = Static<typeof CallbackHostJson>;

export const CallbackHostListJson = answerObject(
  "CallbackHostList",
  "The hosts that this account lists for callbacks.",
  {
    data: Type.Array(CallbackHostJson, {
      description: `The hosts in alphabetical order, at most ${CALLBACK_HOSTS_MAX}.`,
    }),
  },
);

export const AddCallbackHost = requestObject("AddCallbackHost", "The host to list.", { host: entry.host });

export const RemoveCallbackHostQuery = closedObject({ host: entry.host });

/** The normal form of a host. Throws `code` if the text is no host, such as a URL or a pattern. */
export function checkCallbackHost(text: string, code: "validation_error" | "invalid_query"): string {
  const host = text.includes("*") ? null : normalHost(text);
  if (host !== null) return host;
  const message =
    "Must be a host name or an IP address, with or without a port, like hooks.example.com or 10.0.0.7:8080.";
  throw new DomainError(code, "The host is not valid.", [{ field: "host", message }]);
}

/** A listed host as the API shows it. */
export function serializeCallbackHost({ host, createdAt }: ListedHost): CallbackHostJson {
  return { host, created_at: createdAt.toISOString() };
}
