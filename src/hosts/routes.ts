import {
  PutDefaults,
  SettingsJson,
  PutHostSettings,
  HostSettingsJson,
  HostSettingsListJson,
  hostSettingsFrom,
  hostSettingsJson,
  serializeHostSettings,
} from "../api/host-settings.ts";
import Type from "typebox";
import { hostSchema } from "../api/schema-helpers.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonOf, noContent } from "../http/response.ts";
import { checkHost } from "../core/target.ts";
import type { HostService } from "./service.ts";

const HostParams = pathParams(
  Type.Object({ host: hostSchema("The host of a target, with its port unless that is the scheme's default.") }),
  "There is no such host.",
);

/** The settings of hosts, and those of the account for all hosts. */
export function hostRoutes({ hostService }: { readonly hostService: HostService }) {
  return createApiRoutes()
    .get(
      "/v1/hosts",
      async ({ caller }) => {
        const { hosts, defaults } = await hostService.list(caller);
        return jsonOf({ data: hosts.map(serializeHostSettings), defaults: hostSettingsJson(defaults) });
      },
      LIST_HOSTS,
    )
    .put(
      "/v1/hosts/:host",
      async ({ caller, params, body }) => {
        const row = await hostService.put(caller, checkHost(params.host, "not_found"), hostSettingsFrom(body));
        return jsonOf(serializeHostSettings(row));
      },
      PUT_HOST,
    )
    .delete(
      "/v1/hosts/:host",
      ({ caller, params }) => noContent(hostService.remove(caller, checkHost(params.host, "not_found"))),
      REMOVE_HOST,
    )
    .put(
      "/v1/defaults",
      async ({ caller, body }) => {
        const { settings } = await hostService.putDefaults(caller, hostSettingsFrom(body));
        return jsonOf(hostSettingsJson(settings));
      },
      PUT_DEFAULTS,
    );
}

const LIST_HOSTS = operation({
  operationId: "listHosts",
  permission: "read",
  summary: "List what is set for hosts, and for the account",
  description: "Lists the settings of hosts, and the defaults.",
  notes: ["For what an action doesn't say, the settings of its host count, then `defaults`, then the server's."],
  answers: { 200: { description: "The settings.", schema: HostSettingsListJson } },
});

const PUT_HOST = operation({
  operationId: "putHost",
  permission: "manage",
  summary: "Set what applies to calls of the account to one host",
  description: "Replaces all settings of the host.",
  notes: [
    "They apply to waiting actions too: they are looked up when an attempt begins and when it ends.",
    "Of several nodes the others follow within 5 seconds.",
  ],
  params: HostParams,
  body: jsonBody(PutHostSettings),
  answers: { 200: { description: "The settings of the host.", schema: HostSettingsJson } },
});

const REMOVE_HOST = operation({
  operationId: "removeHost",
  permission: "manage",
  summary: "Remove the settings of one host",
  description: "Removes the settings of a host.",
  notes: ["Those of the account and of the server apply then."],
  params: HostParams,
  answers: { 204: { description: "The host has no settings.", schema: null } },
});

const PUT_DEFAULTS = operation({
  operationId: "putDefaults",
  permission: "manage",
  summary: "Set what applies to calls of the account to every host",
  description: "Replaces all settings for hosts of the account.",
  notes: ["They apply where neither the action nor the settings of its host say something."],
  body: jsonBody(PutDefaults),
  answers: { 200: { description: "The settings of the account.", schema: SettingsJson } },
});
