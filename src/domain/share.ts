/**
 * Who gives up one of an account's places when all of them are taken and another key asks for one: whoever holds the most,
 * if that is at least two more than the one who asks holds. Null: nobody has to. So one alone may hold all of them, and
 * when others come each of them ends up with an equal share, without two taking the same place from each other in turn.
 */
export function whoMakesRoom(held: ReadonlyMap<string, number>, asking: string): string | null {
  const own = held.get(asking) ?? 0;
  let most: { readonly holder: string; readonly count: number } | null = null;
  for (const [holder, count] of held) if (count > (most?.count ?? own + 1)) most = { holder, count };
  return most?.holder ?? null;
}

/** How many of these each holder has. */
export function countByHolder(all: Iterable<{ readonly holder: string }>): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const { holder } of all) held.set(holder, (held.get(holder) ?? 0) + 1);
  return held;
}
