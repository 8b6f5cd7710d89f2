import { RESEAL_ROWS_MAX, UNOPENED_NAMED_MAX } from "../domain/limits.ts";
import type { SealedPlace, Secrets } from "../ports/secrets.ts";
import type { SealedStore, SealedText } from "../ports/sealed-store.ts";

export interface ResealKeys {
  readonly from: Pick<Secrets, "open">;
  readonly to: Pick<Secrets, "seal">;
  /** What texts begin with that are sealed under the new key already. */
  readonly newKeyId: string;
}

/** What a change of the key has done. */
export interface Resealed {
  /** Texts that this run sealed anew. */
  readonly count: number;
  /** Texts that don't open under the old key: somebody altered them, and they are left as they are. */
  readonly unopened: number;
  /** The first of them. */
  readonly named: readonly SealedPlace[];
}

export const NOTHING_RESEALED: Resealed = { count: 0, unopened: 0, named: [] };

/**
 * Seals every text anew, some in a commit. Whatever is sealed under the new key already is left alone, so that it goes on
 * where another run was stopped.
 */
export async function reseal(store: SealedStore, keys: ResealKeys): Promise<Resealed> {
  const unopened: SealedPlace[] = [];
  let count = 0;
  let left = 0;
  let after: SealedPlace | null = null;
  for (;;) {
    const texts: readonly SealedText[] = await store.find(keys.newKeyId, after, RESEAL_ROWS_MAX);
    if (texts.length === 0) return { count, unopened: left, named: unopened };
    const opened = texts.map((text) => ({ ...text, by: resealedRow(text, keys) }));
    const replacements = opened.flatMap(({ by, ...text }) => (by === null ? [] : [{ ...text, by }]));
    await store.replace(replacements);
    const closed = opened.filter(({ by }) => by === null).map(({ place }) => place);
    unopened.push(...closed.slice(0, UNOPENED_NAMED_MAX - unopened.length));
    count += replacements.length;
    left += closed.length;
    after = texts.at(-1)?.place ?? null;
  }
}

function resealedRow({ place, sealed }: SealedText, { from, to }: ResealKeys): string | null {
  try {
    return to.seal(from.open(sealed, place), place);
  } catch {
    return null;
  }
}
