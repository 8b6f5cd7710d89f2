/** What whoever decides is told first, at every place of decision; null: they see everything. */
export function hiddenWords(values: number): string | null {
  if (values === 0) return null;
  return values === 1 ? "1 value hidden" : `${values} values hidden`;
}
