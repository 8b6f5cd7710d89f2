import type { ActionPolicy } from "./action-policy.ts";
import type { AuditEntry } from "./audit.ts";
import type { Actor, Made } from "./roles.ts";

/** A rule of an account as it is stored. */
export interface RuleRow {
  readonly id: string;
  readonly accountId: string;
  /** Counts from 1; every change of its definition adds one. */
  readonly version: number;
  /** JSON of `src/rules/rule.ts`. */
  readonly definition: string;
  readonly createdAt: Date;
  readonly createdBy: Actor;
  readonly changedAt: Date;
  readonly changedBy: Actor;
}

/** The rules of accounts. */
export interface RuleStore {
  /** A text that changes with every write of any account. */
  version(): Promise<string>;
  /** The version of each account that has rules. It changes only with that account's writes. */
  versions(): Promise<ReadonlyMap<string, string>>;
  /** The version of one account, even if it has no rules. */
  versionOf(accountId: string): Promise<string>;
  /** The rules of an account, in their order. */
  list(accountId: string): Promise<readonly RuleRow[]>;
  /**
   * Writes all rules of an account with an audit entry, unless the account's rules were written after `expected`. Every create
   * that is committed after this resolves is decided by them. `not_manager`: `by` manages the account no more, and nothing is written.
   */
  replace(write: RulesWrite): Promise<boolean | "not_manager">;
  /** The policies of the newest actions since that time that were held, or that a rule or grant let pass. */
  ruled(accountId: string, since: Date, limit: number): Promise<readonly ActionPolicy[]>;
  /** Writes the audit entry of a refusal, unless the account's rules were written since that version. Returns whether it did. */
  recordRefusal(expected: string, audit: AuditEntry): Promise<boolean>;
}

interface RulesWrite {
  readonly accountId: string;
  readonly rules: readonly RuleRow[];
  /** What `versionOf` returned before the rules were read. */
  readonly expected: string;
  readonly audit: AuditEntry;
  /** Who must still manage the account; left out: that doesn't matter. */
  readonly by?: Made;
}
