import Type from "typebox";
import {
  hostSettingsFrom,
  hostSettingsJson,
  NO_HOST_SETTINGS,
  PutDefaultsBody,
  PutHostSettingsBody,
} from "../api/host-settings.ts";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { type AuditDetail, auditEntry } from "../core/audit.ts";
import { DomainError, invalidField } from "../core/domain-error.ts";
import { ALL_HOSTS, type HostSettings, type HostSettingsRow, type KnownHostSettings } from "../core/host-settings.ts";
import { HOST_SETTINGS_MAX } from "../core/limits.ts";
import { authorize, type Caller, roleViewer } from "../core/roles.ts";
import { checkHost, NOT_A_HOST } from "../core/target.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import type { AppContext } from "../runtime/app-context.ts";

/** Differs after each change; undefined: nothing is set. */
function settingsVersion(row: HostSettingsRow | undefined): string {
  return row?.updatedAt.toISOString() ?? "";
}

const CHANGED_SINCE =
  "Someone has changed these settings since you opened them. Open them again to see the change, or save again to replace it.";

/** Every use case of the settings of hosts. Takes normalized hosts. */
export type HostService = ReturnType<typeof createHostService>;

export function createHostService(
  { store: { hostSettings, credentials }, clock, config: { dispatchPerHost: perHost } }: AppContext,
  known: Pick<KnownHostSettings, "refresh">,
) {
  const put = async (
    caller: Caller,
    host: string,
    settings: HostSettings,
    shown: string | null,
  ): Promise<HostSettingsRow> => {
    authorize(caller, "manage");
    const { accountId, actor: updatedBy } = caller;
    const before = shown === null ? undefined : (await hostSettings.list(accountId)).find((row) => row.host === host);
    if (shown !== null && shown !== settingsVersion(before)) throw invalidField("version", CHANGED_SINCE);
    const row = { accountId, host, settings, updatedAt: clock.now(), updatedBy };
    const detail = { change: "set", ...auditDetail(settings) };
    const audit = auditEntry(caller, { kind: "host_settings_changed", subject: host, detail }, row.updatedAt);
    // Two at once have both read the same.
    const written = await hostSettings.put(row, audit, shown === null ? undefined : (before?.updatedAt ?? null));
    if (written === "changed") throw invalidField("version", CHANGED_SINCE);
    if (written === "full") {
      throw invalidField(
        "host",
        `An account has settings for at most ${HOST_SETTINGS_MAX} hosts. Remove those of another host first.`,
      );
    }
    await known.refresh(accountId);
    return row;
  };
  return {
    /** The settings of each host, and those for all hosts. */
    async list(caller: Caller) {
      authorize(caller, "read");
      const viewer = roleViewer(caller.role);
      const rows = await hostSettings.list(caller.accountId);
      // Keys must not see credentials that they may not use.
      const others = (row: HostSettingsRow) => ({
        ...row,
        settings: { ...row.settings, defaultCredential: null },
        updatedBy: maskedActor(row.updatedBy, viewer),
      });
      const shown = caller.role === "owner" ? rows : rows.map(others);
      return {
        hosts: shown.filter(({ host }) => host !== ALL_HOSTS),
        defaults: rows.find(({ host }) => host === ALL_HOSTS)?.settings ?? NO_HOST_SETTINGS,
        /** Of a host, or of all hosts. */
        settingsVersion: (host: string) => settingsVersion(rows.find((row) => row.host === host)),
      };
    },

    /**
     * Sets everything of one host; what is null is removed. `shown`: what `list` said when its settings were shown; null: it
     * doesn't matter. Throws `validation_error` for another version, and beyond a limit.
     */
    async put(
      caller: Caller,
      host: string,
      settings: HostSettings,
      shown: string | null = null,
    ): Promise<HostSettingsRow> {
      authorize(caller, "manage");
      if (settings.maxConcurrent !== null && settings.maxConcurrent > perHost) {
        const message = `This server sends at most ${perHost} calls of an account to a host at a time (DISPATCH_PER_HOST).`;
        throw invalidField("max_concurrent", message);
      }
      const { defaultCredential: name } = settings;
      if (name !== null && !(await credentials.list(caller.accountId)).some((one) => one.name === name)) {
        throw invalidField("default_credential", "This account has no credential of this name.");
      }
      return put(caller, host, settings, shown);
    },

    /** Sets everything for all hosts of the account; what is null is removed. */
    putDefaults: (caller: Caller, settings: HostSettings, shown: string | null = null): Promise<HostSettingsRow> =>
      put(caller, ALL_HOSTS, settings, shown),

    /** Throws `not_found` if the host has no settings. */
    async remove(caller: Caller, host: string): Promise<void> {
      authorize(caller, "manage");
      const entry = { kind: "host_settings_changed", subject: host, detail: { change: "removed" } } as const;
      if (!(await hostSettings.remove(caller.accountId, host, auditEntry(caller, entry, clock.now())))) {
        throw new DomainError("not_found", "This host has no settings.");
      }
      await known.refresh(caller.accountId);
    },
  };
}

