import { databaseExists, openStore } from "../../db/open.ts";
import { type Config, VERSION } from "../config/config.ts";
import { databaseAddress } from "../config/values.ts";
import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import {
  keyFileFor,
  loadMasterKey,
  adoptNextKey,
  readNextKey,
  makeNextKey,
  masterKeyId,
  fingerprint,
  ANOTHER_KEY,
  KEY_FACTS,
  LINK_KEY_PLACE,
} from "../crypto/master-key.ts";
import { createSecrets, deriveLinkKey, type Secrets, checkOpens, keptLinkKey } from "../crypto/secrets.ts";
import { FIRST_KEYS_FACT, FIRST_KEYS_PLACE } from "../accounts/bootstrap.ts";
import type { NodeRow, Store } from "../core/store.ts";
import { NODE_LIVES_MS, RESEAL_ROWS_MAX, UNDECRYPTABLE_LISTED_MAX } from "../core/limits.ts";
import type { SealedStore, SealedText, SealedPlace } from "../core/account-store.ts";

export interface RotateKeyOptions {
  /** `NEW_SECRET_KEY`; null: create one beside the key file. */
  readonly newKey: Uint8Array | null;
  /** Invalidates every link that was sent so far, which is needed after a leak of the key. */
  readonly newLinks: boolean;
}

export interface RotatedKey extends Resealed {
  readonly newKeyId: string;
  /** The file that keeps the old key; null: no key file was replaced. */
  readonly keptFile: string | null;
}

/**
 * Encrypts everything in the store under a new master key. It needs the store for itself. If interrupted, no service opens the
 * store until another run completes the rotation; the old key is kept until then. Throws an error for the operator.
 */
export async function rotateKey(
  config: Config,
  options: RotateKeyOptions,
  deps: {
    readonly clock: Pick<Clock, "now">;
    readonly ids: Pick<Ids, "bytes">;
    readonly onFatal: (cause: unknown) => void;
  },
): Promise<RotatedKey> {
  const { database, secretKey } = config;
  const { url, authToken } = databaseAddress(database);
  if (database.kind === "file" && !databaseExists(url)) throw new Error(`There is no database ${database.path}.`);
  const random = (count: number) => deps.ids.bytes(count);
  const keyFile = database.kind === "file" && secretKey === null ? keyFileFor(database.path) : null;
  const present = loadMasterKey({ secretKey, keyFile, databaseExists: true, random }).bytes;
  const seal = createSecrets(present, random);
  const store = await openStore({ url, authToken, seal, now: deps.clock.now(), onFatal: deps.onFatal });
  const asNode = { id: crypto.randomUUID(), startedAt: deps.clock.now(), version: VERSION };
  const requireAlone = () => requireNoNodes(store, asNode);
  try {
    await requireAlone();
    const keys = await checkKeys(store, present, chooseNextKey(options.newKey, keyFile, random));
    const done = keys.isDone
      ? NOTHING_RESEALED
      : await changeKey(store, { ...keys, random, requireAlone }, options.newLinks);
    const isInFile = keyFile !== null && options.newKey === null;
    const keptFile = isInFile ? adoptNextKey(keyFile, masterKeyId(present)) : null;
    return { ...done, newKeyId: masterKeyId(keys.next), keptFile };
  } finally {
    // If it can't, it counts as a service that was killed.
    await store.cluster?.leave(asNode.id).catch(() => {});
    await store.close();
  }
}

/**
 * Throws an error for the operator if services use the database: they would continue with the old key. Counts as a service itself, so
 * that of two rotations that begin at once, at most one goes on.
 */
async function requireNoNodes({ cluster }: Pick<Store, "cluster">, asNode: NodeRow): Promise<void> {
  if (cluster === null) return;
  const live = await cluster.beat(asNode, NODE_LIVES_MS);
  if (live.length <= 1) return;
  const those = live.length === 2 ? "A service uses" : `${live.length - 1} services use`;
  throw new Error(
    `${those} this database. Stop every one, then run this again; one that was killed counts for ${NODE_LIVES_MS / 1_000} more seconds.`,
  );
}

function chooseNextKey(
  given: Uint8Array | null,
  keyFile: string | null,
  random: (count: number) => Uint8Array,
): NextKey {
  if (given !== null) return { existing: given, make: () => given };
  if (keyFile !== null) return { existing: readNextKey(keyFile), make: () => makeNextKey(keyFile, random) };
  throw new Error(
    "The master key is the setting SECRET_KEY: set the new one as NEW_SECRET_KEY. Create one with: openssl rand -base64 32.",
  );
}

interface NextKey {
  /** The key that was given or that an interrupted run has left; null: none yet. */
  readonly existing: Uint8Array | null;
  readonly make: () => Uint8Array;
}

interface Keys {
  readonly present: Uint8Array;
  readonly next: Uint8Array;
  /** An interrupted run has begun to encrypt under the next key. */
  readonly isBegun: boolean;
  /** Everything is under the next key: the last run was interrupted just before its end. */
  readonly isDone: boolean;
}

