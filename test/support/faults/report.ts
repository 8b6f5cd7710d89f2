/** What a fault was put to, in numbers, and everything about it that should not have been. */
export interface FaultReport {
  readonly figures: Readonly<Record<string, number | string>>;
  /** Empty: it held. */
  readonly problems: readonly string[];
}

/** The sentences whose condition does not hold. */
export function broken(rules: Readonly<Record<string, boolean>>): readonly string[] {
  return Object.entries(rules).flatMap(([sentence, holds]) => (holds ? [] : [sentence]));
}

/** A report that says more in numbers, and holds more rules. */
export function withMore(
  { figures, problems }: FaultReport,
  more: FaultReport["figures"],
  rules: Readonly<Record<string, boolean>>,
): FaultReport {
  return { figures: { ...figures, ...more }, problems: [...problems, ...broken(rules)] };
}

/** The value below which a share of the values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
