import type { ActionPolicy } from "./action-policy.ts";
import type { AuditEntry } from "./audit.ts";
import type { Actor } from "./roles.ts";

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
  /** A text that changes with every write, of whichever account. */
  version(): Promise<string>;
  /** The same of each account that has rules: its writes alone change it. */
  versions(): Promise<ReadonlyMap<string, string>>;
  /** Of one account, also of one without rules. */
  versionOf(accountId: string): Promise<string>;
  /** The rules of an account, in their order. */
  list(accountId: string): Promise<readonly RuleRow[]>;
  /**
   * Writes all rules of an account, with an entry for the audit log, unless some were written since the version that was read.
   * Every create that is committed after this resolves is decided by them.
   */
  replace(write: RulesWrite): Promise<boolean>;
  /** The actions since that time that a rule held or let pass, or their key or caller held: the newest so many, each by why. */
  ruled(accountId: string, since: Date, limit: number): Promise<readonly ActionPolicy[]>;
  /** Writes the entry of a refusal, unless rules of its account were written since that version; returns whether. */
  recordRefusal(expected: string, audit: AuditEntry): Promise<boolean>;
}

interface RulesWrite {
  readonly accountId: string;
  readonly rules: readonly RuleRow[];
  /** What `versionOf` said before they were read. */
  readonly expected: string;
  readonly audit: AuditEntry;
}
