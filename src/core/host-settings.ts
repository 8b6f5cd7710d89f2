import type { AuditEntry } from "./audit.ts";
import { AccountCache, type CachedSettingsStore } from "./account-settings.ts";
import { type Action, ownRetrySettings } from "./action.ts";
import type { Actor } from "./roles.ts";
import { type RetrySettings, type EffectiveRetrySettings, NO_RETRY_SETTINGS, effectiveRetrySettings } from "./retry.ts";

/** How many calls of one account a host gets. If a member is null, only the server's limit applies. */
export interface HostLimits {
  readonly maxPerSecond: number | null;
  /** How many calls at a time. */
  readonly maxConcurrent: number | null;
}

/** What an account has set for one host, or for all of them. */
export interface HostSettings extends RetrySettings, HostLimits {
  /** Name of the credential of calls that name none, for keys that may use it; null: none. */
  readonly defaultCredential: string | null;
}

/** The host under which the settings for all hosts of an account are stored. */
export const ALL_HOSTS = "";

/** Settings as stored. */
export interface HostSettingsRow {
  readonly accountId: string;
  /** As in the lane of an action, or `ALL_HOSTS`. */
  readonly host: string;
  readonly settings: HostSettings;
  readonly updatedAt: Date;
  readonly updatedBy: Actor;
}

/** Rows by account and host; an account has at most `HOST_SETTINGS_MAX`, and one for all hosts. */
export interface HostSettingsStore extends Omit<CachedSettingsStore<HostSettingsRow>, "put"> {
  /** `shown`: the `updatedAt` that was shown; null: nothing was set. `changed`, and nothing is written: it is another one by now. */
  put(row: HostSettingsRow, audit: AuditEntry, shown?: Date | null): Promise<"written" | "full" | "changed">;
}

export const NO_LIMITS: HostLimits = { maxPerSecond: null, maxConcurrent: null };

/** The account and host of an action. */
interface Called {
  readonly accountId: string;
  readonly host: string;
}

/** The settings of all hosts, for what may be claimed and how it is sent. */
export class KnownHostSettings extends AccountCache<HostSettingsRow, ReadonlyMap<string, HostSettings>> {
  readonly #server: EffectiveRetrySettings;

  /** `server`: what applies where an account sets nothing. */
  constructor(store: Pick<HostSettingsStore, "list" | "version">, server: EffectiveRetrySettings) {
    super(store, (rows) => new Map(rows.map(({ host, settings }) => [host, settings])));
    this.#server = server;
  }

  /** The account's own limits for calls to a host, besides the server's. */
  readonly findLimits = ({ accountId, host }: Called): HostLimits => this.view(accountId)?.get(host) ?? NO_LIMITS;

  /** The name of the credential of calls that name none; null: none. */
  readonly defaultCredential = ({ accountId, host }: Called): string | null =>
    this.view(accountId)?.get(host)?.defaultCredential ?? null;

  /** What applies to attempts of an action: its own settings, else the host's, else the account's, else the server's. */
  readonly retrySettings = (action: Called & Pick<Action, "extras">): EffectiveRetrySettings =>
    this.#retrySettings(action, ownRetrySettings(action.extras));

  /** How long an attempt may take if its action doesn't say. */
  readonly callTimeoutMs = (called: Called): number => this.#retrySettings(called, null).timeoutMs;

  #retrySettings({ accountId, host }: Called, own: RetrySettings | null): EffectiveRetrySettings {
    const ofAccount = this.view(accountId);
    if (ofAccount === undefined && own === null) return this.#server;
    const ofHost = [ofAccount?.get(host) ?? NO_RETRY_SETTINGS, ofAccount?.get(ALL_HOSTS) ?? NO_RETRY_SETTINGS];
    return effectiveRetrySettings(this.#server, [own ?? NO_RETRY_SETTINGS, ...ofHost]);
  }
}
