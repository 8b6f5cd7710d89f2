import type { AppContext } from "../runtime/app-context.ts";
import type { ListedHost } from "../core/account-store.ts";
import { auditOf } from "../core/audit.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { DomainError, invalidField } from "../core/domain-error.ts";
import { CALLBACK_HOSTS_MAX } from "../core/limits.ts";
import { normalHost } from "../core/target.ts";
import Type from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { createApiRoutes, jsonBody, operation } from "../http/operation.ts";
import { jsonOf, noContent } from "../http/response.ts";

/** Where keys with a hold or a limit may send callbacks. Takes normalized hosts. */
export type CallbackHostService = ReturnType<typeof createCallbackHostService>;

export function createCallbackHostService({ store: { callbackHosts }, clock }: AppContext) {
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
  host: t.hostSchema("Host name. With a port: that port only; without: the default port of the callback's scheme."),
  created_at: t.dateTime("When it was listed."),
};

const CallbackHostJson = t.answerObject(
  "CallbackHost",
  "A host to which callbacks of keys with a hold or a limit may go.",
  entry,
);

const CallbackHostListJson = t.answerObject("CallbackHostList", "The hosts that this account lists for callbacks.", {
  data: Type.Array(CallbackHostJson, {
    description: `The hosts in alphabetical order, at most ${CALLBACK_HOSTS_MAX}.`,
  }),
});

export const AddCallbackHost = t.requestObject("AddCallbackHost", "The host to list.", { host: entry.host });

/** The normal form of a host. Throws `code` if the text is no host, such as a URL or a pattern. */
export function checkCallbackHost(text: string, code: "validation_error" | "invalid_query"): string {
  const host = text.includes("*") ? null : normalHost(text);
  if (host !== null) return host;
  const message =
    "Must be a host name or an IP address, with or without a port, like hooks.example.com or 10.0.0.7:8080.";
  throw new DomainError(code, "The host is not valid.", [{ field: "host", message }]);
}

export function callbackHostRoutes({ callbackHosts }: { readonly callbackHosts: CallbackHostService }) {
  return createApiRoutes()
    .get(
      "/v1/callback-hosts",
      async ({ caller }) => jsonOf(toJson(CallbackHostListJson, { data: await callbackHosts.list(caller) })),
      operation({
        operationId: "listCallbackHosts",
        permission: "manage",
        summary: "List the hosts for callbacks of keys with a hold or a limit",
        description: "Lists the hosts that keys with a hold or a limit can use in `callback`.",
        notes: ["Callbacks of keys without a hold and without limits may go to other hosts too."],
        answers: { 200: { description: "The hosts.", schema: CallbackHostListJson } },
      }),
    )
    .post(
      "/v1/callback-hosts",
      async ({ caller, body }) => {
        const host = checkCallbackHost(body.host, "validation_error");
        return jsonOf(toJson(CallbackHostJson, await callbackHosts.add(caller, host)));
      },
      operation({
        operationId: "addCallbackHost",
        permission: "manage",
        summary: "Allow callbacks of keys with a hold or a limit to a host",
        description: "Adds a host to those that a key with a hold or a limit can use in `callback`.",
        notes: ["Adding a listed host changes nothing.", `An account can list up to ${CALLBACK_HOSTS_MAX} hosts.`],
        body: jsonBody(AddCallbackHost),
        answers: { 200: { description: "The host, listed.", schema: CallbackHostJson } },
      }),
    )
    .delete(
      "/v1/callback-hosts",
      ({ caller, query }) => noContent(callbackHosts.remove(caller, checkCallbackHost(query.host, "invalid_query"))),
      operation({
        operationId: "removeCallbackHost",
        permission: "manage",
        summary: "Remove a host from the list for callbacks of keys with a hold or a limit",
        description:
          "Removes a host at once. Waiting callbacks to it are given up at their next attempt, and the timeline says so.",
        query: t.closedObject({ host: entry.host }),
        answers: { 204: { description: "The host was removed from the list.", schema: null } },
        errors: ["not_found"],
      }),
    );
}
