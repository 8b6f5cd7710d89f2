import type { SealedPlace } from "./secrets.ts";

/** A sealed text and where it stands. */
export interface SealedText {
  readonly place: SealedPlace;
  readonly sealed: string;
}

/** Every sealed text of the store, for a change of the key that they are sealed under; no other use looks at them so. */
export interface SealedStore {
  /** Texts that do not begin with this key id, in a fixed order after `after`; null: from the first one. */
  find(keyId: string, after: SealedPlace | null, limit: number): Promise<readonly SealedText[]>;
  /** Puts another text in the place of each, in one commit; one that has changed meanwhile is left as it is. */
  replace(replacements: readonly (SealedText & { readonly by: string })[]): Promise<void>;
}
