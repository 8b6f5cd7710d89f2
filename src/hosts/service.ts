import { authorize, type Caller, viewerOf } from "../core/roles.ts";
import { DomainError, invalidField } from "../core/domain-error.ts";
import { type AuditDetail, type AuditEntry, auditOf } from "../core/audit.ts";
import { HOST_SETTINGS_MAX } from "../core/limits.ts";
import type { CredentialStore } from "../core/credential.ts";
import { hostRulesJson } from "../api/host-settings.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import type { Clock } from "../core/clock.ts";
import {
  ALL_HOSTS,
  type HostRules,
  type HostSettingsRow,
  type HostSettingsStore,
  type KnownHostSettings,
  NO_HOST_RULES,
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
  readonly defaults: HostRules;
}

/** Every use case of the settings of hosts. Takes normalized hosts. */
export type HostService = ReturnType<typeof createHostService>;

export function createHostService({ hostSettings, known, credentials, clock, perHost }: HostServiceDeps) {
  const put = async (caller: Caller, host: string, rules: HostRules): Promise<HostSettingsRow> => {
    authorize(caller, "manage");
    const { accountId, actor: updatedBy } = caller;
    const row = { accountId, host, rules, updatedAt: clock.now(), updatedBy };
    const written = await hostSettings.put(row, changeOf(caller, host, rules, row.updatedAt));
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
        rules: { ...row.rules, defaultCredential: null },
        updatedBy: maskedActor(row.updatedBy, viewer),
      });
      const shown = caller.role === "owner" ? rows : rows.map(others);
      return {
        hosts: shown.filter(({ host }) => host !== ALL_HOSTS),
        defaults: rows.find(({ host }) => host === ALL_HOSTS)?.rules ?? NO_HOST_RULES,
      };
    },

    /** Sets everything of one host; what is null is removed. Throws `validation_error` beyond a limit. */
    async put(caller: Caller, host: string, rules: HostRules): Promise<HostSettingsRow> {
      authorize(caller, "manage");
      if (rules.maxConcurrent !== null && rules.maxConcurrent > perHost) {
        const message = `This server sends at most ${perHost} calls of an account to a host at a time (DISPATCH_PER_HOST).`;
        throw invalidField("max_concurrent", message);
      }
      const { defaultCredential: name } = rules;
      if (name !== null && !(await credentials.list(caller.accountId)).some((one) => one.name === name)) {
        throw invalidField("default_credential", "This account has no credential of this name.");
      }
      return put(caller, host, rules);
    },

    /** Sets everything for all hosts of the account; what is null is removed. */
    putDefaults: (caller: Caller, rules: HostRules): Promise<HostSettingsRow> => put(caller, ALL_HOSTS, rules),

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

function changeOf(caller: Caller, host: string, rules: HostRules | null, at: Date): AuditEntry {
  const detail: AuditDetail = rules === null ? { change: "removed" } : { change: "set", ...detailOf(rules) };
  return auditOf(caller, { kind: "host_settings_changed", subject: host, detail }, at);
}

/** What is set, by the names of the API. */
function detailOf(rules: HostRules): AuditDetail {
  const members = Object.entries(hostRulesJson(rules)).flatMap(([name, value]): [string, string | number][] => {
    if (Array.isArray(value)) return [[name, value.join(", ")]];
    return typeof value === "object" ? Object.entries(value) : [[name, value]];
  });
  return Object.fromEntries(members);
}
