import { FIRST_KEYS_FACT, FIRST_KEYS_PLACE } from "../accounts/bootstrap.ts";
import { ANOTHER_KEY, checkOpens, KEY_FACTS, keptLinkKey, LINK_KEY_PLACE } from "../master-key.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { Store } from "../ports/store.ts";
import { reseal, type Resealed } from "./reseal.ts";
import { fingerprint, keyIdOf } from "../secrets/master.ts";
import { createSecrets, linkKeyOf } from "../secrets/secrets.ts";

/** Where the key to follow comes from. */
export interface NextKey {
  /** The one that was given or that an earlier run has left; null: there is none yet. */
  readonly left: Uint8Array | null;
  readonly make: () => Uint8Array;
}

export interface Keys {
  readonly present: Uint8Array;
  readonly next: Uint8Array;
  /** Everything is sealed under the next key already: the run before was stopped just before its end. */
  readonly isDone: boolean;
}

/** Both keys, held against what the store says of them. A new key is made only where no change is under way. */
export async function keysOf({ facts }: Store, present: Uint8Array, { left, make }: NextKey): Promise<Keys> {
  const [mark, nextMark] = await Promise.all([facts.read(KEY_FACTS.present), facts.read(KEY_FACTS.next)]);
  const isUnderWay = nextMark !== null || mark !== fingerprint(present);
  if (left === null && isUnderWay) throw new Error(nextMark === null ? ANOTHER_KEY : NEXT_KEY_MISSING);
  const next = left ?? make();
  if (mark !== fingerprint(present)) {
    if (mark !== fingerprint(next) || nextMark !== null) throw new Error(ANOTHER_KEY);
    return { present, next, isDone: true };
  }
  if (nextMark !== null && nextMark !== fingerprint(next)) throw new Error(NEXT_KEY_MISSING);
  if (keyIdOf(next) === keyIdOf(present)) throw new Error("The new key is the one that is in use. Make another one.");
  return { present, next, isDone: false };
}

/**
 * The order of the commits is what makes it safe to be stopped: first that a change has begun, which keeps every service
 * away, then the texts, and in one commit with the end the link key.
 */
export async function changeKey(
  store: Store,
  { present, next, random }: Omit<Keys, "isDone"> & { readonly random: (count: number) => Uint8Array },
  newLinks: boolean,
): Promise<Resealed> {
  const [from, to] = [createSecrets(present, random), createSecrets(next, random)];
  await checkOpens(store, from, to);
  await store.facts.write(KEY_FACTS.next, fingerprint(next));
  const resealed = await reseal(store.sealed, { from, to, newKeyId: keyIdOf(next) });
  // Links are known by their hashes, whatever key made them.
  if (newLinks) await store.links.forgetAll();
  const linkKey = newLinks ? null : ((await keptLinkKey(store, from)) ?? linkKeyOf(present));
  const firstKeys = await store.facts.read(FIRST_KEYS_FACT);
  await store.facts.writeAll({
    [KEY_FACTS.links]: linkKey === null ? null : to.seal(linkKey, LINK_KEY_PLACE),
    // A first start may have ended before it showed them.
    [FIRST_KEYS_FACT]: firstKeys === null ? null : firstKeysUnder(to, firstKeys, from),
    [KEY_FACTS.present]: fingerprint(next),
    [KEY_FACTS.next]: null,
  });
  return resealed;
}

/** Null where it was altered: a start shows no keys then, and `outgate new-owner-key` makes another. */
function firstKeysUnder(to: Pick<Secrets, "seal">, sealed: string, from: Pick<Secrets, "open">): string | null {
  try {
    return to.seal(from.open(sealed, FIRST_KEYS_PLACE), FIRST_KEYS_PLACE);
  } catch {
    return null;
  }
}

const NEXT_KEY_MISSING =
  "A change to another key was interrupted. Give that key again: the same NEW_SECRET_KEY, or the same key file that ends " +
  "in .next, put back to where it was.";
