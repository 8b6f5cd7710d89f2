interface Tries {
  readonly max: number;
  readonly tries: number;
  /** Whose measures are logged, in this unit; none are without it. */
  readonly name?: string;
  readonly unit?: number;
}

/**
 * The least of what some tries measure, which end with the first below the bound: what a busy machine does to one try it does
 * not do to each.
 */
export async function leastOf({ max, tries, name, unit = 1 }: Tries, measure: () => Promise<number>): Promise<number> {
  const all: number[] = [];
  while (all.length < tries && !all.some((one) => one < max)) all.push(await measure());
  if (name !== undefined) console.log(`${name}: ${all.map((one) => (one / unit).toFixed(1)).join(", ")}`);
  return Math.min(...all);
}
