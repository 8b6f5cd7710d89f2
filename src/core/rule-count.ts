import Type from "typebox";
import { Compile } from "typebox/compile";
import type { Change } from "./changes.ts";

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

/**
 * What a change gives back of what the run has counted: of one that ends before any send, or with calls that were not sent.
 * `unlessSent`: if no earlier attempt of it may have reached the target. Null: nothing.
 */
export function givesBack({
  before,
  after,
  events,
}: Change): { counted: readonly StoredCount[]; unlessSent: boolean } | null {
  const { counted, attempts } = after;
  if (counted.length === 0 || after.run !== before.run || after.status === before.status) return null;
  if (after.status === "cancelled") return { counted, unlessSent: attempts > 0 };
  const isNotSent = events.some((event) => event.type === "attempt" && event.outcome === "not_sent");
  return after.status === "failed" && isNotSent ? { counted, unlessSent: attempts > 1 } : null;
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
