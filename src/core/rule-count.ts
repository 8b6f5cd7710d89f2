import Type from "typebox";
import { Compile } from "typebox/compile";

/** What an action has counted for a rule: the rule, whose count it is, the part of time, and how much. */
export type StoredCount = readonly [ruleId: string, subject: string, start: number, amount: string];

/**
 * What a request adds to the count of a rule with `sum` or `more_than`. The commit of its create adds it unless the rule's count would
 * then be over the limit. Times in milliseconds; amounts are whole numbers of any size, as texts.
 */
export interface RuleCount {
  readonly ruleId: string;
  /** Which of its counts, such as that of one key: a digest. */
  readonly subject: string;
  /** Where it is added. */
  readonly start: number;
  /** What the limit is for: all that was added from the one to the other. */
  readonly from: number;
  readonly to: number;
  readonly amount: string;
  readonly limit: string;
  /** When it can be forgotten. */
  readonly until: number;
  /** Channels are asked about the first call over the limit, and not about those that follow it. */
  readonly asksOnce: boolean;
}

/** What is stored with the action. */
export function countedOf({ ruleId, subject, start, amount }: RuleCount): StoredCount {
  return [ruleId, subject, start, amount];
}

const STORED = Compile(
  Type.Array(Type.Tuple([Type.String(), Type.String(), Type.Integer(), Type.String({ pattern: "^[0-9]{1,60}$" })])),
);

/** Undefined: it is none. */
export function parseCounted(text: string): readonly StoredCount[] | undefined {
  try {
    const stored: unknown = JSON.parse(text);
    return STORED.Check(stored) ? stored : undefined;
  } catch {
    return undefined;
  }
}

/** As it is stored. */
export function countedText(counted: readonly StoredCount[]): string | null {
  return counted.length === 0 ? null : JSON.stringify(counted);
}
