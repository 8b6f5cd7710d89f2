import type { Actor } from "./roles.ts";
import { type AttemptRules, NO_RULES } from "./rules.ts";
import type { AuditEntry } from "./audit.ts";

/** How many calls of one account a host gets. A member that is null sets no limit beside the server's. */
export interface HostLimits {
  readonly maxPerSecond: number | null;
  /** At a time. */
  readonly maxConcurrent: number | null;
}

/** What an account has set for one host, or for all of them. */
export interface HostRules extends AttemptRules, HostLimits {}

export const NO_HOST_RULES: HostRules = { ...NO_RULES, maxPerSecond: null, maxConcurrent: null };

/** The host under which the settings for all hosts of an account are stored. */
export const ALL_HOSTS = "";

/** Settings as stored. */
export interface HostSettingsRow {
  readonly accountId: string;
  /** As in the lane of an action, or `ALL_HOSTS`. */
  readonly host: string;
  readonly rules: HostRules;
  readonly updatedAt: Date;
  readonly updatedBy: Actor;
}

/** Stores what accounts set for hosts. */
export interface HostSettingsStore {
  /** A text that changes with every write, of whichever account. */
  version(): Promise<string>;
  /** Of one account or of all (null), by account and host. */
  list(accountId: string | null): Promise<readonly HostSettingsRow[]>;
  /** `full`: the account has `HOST_SETTINGS_MAX` other hosts with settings. */
  put(row: HostSettingsRow, audit: AuditEntry): Promise<"written" | "full">;
  /** False: there were none. */
  remove(accountId: string, host: string, audit: AuditEntry): Promise<boolean>;
}