/** What is set, by the names of the API. */
function auditDetail(settings: HostSettings): AuditDetail {
  const members = Object.entries(hostSettingsJson(settings)).flatMap(
    ([name, value]): [string, AuditDetail[string]][] => {
      if (Array.isArray(value)) return [[name, value.join(", ")]];
      return typeof value === "object" ? Object.entries(value) : [[name, value]];
    },
  );
  return Object.fromEntries(members);
}

export const SettingsJson = t.answerObject(
  "Settings",
  "What the account sets for calls to every host; only what is set.",
  PutDefaultsBody.properties,
);

export const HostSettingsJson = t.answerObject("HostSettings", "What applies to calls of the account to one host.", {
  host: t.plainText("The host, with its port unless that is the scheme's default.", "api.example.com"),
  ...PutHostSettingsBody.properties,
  updated_at: t.dateTime("When it was set."),
  updated_by: t.plainText("Who set it.", "key:owner"),
});

export const HostSettingsListJson = t.answerObject(
  "HostSettingsList",
  "The settings of hosts, and those of the account for all hosts.",
  {
    data: Type.Array(HostSettingsJson, {
      description: `The hosts with settings, in alphabetical order; at most ${HOST_SETTINGS_MAX}.`,
    }),
    defaults: SettingsJson,
  },
);

const serialize = ({ settings, ...row }: HostSettingsRow) => toJson(HostSettingsJson, { ...settings, ...row });

const HostParams = pathParams(
  Type.Object({ host: t.hostSchema("The host of a target, with its port unless that is the scheme's default.") }),
  `There is no such host. ${NOT_A_HOST}`,
);

/** The settings of hosts, and those of the account for all hosts. */
export function hostRoutes({ hostService }: { readonly hostService: HostService }) {
  return createApiRoutes()
    .get(
      "/v1/hosts",
      async ({ caller }) => {
        const { hosts, defaults } = await hostService.list(caller);
        return jsonResponse({ data: hosts.map(serialize), defaults: hostSettingsJson(defaults) });
      },
      operation({
        operationId: "listHosts",
        permission: "read",
        summary: "List what is set for hosts, and for the account",
        description: "An action's own settings come first, then those of its host, then `defaults`, then the server's.",
        answers: { 200: { description: "The settings.", schema: HostSettingsListJson } },
      }),
    )
    .put(
      "/v1/hosts/:host",
      async ({ caller, params, body }) =>
        jsonResponse(
          serialize(await hostService.put(caller, checkHost(params.host, "not_found"), hostSettingsFrom(body))),
        ),
      operation({
        operationId: "putHost",
        permission: "manage",
        summary: "Set what applies to calls of the account to one host",
        description: "Replaces all settings of the host.",
        notes: [
          "They apply to waiting actions too: they are looked up when an attempt begins and when it ends.",
          "Other nodes follow within 5 seconds.",
        ],
        params: HostParams,
        body: jsonBody(PutHostSettingsBody),
        answers: { 200: { description: "The settings of the host.", schema: HostSettingsJson } },
      }),
    )
    .delete(
      "/v1/hosts/:host",
      ({ caller, params }) => noContent(hostService.remove(caller, checkHost(params.host, "not_found"))),
      operation({
        operationId: "removeHost",
        permission: "manage",
        summary: "Remove the settings of one host",
        description: "Removes the settings of the host. Those of the account and of the server apply then.",
        params: HostParams,
        answers: { 204: { description: "The host has no settings.", schema: null } },
      }),
    )
    .put(
      "/v1/defaults",
      async ({ caller, body }) => {
        const { settings } = await hostService.putDefaults(caller, hostSettingsFrom(body));
        return jsonResponse(hostSettingsJson(settings));
      },
      operation({
        operationId: "putDefaults",
        permission: "manage",
        summary: "Set what applies to calls of the account to every host",
        description: "Replaces all settings for hosts of the account.",
        notes: ["They apply where neither the action nor its host has a setting."],
        body: jsonBody(PutDefaultsBody),
        answers: { 200: { description: "The settings of the account.", schema: SettingsJson } },
      }),
    );
}
