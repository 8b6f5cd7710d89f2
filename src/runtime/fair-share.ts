/**
 * Whose place an account frees when all its places are taken and another holder asks for one: the holder with the most,
 * if that is at least two more than the asking one has; null otherwise. So one holder may have all places, and when
 * others come each ends up with an equal share, without two of them taking the same place from each other in turn.
 */
export function holderToEvict(held: ReadonlyMap<string, number>, asker: string): string | null {
  const own = held.get(asker) ?? 0;
  let most: { readonly holder: string; readonly count: number } | null = null;
  for (const [holder, count] of held) if (count > (most?.count ?? own + 1)) most = { holder, count };
  return most?.holder ?? null;
}

/** Counts places by holder. */
export function countByHolder(all: Iterable<{ readonly holder: string }>): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const { holder } of all) held.set(holder, (held.get(holder) ?? 0) + 1);
  return held;
}
