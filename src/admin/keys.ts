import { databaseExists, openStore } from "../../db/open.ts";
import type { Config } from "../config/config.ts";
import { addressOf } from "../config/values.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import { keyFileOf, loadMasterKey, adoptNextKey, leftNextKey, makeNextKey } from "../crypto/key-file.ts";
import { keyIdOf, fingerprint } from "../crypto/key.ts";
import { createSecrets, linkKeyOf } from "../crypto/secrets.ts";
import { FIRST_KEYS_FACT, FIRST_KEYS_PLACE } from "../accounts/first-start.ts";
import { ANOTHER_KEY, checkOpens, KEY_FACTS, keptLinkKey, LINK_KEY_PLACE } from "../crypto/master-key.ts";
import type { Secrets, SealedPlace } from "../crypto/types.ts";
import type { Store } from "../../db/store.ts";
import { RESEAL_ROWS_MAX, UNOPENED_NAMED_MAX } from "../config/limits.ts";
import type { SealedStore, SealedText } from "../../db/account-store.ts";

export interface RotateKeyOptions {
  /** `NEW_SECRET_KEY`; null: a new one is made beside the key file. */
  readonly newKey: Uint8Array | null;
  /** Makes worthless whatever link was sent so far, as after a leak of the key. */
  readonly newLinks: boolean;
}

interface RotateKeyDeps {
  readonly clock: Pick<Clock, "now">;
  readonly ids: Pick<Ids, "bytes">;
  readonly onFatal: (cause: unknown) => void;
}

export interface RotatedKey extends Resealed {
  readonly newKeyId: string;
  /** Where the old key is kept; null: it is not in a file, or the file was left as it is. */
  readonly keptFile: string | null;
}

/**
 * Seals everything in the store under a new master key. The store is this process's alone meanwhile. Stopped at any
 * point, it leaves a store that no service opens and that another run brings to its end; the old key stays until then.
 * Throws a sentence for the operator.
 */
export async function rotateKey(config: Config, options: RotateKeyOptions, deps: RotateKeyDeps): Promise<RotatedKey> {
  const { database, secretKey } = config;
  const { url, authToken } = addressOf(database);
  if (database.kind === "file" && !databaseExists(url)) throw new Error(`There is no database ${database.path}.`);
  const random = (count: number) => deps.ids.bytes(count);
  const keyFile = database.kind === "file" && secretKey === null ? keyFileOf(database.path) : null;
  const present = loadMasterKey({ secretKey, keyFile, databaseExists: true, random }).bytes;
  const seal = createSecrets(present, random);
  const store = await openStore({ url, authToken, seal, now: deps.clock.now(), onFatal: deps.onFatal });
  try {
    const keys = await keysOf(store, present, nextKeyOf(options.newKey, keyFile, random));
    const done = keys.isDone ? NOTHING_RESEALED : await changeKey(store, { ...keys, random }, options.newLinks);
    const isInFile = keyFile !== null && options.newKey === null;
    const keptFile = isInFile ? adoptNextKey(keyFile, keyIdOf(present)) : null;
    return { ...done, newKeyId: keyIdOf(keys.next), keptFile };
  } finally {
    await store.close();
  }
}

function nextKeyOf(given: Uint8Array | null, keyFile: string | null, random: (count: number) => Uint8Array): NextKey {
  if (given !== null) return { left: given, make: () => given };
  if (keyFile !== null) return { left: leftNextKey(keyFile), make: () => makeNextKey(keyFile, random) };
  throw new Error(
    "The master key is the setting SECRET_KEY: give the one to follow it as NEW_SECRET_KEY. Make one: openssl rand -base64 32.",
  );
}

/** Where the key to follow comes from. */
interface NextKey {
  /** The one that was given or that an earlier run has left; null: there is none yet. */
  readonly left: Uint8Array | null;
  readonly make: () => Uint8Array;
}

interface Keys {
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

interface ResealKeys {
  readonly from: Pick<Secrets, "open">;
  readonly to: Pick<Secrets, "seal">;
  /** What texts begin with that are sealed under the new key already. */
  readonly newKeyId: string;
}

/** What a change of the key has done. */
interface Resealed {
  /** Texts that this run sealed anew. */
  readonly count: number;
  /** Texts that don't open under the old key: somebody altered them, and they are left as they are. */
  readonly unopened: number;
  /** The first of them. */
  readonly named: readonly SealedPlace[];
}

const NOTHING_RESEALED: Resealed = { count: 0, unopened: 0, named: [] };

/**
 * Seals every text anew, some in a commit. Whatever is sealed under the new key already is left alone, so that it goes on
 * where another run was stopped.
 */
async function reseal(store: SealedStore, keys: ResealKeys): Promise<Resealed> {
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