/** Both keys, checked against the store. Creates a new key only if no rotation is in progress. */
export async function checkKeys({ facts }: Store, present: Uint8Array, { existing, make }: NextKey): Promise<Keys> {
  const [mark, nextMark] = await Promise.all([facts.read(KEY_FACTS.present), facts.read(KEY_FACTS.next)]);
  const isUnderWay = nextMark !== null || mark !== fingerprint(present);
  if (existing === null && isUnderWay) throw new Error(nextMark === null ? ANOTHER_KEY : NEXT_KEY_MISSING);
  const next = existing ?? make();
  if (mark !== fingerprint(present)) {
    if (mark !== fingerprint(next) || nextMark !== null) throw new Error(ANOTHER_KEY);
    return { present, next, isBegun: false, isDone: true };
  }
  if (nextMark !== null && nextMark !== fingerprint(next)) throw new Error(NEXT_KEY_MISSING);
  if (masterKeyId(next) === masterKeyId(present))
    throw new Error("The new key is the one that is in use. Make another one.");
  return { present, next, isBegun: nextMark !== null, isDone: false };
}

/**
 * The order of commits makes interruptions safe: first the mark of the next key, which keeps every service from opening the
 * store; then the texts; then, in one commit, the link key and the end of the rotation.
 */
export async function changeKey(
  store: Store,
  {
    present,
    next,
    isBegun,
    random,
    requireAlone,
  }: Omit<Keys, "isDone"> & {
    readonly random: (count: number) => Uint8Array;
    readonly requireAlone: () => Promise<void>;
  },
  newLinks: boolean,
): Promise<Resealed> {
  const [from, to] = [createSecrets(present, random), createSecrets(next, random)];
  await checkOpens(store, from, to);
  await store.facts.write({ [KEY_FACTS.next]: fingerprint(next) });
  // A node that joins finds the mark, and one that has joined before is found here.
  await requireAlone().catch(async (error: unknown) => {
    if (!isBegun) await store.facts.write({ [KEY_FACTS.next]: null });
    throw error;
  });
  const result = await resealAll(store.sealed, { from, to }, masterKeyId(next));
  // Approval links are verified by stored hashes, so a new link key alone would not invalidate them.
  if (newLinks) await store.links.forgetAll();
  const linkKey = newLinks ? null : ((await keptLinkKey(store, from)) ?? deriveLinkKey(present));
  const firstKeys = await store.facts.read(FIRST_KEYS_FACT);
  await store.facts.write({
    [KEY_FACTS.links]: linkKey === null ? null : to.seal(linkKey, LINK_KEY_PLACE),
    // Present if no start has shown the first keys yet. If their row was altered, `outgate new-owner-key` creates a key.
    [FIRST_KEYS_FACT]:
      firstKeys === null ? null : resealed({ place: FIRST_KEYS_PLACE, sealed: firstKeys }, { from, to }),
    [KEY_FACTS.present]: fingerprint(next),
    [KEY_FACTS.next]: null,
  });
  return result;
}

const NEXT_KEY_MISSING =
  "A rotation to another key was interrupted. Provide that key again: the same NEW_SECRET_KEY, or the key file that ends " +
  "in .next, in its old place.";

interface Resealed {
  /** How many texts this run has encrypted again. */
  readonly count: number;
  /** How many texts the old key can't decrypt, because they were altered. They are left as they are. */
  readonly unopened: number;
  /** The first of those, at most `UNDECRYPTABLE_LISTED_MAX`. */
  readonly named: readonly SealedPlace[];
}

const NOTHING_RESEALED: Resealed = { count: 0, unopened: 0, named: [] };

interface FromTo {
  readonly from: Pick<Secrets, "open">;
  readonly to: Pick<Secrets, "seal">;
}

/** Encrypts every text again in batches, except those under the new key already, so that it continues an interrupted run. */
async function resealAll(store: SealedStore, keys: FromTo, newKeyId: string): Promise<Resealed> {
  const named: SealedPlace[] = [];
  let count = 0;
  let unopened = 0;
  let after: SealedPlace | null = null;
  for (;;) {
    const texts: readonly SealedText[] = await store.find(newKeyId, after, RESEAL_ROWS_MAX);
    if (texts.length === 0) return { count, unopened, named };
    const attempts = texts.map((text) => ({ ...text, by: resealed(text, keys) }));
    const replacements = attempts.flatMap(({ by, ...text }) => (by === null ? [] : [{ ...text, by }]));
    await store.replace(replacements);
    const failed = attempts.filter(({ by }) => by === null).map(({ place }) => place);
    named.push(...failed.slice(0, UNDECRYPTABLE_LISTED_MAX - named.length));
    count += replacements.length;
    unopened += failed.length;
    after = texts.at(-1)?.place ?? null;
  }
}

/** The text under the new key; null: it was altered. */
function resealed({ place, sealed }: SealedText, { from, to }: FromTo): string | null {
  try {
    return to.seal(from.open(sealed, place), place);
  } catch {
    return null;
  }
}
