import { AccountCache } from "../core/account-cache.ts";
import type { Action } from "../core/action.ts";
import { ownRules } from "../core/extras.ts";
import { authorize, type Caller, viewerOf } from "../core/roles.ts";
import { type AttemptRules, type EffectiveRules, NO_RULES, rulesOf } from "../core/rules.ts";
import { DomainError } from "../core/domain-error.ts";
import { type AuditDetail, type AuditEntry, auditOf } from "../core/audit.ts";
import { HOST_SETTINGS_MAX } from "../core/limits.ts";
import { maskedActor } from "../receipts/masked-action.ts";
import type { Clock } from "../core/clock.ts";
import {
  ALL_HOSTS,
  type HostLimits,
  type HostRules,
  type HostSettingsRow,
  type HostSettingsStore,
  NO_HOST_RULES,
} from "../core/host-settings.ts";

interface HostServiceDeps {
  readonly hostSettings: HostSettingsStore;
  readonly known: Pick<KnownHostSettings, "refresh">;
  readonly clock: Pick<Clock, "now">;
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

export function createHostService({ hostSettings, known, clock, perHost }: HostServiceDeps) {
  const put = async (caller: Caller, host: string, rules: HostRules): Promise<HostSettingsRow> => {
    authorize(caller, "manage");
    const { accountId, actor: updatedBy } = caller;
    const row = { accountId, host, rules, updatedAt: clock.now(), updatedBy };
    const written = await hostSettings.put(row, changeOf(caller, host, rules, row.updatedAt));
    if (written === "full") {
      const message = `An account has settings for at most ${HOST_SETTINGS_MAX} hosts. Remove those of another host first.`;
      throw new DomainError("validation_error", message, [{ field: "host", message }]);
    }
    await known.refresh(accountId);
    return row;
  };
  return {
    async list(caller: Caller): Promise<AccountHostSettings> {
      authorize(caller, "read");
      const viewer = viewerOf(caller.role);
      const rows = await hostSettings.list(caller.accountId);
      const shown =
        caller.role === "owner" ? rows : rows.map((row) => ({ ...row, updatedBy: maskedActor(row.updatedBy, viewer) }));
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
        throw new DomainError("validation_error", message, [{ field: "max_concurrent", message }]);
      }
      return put(caller, host, rules);
    },

    /** Sets everything for all hosts of the account; what is null is removed. */
    putDefaults: (caller: Caller, rules: AttemptRules): Promise<HostSettingsRow> =>
      put(caller, ALL_HOSTS, { ...NO_HOST_RULES, ...rules }),

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

function detailOf({ timeoutMs, backoff, giveUpOn, maxPerSecond, maxConcurrent }: HostRules): AuditDetail {
  return {
    ...(timeoutMs !== null && { timeout_ms: timeoutMs }),
    ...(backoff !== null && { base_ms: backoff.baseMs, cap_ms: backoff.capMs }),
    ...(giveUpOn !== null && { give_up_on: giveUpOn.join(", ") }),
    ...(maxPerSecond !== null && { max_per_second: maxPerSecond }),
    ...(maxConcurrent !== null && { max_concurrent: maxConcurrent }),
  };
}

const NO_LIMITS: HostLimits = { maxPerSecond: null, maxConcurrent: null };

/** The account and host of an action. */
interface Called {
  readonly accountId: string;
  readonly host: string;
}

/** The settings of all hosts, for what may be claimed and how it is sent. */
export class KnownHostSettings extends AccountCache<HostSettingsRow, ReadonlyMap<string, HostRules>> {
  readonly #server: EffectiveRules;

  /** `server`: what applies where an account sets nothing. */
  constructor(store: Pick<HostSettingsStore, "list" | "version">, server: EffectiveRules) {
    super(store, (rows) => new Map(rows.map(({ host, rules }) => [host, rules])));
    this.#server = server;
  }

  /** What limits the calls of an account to a host, beside the server. */
  readonly limitsOf = ({ accountId, host }: Called): HostLimits => this.viewOf(accountId)?.get(host) ?? NO_LIMITS;

  /** What applies to attempts of an action: its own rules, then those of the host, of the account, of the server. */
  readonly rulesOf = (action: Called & Pick<Action, "extras">): EffectiveRules =>
    this.#rulesOf(action, ownRules(action.extras));

  /** How long an attempt may take, as far as its action does not say. */
  readonly timeoutOf = (called: Called): number => this.#rulesOf(called, null).timeoutMs;

  #rulesOf({ accountId, host }: Called, own: AttemptRules | null): EffectiveRules {
    const ofAccount = this.viewOf(accountId);
    if (ofAccount === undefined && own === null) return this.#server;
    const ofHost = [ofAccount?.get(host) ?? NO_RULES, ofAccount?.get(ALL_HOSTS) ?? NO_RULES];
    return rulesOf(this.#server, [own ?? NO_RULES, ...ofHost]);
  }
}
