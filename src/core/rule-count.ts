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

/** As it is stored. */
export function countedText(counted: readonly StoredCount[]): string | null {
  return counted.length === 0 ? null : JSON.stringify(counted);
}

/** One count of a rule. */
type Counted = Pick<RuleCount, "ruleId" | "subject">;

/** One text for each count. */
export function countName({ ruleId, subject }: Counted): string {
  return `${ruleId} ${subject}`;
}

/** What was counted for rules: of each count the parts of time in which something was added. */
export class CountParts<Part extends { readonly start: number; amount: bigint }> {
  /** By the names of counts, each in the order of time: delayed calls may be due in any of a year's. */
  readonly #parts = new Map<string, Part[]>();

  /** Whether what a request adds would be more than the limit of the count allows. */
  isBeyond(count: RuleCount): boolean {
    const sum = this.within(count).reduce((so, { amount }) => so + amount, BigInt(count.amount));
    return sum > BigInt(count.limit);
  }

  /** The parts that begin from one time to another. */
  within({ from, to, ...count }: Counted & Pick<RuleCount, "from" | "to">): readonly Part[] {
    const parts = this.#parts.get(countName(count)) ?? [];
    return parts.slice(placeIn(parts, from), placeIn(parts, to + 1));
  }

  /** The part that begins at a time; `make`: a new one. */
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

/** Where the first part stands that begins at a time or later. */
function placeIn(parts: readonly { readonly start: number }[], start: number): number {
  let [low, high] = [0, parts.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((parts[middle]?.start ?? start) < start) low = middle + 1;
    else high = middle;
  }
  return low;
}
