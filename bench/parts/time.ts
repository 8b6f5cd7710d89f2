/** Milliseconds since the epoch with fractions, comparable between processes of one machine. */
export function now(): number {
  return performance.timeOrigin + performance.now();
}

/** The value below which a share of the sorted values lies. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
