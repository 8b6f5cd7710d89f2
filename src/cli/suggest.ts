/** Further from a word than this, another word is no mistyping of it. */
const DISTANCE_MAX = 2;

/** Longer than any command or option. */
const WORD_CHARS_MAX = 40;

/** The word that somebody who typed this probably meant; null: none is near. */
export function suggestionFor(typed: string, words: readonly string[]): string | null {
  if (typed.length > WORD_CHARS_MAX) return null;
  let best: { readonly word: string; readonly distance: number } | null = null;
  for (const word of words) {
    // A short word is near to everything.
    const most = Math.min(DISTANCE_MAX, Math.floor(Math.max(typed.length, word.length) / 2));
    const distance = typed.length > 2 && word.startsWith(typed) ? 1 : distanceBetween(typed, word);
    if (distance <= most && (best === null || distance < best.distance)) best = { word, distance };
  }
  return best?.word ?? null;
}

/** How many letters to add, drop, replace or swap with the next one (optimal string alignment). */
function distanceBetween(one: string, other: string): number {
  let [before, above]: [readonly number[], readonly number[]] = [
    [],
    Array.from({ length: other.length + 1 }, (_, at) => at),
  ];
  for (let row = 1; row <= one.length; row += 1) {
    const line = [row];
    for (let at = 1; at <= other.length; at += 1) {
      const cost = one[row - 1] === other[at - 1] ? 0 : 1;
      const isSwapped = row > 1 && at > 1 && one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1];
      const edits = [(above[at] ?? 0) + 1, (line[at - 1] ?? 0) + 1, (above[at - 1] ?? 0) + cost];
      line.push(Math.min(...edits, ...(isSwapped ? [(before[at - 2] ?? 0) + 1] : [])));
    }
    [before, above] = [above, line];
  }
  return above[other.length] ?? 0;
}
