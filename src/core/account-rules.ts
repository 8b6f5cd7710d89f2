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
  findVersion(accountId: string): Promise<string>;
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
  /** What `findVersion` returned before the rules were read. */
  readonly expected: string;
  readonly audit: AuditEntry;
  /** Who must still manage the account; left out: that doesn't matter. */
  readonly by?: Made;
}

/** What an action has added to a count of a rule: the rule, the digest of the count, the start of the part, the amount. */
export type StoredCount = readonly [ruleId: string, subject: string, start: number, amount: string];

/**
 * What a request adds to the count of a rule with `sum` or `more_than`. The commit of its create adds it, unless the count
 * would then exceed the limit. Times in milliseconds; amounts are whole numbers of any size, as texts.
 */
export interface RuleCount {
  readonly ruleId: string;
  /** Digest that tells the rule's counts apart, such as the count of one key. */
  readonly subject: string;
  /** The part of time to which it is added. */
  readonly start: number;
  /** The limit is for everything added to parts from `from` to `to`. */
  readonly from: number;
  readonly to: number;
  readonly amount: string;
  readonly limit: string;
  /** When the count can be deleted. */
  readonly until: number;
  /** Channels are asked only about the first call over the limit, not about those that follow. */
  readonly asksOnce: boolean;
}

/** What is stored with the action. */
export function toStoredCount({ ruleId, subject, start, amount }: RuleCount): StoredCount {
  return [ruleId, subject, start, amount];
}

/** One count of a rule. */
type Counted = Pick<RuleCount, "ruleId" | "subject">;

/** A text that is unique to each count. */
export function countName({ ruleId, subject }: Counted): string {
  return `${ruleId} ${subject}`;
}

/** Counts of rules in memory: for each, the parts of time in which something was added. */
export class CountParts<Part extends { readonly start: number; amount: bigint }> {
  /** By names of counts, each sorted by time, since delayed calls may be due at any time of a year. */
  readonly #parts = new Map<string, Part[]>();

  /** Whether the request would exceed the limit of the count. */
  isBeyond(count: RuleCount): boolean {
    const sum = this.within(count).reduce((so, { amount }) => so + amount, BigInt(count.amount));
    return sum > BigInt(count.limit);
  }

  /** The parts that begin between two times. */
  within({ from, to, ...count }: Counted & Pick<RuleCount, "from" | "to">): readonly Part[] {
    const parts = this.#parts.get(countName(count)) ?? [];
    return parts.slice(placeIn(parts, from), placeIn(parts, to + 1));
  }

  /** The part that begins at a time. `make` creates it if there is none. */
  at({ start, ...count }: Counted & Pick<RuleCount, "start">, make: () => Part): Part {
    const name = countName(count);
    const parts = this.#parts.get(name) ?? [];
    this.#parts.set(name, parts);
    const place = placeIn(parts, start);
    const known = parts[place];
    if (known?.start === start) return known;
    const part = make();
    parts.splice(place, 0, part);
    return part;
  }
}

/** The index of the first part that begins at this time or later. */
function placeIn(parts: readonly { readonly start: number }[], start: number): number {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((parts[middle]?.start ?? start) < start) low = middle + 1;
    else high = middle;
  }
  return low;
}
