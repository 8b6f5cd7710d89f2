import { SIGNING_OVERLAP_MS, SIGNING_SECRETS_FRESH_MS } from "../domain/limits.ts";
import type { SigningUse } from "../domain/signing-use.ts";
import { type Secrets, UnreadableSecret } from "../ports/secrets.ts";
import type { SigningSeed, SigningStore } from "../ports/signing-store.ts";
import type { OpenSecret, RootSecretOf } from "./root-secret.ts";

/** What signs the calls to one origin, or the callbacks. */
export interface OriginSecrets {
  readonly secret: string;
  /**
   * The one before it; null when there was none. It signs as long as its time is not over. Of callbacks it may be that of
   * calls, which signed them before they had a secret of their own.
   */
  readonly previous: { readonly secret: string; readonly expiresAt: Date } | null;
}

/** The signing secrets of an account for an origin, as `URL.origin` spells it. */
export interface SigningSecrets {
  (accountId: string, origin: string, now: Date, use?: SigningUse): Promise<OriginSecrets>;
  /** Those that sign now, the newest first: two while a rotation is fresh, else one; and those of calls behind them. */
  readonly inUse: (accountId: string, origin: string, now: Date, use?: SigningUse) => Promise<readonly string[]>;
  /** Makes a rotation count at once; null: of all origins. */
  readonly forget: (accountId: string, origin: string | null) => void;
}

export interface SigningSecretsDeps {
  readonly signing: Pick<SigningStore, "seeds" | "callbackOverlap">;
  readonly rootSecretOf: RootSecretOf;
  readonly openSecret: OpenSecret;
  readonly secrets: Pick<Secrets, "signingSecret">;
}

interface Found extends OriginSecrets {
  /** Until when the secrets of calls sign too; null: they don't. */
  readonly callsUntil: Date | null;
}

interface Remembered extends Found {
  readonly readAtMs: number;
}

const REMEMBERED_MAX = 10_000;

/**
 * Derives signing secrets and remembers them: each attempt signs, and most go to few origins. Whoever rotates forgets
 * them in the same turn. Another process on the same store hears of it within a minute, and what it signs until then is
 * verified by the previous secret. Throws `UnreadableSecret` where the newest can't be opened. Of the one before it that is
 * no reason to sign nothing: a rotation is the way out of it.
 */
export function createSigningSecrets(deps: SigningSecretsDeps): SigningSecrets {
  const remembered = new Map<string, Remembered>();
  let forgotten = 0;

  const read = createReadSecrets(deps);

  const recall = async (accountId: string, origin: string, now: Date, use: SigningUse = "calls"): Promise<Found> => {
    const name = `${nameOf(accountId, origin)} ${use}`;
    const known = remembered.get(name);
    // A clock that was set back makes nothing fresh for longer.
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : Math.abs(now.getTime() - known.readAtMs);
    if (known !== undefined && ageMs < SIGNING_SECRETS_FRESH_MS) return known;
    const before = forgotten;
    const found = await read(accountId, origin, use, now);
    // There was a rotation while this was read, perhaps of this: what was read may be of the time before.
    if (forgotten !== before) return recall(accountId, origin, now, use);
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    remembered.set(name, { ...found, readAtMs: now.getTime() });
    return found;
  };

  const forget = (accountId: string, origin: string | null) => {
    forgotten += 1;
    const isMeant = (name: string) =>
      name.startsWith(origin === null ? nameOf(accountId, "") : `${nameOf(accountId, origin)} `);
    for (const name of remembered.keys()) if (isMeant(name)) remembered.delete(name);
  };
  const inUse: SigningSecrets["inUse"] = async (accountId, origin, now, use = "calls") => {
    const { secret, previous, callsUntil } = await recall(accountId, origin, now, use);
    const own = previous === null || now >= previous.expiresAt ? [secret] : [secret, previous.secret];
    if (callsUntil === null || now >= callsUntil) return own;
    const calls = await inUse(accountId, origin, now).catch(unlessUnreadable);
    return [...new Set([...own, ...(calls ?? [])])];
  };
  return Object.assign(recall, { inUse, forget });
}

/** Reads an origin's secrets from the store: nothing of it is remembered here. */
function createReadSecrets({ signing, rootSecretOf, openSecret, secrets }: SigningSecretsDeps) {
  const readOwn = async (accountId: string, origin: string, use: SigningUse): Promise<OriginSecrets> => {
    const [newest, before] = await signing.seeds(accountId, origin, use);
    const derive = (seed: Uint8Array) => secrets.signingSecret(seed, origin, use);
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

  return async (accountId: string, origin: string, use: SigningUse, now: Date): Promise<Found> => {
    const own = await readOwn(accountId, origin, use);
    const callsUntil = use === "callbacks" ? await signing.callbackOverlap(accountId, origin) : null;
    if (callsUntil === null || now >= callsUntil) return { ...own, callsUntil: null };
    const calls = await readOwn(accountId, origin, "calls").catch(unlessUnreadable);
    if (own.previous !== null || calls === null) return { ...own, callsUntil };
    return { ...own, previous: { secret: calls.secret, expiresAt: callsUntil }, callsUntil };
  };
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
