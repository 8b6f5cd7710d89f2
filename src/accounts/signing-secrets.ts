import { SIGNING_OVERLAP_MS, SIGNING_SECRETS_FRESH_MS } from "../domain/limits.ts";
import { type Secrets, UnreadableSecret } from "../ports/secrets.ts";
import type { SigningSeed, SigningStore } from "../ports/signing-store.ts";
import type { OpenSecret, RootSecretOf } from "./root-secret.ts";

/** What signs the calls to one origin (decisions 6). */
export interface OriginSecrets {
  readonly secret: string;
  /** The one before it; null when there was no rotation. It signs as long as its time is not over. */
  readonly previous: { readonly secret: string; readonly expiresAt: Date } | null;
}

/** The signing secrets of an account for an origin, as `URL.origin` spells it. */
export interface SigningSecrets {
  (accountId: string, origin: string, now: Date): Promise<OriginSecrets>;
  /** Those that sign now, the newest first: two while a rotation is fresh, else one. */
  readonly inUse: (accountId: string, origin: string, now: Date) => Promise<readonly string[]>;
  /** Makes a rotation count at once; null: of all origins. */
  readonly forget: (accountId: string, origin: string | null) => void;
}

export interface SigningSecretsDeps {
  readonly signing: Pick<SigningStore, "seeds">;
  readonly rootSecretOf: RootSecretOf;
  readonly openSecret: OpenSecret;
  readonly secrets: Pick<Secrets, "signingSecret">;
}

interface Remembered extends OriginSecrets {
  readonly readAtMs: number;
}

const REMEMBERED_MAX = 10_000;

/**
 * Derives signing secrets and remembers them: each attempt signs, and most go to few origins. Whoever rotates forgets
 * them in the same turn. Another process on the same store hears of it within a minute, and what it signs until then is
 * verified by the previous secret. Throws `UnreadableSecret` where the newest can't be opened. Of the one before it that is
 * no reason to sign nothing: a rotation is the way out of it.
 */
export function createSigningSecrets({
  signing,
  rootSecretOf,
  openSecret,
  secrets,
}: SigningSecretsDeps): SigningSecrets {
  const remembered = new Map<string, Remembered>();
  let forgotten = 0;

  const read = async (accountId: string, origin: string): Promise<OriginSecrets> => {
    const [newest, before] = await signing.seeds(accountId, origin);
    const derive = (seed: Uint8Array) => secrets.signingSecret(seed, origin);
    const ofSeed = async (seed: SigningSeed | undefined) =>
      derive(
        seed === undefined ? await rootSecretOf(accountId) : openSecret(accountId, seed.sealedSeed, seedPlace(seed.id)),
      );
    const secret = await ofSeed(newest);
    if (newest === undefined) return { secret, previous: null };
    const previous = await ofSeed(before).catch(unlessUnreadable);
    if (previous === null) return { secret, previous };
    return { secret, previous: { secret: previous, expiresAt: overlapEnd(newest.rotatedAt) } };
  };

  const recall = async (accountId: string, origin: string, now: Date): Promise<OriginSecrets> => {
    const name = nameOf(accountId, origin);
    const known = remembered.get(name);
    // A clock that was set back makes nothing fresh for longer.
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : Math.abs(now.getTime() - known.readAtMs);
    if (known !== undefined && ageMs < SIGNING_SECRETS_FRESH_MS) return known;
    const before = forgotten;
    const found = await read(accountId, origin);
    // There was a rotation while this was read, perhaps of this: what was read may be of the time before.
    if (forgotten !== before) return recall(accountId, origin, now);
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    remembered.set(name, { ...found, readAtMs: now.getTime() });
    return found;
  };

  const forget = (accountId: string, origin: string | null) => {
    forgotten += 1;
    const isMeant = (name: string) =>
      origin === null ? name.startsWith(nameOf(accountId, "")) : name === nameOf(accountId, origin);
    for (const name of remembered.keys()) if (isMeant(name)) remembered.delete(name);
  };
  const inUse = async (accountId: string, origin: string, now: Date) => {
    const { secret, previous } = await recall(accountId, origin, now);
    return previous === null || now >= previous.expiresAt ? [secret] : [secret, previous.secret];
  };
  return Object.assign(recall, { inUse, forget });
}

function unlessUnreadable(error: unknown): null {
  if (error instanceof UnreadableSecret) return null;
  throw error;
}

/** Until when the secret before a rotation signs too. */
export function overlapEnd(rotatedAt: Date): Date {
  return new Date(rotatedAt.getTime() + SIGNING_OVERLAP_MS);
}

/** Where a seed's sealed text belongs. */
export function seedPlace(seedId: string) {
  return { table: "signing_seeds", row: seedId, column: "sealed_seed" };
}

function nameOf(accountId: string, origin: string): string {
  return `${accountId} ${origin}`;
}
