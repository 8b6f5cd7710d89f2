import type { RuleCount } from "./rule-count.ts";

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
