import { authorize, type Caller, viewerOf } from "../core/roles.ts";
import { DomainError, invalidField } from "../core/domain-error.ts";
import { type AuditDetail, type AuditEntry, auditOf } from "../core/audit.ts";
import { HOST_SETTINGS_MAX } from "../core/limits.ts";
import type { CredentialStore } from "../core/credential.ts";
import { hostSettingsJson } from "../api/host-settings.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import type { Clock } from "../core/clock.ts";
import {
  ALL_HOSTS,
  type HostSettings,
  type HostSettingsRow,
  type HostSettingsStore,
  type KnownHostSettings,
  NO_HOST_SETTINGS,
} from "../core/host-settings.ts";

interface HostServiceDeps {
  readonly hostSettings: HostSettingsStore;
  readonly known: Pick<KnownHostSettings, "refresh">;
  readonly clock: Pick<Clock, "now">;
  readonly credentials: Pick<CredentialStore, "list">;
  /** The server's own limit of calls at a time (`DISPATCH_PER_HOST`). */
  readonly perHost: number;
}

/** The settings of an account. */
interface AccountHostSettings {
  /** By host. */
  readonly hosts: readonly HostSettingsRow[];
  readonly defaults: HostSettings;
}

/** Every use case of the settings of hosts. Takes normalized hosts. */
export type HostService = ReturnType<typeof createHostService>;

export function createHostService({ hostSettings, known, credentials, clock, perHost }: HostServiceDeps) {
  const put = async (caller: Caller, host: string, settings: HostSettings): Promise<HostSettingsRow> => {
    authorize(caller, "manage");
    const { accountId, actor: updatedBy } = caller;
    const row = { accountId, host, settings, updatedAt: clock.now(), updatedBy };
    const written = await hostSettings.put(row, changeOf(caller, host, settings, row.updatedAt));
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
    async list(caller: Caller): Promise<AccountHostSettings> {
      authorize(caller, "read");
      const viewer = viewerOf(caller.role);
      const rows = await hostSettings.list(caller.accountId);
      // Which credentials there are is no business of keys that may not use them.
      const others = (row: HostSettingsRow) => ({
        ...row,
        settings: { ...row.settings, defaultCredential: null },
        updatedBy: maskedActor(row.updatedBy, viewer),
      });
      const shown = caller.role === "owner" ? rows : rows.map(others);
      return {
        hosts: shown.filter(({ host }) => host !== ALL_HOSTS),
        defaults: rows.find(({ host }) => host === ALL_HOSTS)?.settings ?? NO_HOST_SETTINGS,
      };
    },

    /** Sets everything of one host; what is null is removed. Throws `validation_error` beyond a limit. */
    async put(caller: Caller, host: string, settings: HostSettings): Promise<HostSettingsRow> {
      authorize(caller, "manage");
      if (settings.maxConcurrent !== null && settings.maxConcurrent > perHost) {
        const message = `This server sends at most ${perHost} calls of an account to a host at a time (DISPATCH_PER_HOST).`;
        throw invalidField("max_concurrent", message);
      }
      const { defaultCredential: name } = settings;
      if (name !== null && !(await credentials.list(caller.accountId)).some((one) => one.name === name)) {
        throw invalidField("default_credential", "This account has no credential of this name.");
      }
      return put(caller, host, settings);
    },

    /** Sets everything for all hosts of the account; what is null is removed. */
    putDefaults: (caller: Caller, settings: HostSettings): Promise<HostSettingsRow> => put(caller, ALL_HOSTS, settings),

    /** Throws `not_found` if the host has no settings. */
    async remove(caller: Caller, host: string): Promise<void> {
      authorize(caller, "manage");
      const audit = changeOf(caller, host, null, clock.now());
      if (!(await hostSettings.remove(caller.accountId, host, audit))) {
        throw new DomainError("not_found", "This host has no settings.");
      }
      await known.refresh(caller.accountId);
    },
  };
}

function changeOf(caller: Caller, host: string, settings: HostSettings | null, at: Date): AuditEntry {
  const detail: AuditDetail = settings === null ? { change: "removed" } : { change: "set", ...detailOf(settings) };
  return auditOf(caller, { kind: "host_settings_changed", subject: host, detail }, at);
}

/** What is set, by the names of the API. */
function detailOf(settings: HostSettings): AuditDetail {
  const members = Object.entries(hostSettingsJson(settings)).flatMap(([name, value]): [string, string | number][] => {
    if (Array.isArray(value)) return [[name, value.join(", ")]];
    return typeof value === "object" ? Object.entries(value) : [[name, value]];
  });
  return Object.fromEntries(members);
}
