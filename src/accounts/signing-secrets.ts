import { auditOf, type AuditStore } from "../audit/audit.ts";
import { authorize, type Caller } from "./roles.ts";
import { DomainError } from "../api/domain-error.ts";
import type { SigningUse } from "../crypto/signature.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import { type Secrets, UnreadableSecret, type SealedPlace } from "../crypto/types.ts";
import type { SigningStore, SigningSeed, AccountStore } from "../../db/account-store.ts";
import { SIGNING_OVERLAP_MS, SIGNING_SECRETS_FRESH_MS } from "../config/limits.ts";
import type { Log } from "../observability/log.ts";

interface SigningServiceDeps {
  readonly signing: Pick<SigningStore, "rotate" | "seeds">;
  readonly audit: Pick<AuditStore, "record">;
  readonly signingSecrets: SigningSecrets;
  readonly secrets: Pick<Secrets, "newRootSecret" | "seal">;
  readonly ids: Pick<Ids, "row">;
  readonly clock: Pick<Clock, "now">;
}

/** The signing secrets of one origin. */
export interface SigningSecret extends OriginSecrets {
  readonly origin: string;
}

export interface Rotation {
  /** Null: all origins. */
  readonly origin: string | null;
  readonly rotatedAt: Date;
  readonly previousExpiresAt: Date;
}

/** All use cases of signing secrets, for owners. Takes origins that `checkOrigin` returned. */
export type SigningService = ReturnType<typeof createSigningService>;

export function createSigningService({ signing, audit, signingSecrets, secrets, ids, clock }: SigningServiceDeps) {
  return {
    /**
     * The present secret, and the previous one while it signs. `isShown`: the answer reveals it, so write an audit entry.
     * Throws `internal_error` if it can't be decrypted.
     */
    async read(caller: Caller, origin: string, use: SigningUse = "calls", isShown = true): Promise<SigningSecret> {
      authorize(caller, "manage");
      const now = clock.now();
      const { secret, previous } = await signingSecrets(caller.accountId, origin, now, use).catch(throwExplained);
      // If the audit entry can't be written, the secret is not shown.
      if (isShown)
        await audit.record(
          auditOf(caller, { kind: "revealed", subject: origin, detail: { what: "signing_secret" } }, now),
        );
      return { origin, secret, previous: previous === null || now >= previous.expiresAt ? null : previous };
    },

    /** When the secret before the last rotation stops signing; null: no recent rotation. Decrypts nothing. */
    async overlapEnd(caller: Caller, origin: string, use: SigningUse = "calls"): Promise<Date | null> {
      authorize(caller, "manage");
      const [newest] = await signing.seeds(caller.accountId, origin, use);
      const end = newest === undefined ? null : overlapEnd(newest.rotatedAt);
      return end === null || clock.now() >= end ? null : end;
    },

    /**
     * Gives one origin, or all (null), a new secret at once; the previous one signs too for 24 hours. A call has at most two
     * signatures, so another rotation within that time ends the oldest secret immediately. Without `use` it rotates the
     * secret of calls, and for all origins also that of callbacks. New secrets come from new random bytes, so that old
     * secrets reveal nothing about them.
     */
    async rotate(caller: Caller, origin: string | null, use: SigningUse | null = null): Promise<Rotation> {
      authorize(caller, "manage");
      const rotatedAt = clock.now();
      const { accountId } = caller;
      const id = ids.row(rotatedAt);
      const sealedSeed = secrets.seal(secrets.newRootSecret(), seedPlace(id));
      const rotatedUse = origin === null ? use : (use ?? "calls");
      const entry = auditOf(caller, { kind: "signing_secret_rotated", subject: origin ?? "" }, rotatedAt);
      await signing.rotate({ id, accountId, origin, use: rotatedUse, sealedSeed, rotatedAt }, entry);
      // After the write, so that a read that starts now finds the new seed.
      signingSecrets.forget(accountId, origin);
      return { origin, rotatedAt, previousExpiresAt: overlapEnd(rotatedAt) };
    },
  };
}

function throwExplained(error: unknown): never {
  if (!(error instanceof UnreadableSecret)) throw error;
  const message =
    "This signing secret can't be decrypted: its row in the database was altered. Rotate it, or restore a backup; the log names the row.";
  throw new DomainError("internal_error", message);
}

interface OriginSecrets {
  readonly secret: string;
  /**
   * The secret before the last rotation, which signs until `expiresAt`; null: none. For callbacks it may be the secret of
   * calls, which signed them before they had secrets of their own.
   */
  readonly previous: { readonly secret: string; readonly expiresAt: Date } | null;
}

/** The signing secrets of an account for an origin in the form of `URL.origin`. */
interface SigningSecrets {
  (accountId: string, origin: string, now: Date, use?: SigningUse): Promise<OriginSecrets>;
  /** The secrets that sign now, newest first: two after a recent rotation, else one; then those of calls if they still sign. */
  readonly inUse: (accountId: string, origin: string, now: Date, use?: SigningUse) => Promise<readonly string[]>;
  /** Drops cached secrets after a rotation; null: of all origins. */
  readonly forget: (accountId: string, origin: string | null) => void;
}

interface SigningSecretsDeps {
  readonly signing: Pick<SigningStore, "seeds" | "callbackOverlap">;
  readonly rootSecretOf: RootSecretOf;
  readonly openSecret: OpenSecret;
  readonly secrets: Pick<Secrets, "signingSecret">;
}

interface Found extends OriginSecrets {
  /** When the secrets of calls stop signing callbacks; null: they don't sign them. */
  readonly callsUntil: Date | null;
}

interface Remembered extends Found {
  readonly readAtMs: number;
}

const REMEMBERED_MAX = 10_000;

/**
 * Derives signing secrets and caches them, since every attempt signs. A rotation drops them at once in this process; another
 * process notices it within `SIGNING_SECRETS_FRESH_MS`, and until then the previous secret verifies what it signs. Throws
 * `UnreadableSecret` if the newest can't be decrypted. An unreadable previous secret is ignored, so that a rotation helps.
 */
export function createSigningSecrets(deps: SigningSecretsDeps): SigningSecrets {
  const remembered = new Map<string, Remembered>();
  let forgotten = 0;

  const read = createReadSecrets(deps);

  const recall = async (accountId: string, origin: string, now: Date, use: SigningUse = "calls"): Promise<Found> => {
    const name = `${nameOf(accountId, origin)} ${use}`;
    const known = remembered.get(name);
    // The absolute age, so that a clock that is set back does not extend the cache.
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : Math.abs(now.getTime() - known.readAtMs);
    if (known !== undefined && ageMs < SIGNING_SECRETS_FRESH_MS) return known;
    const before = forgotten;
    const found = await read(accountId, origin, use, now);
    // A rotation happened while this was read, perhaps of this origin: the result may be stale.
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

/** Reads an origin's secrets from the store, without a cache. */
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

/** When the secret before a rotation stops signing. */
function overlapEnd(rotatedAt: Date): Date {
  return new Date(rotatedAt.getTime() + SIGNING_OVERLAP_MS);
}

function seedPlace(seedId: string) {
  return { table: "signing_seeds", row: seedId, column: "sealed_seed" };
}

function nameOf(accountId: string, origin: string): string {
  return `${accountId} ${origin}`;
}

interface OpenSecretDeps {
  readonly secrets: Pick<Secrets, "open">;
  readonly log: Log;
}

/** Logs the row that can't be decrypted, since callers are not told which one it is. */
export function createOpenSecret({ secrets, log }: OpenSecretDeps): OpenSecret {
  return (accountId, sealed, place) => {
    try {
      return secrets.open(sealed, place);
    } catch (cause) {
      log.error("signing.unreadable", { account_id: accountId, table: place.table, row: place.row });
      throw new UnreadableSecret(`The sealed ${place.column} of ${place.table} ${place.row} can't be opened.`, {
        cause,
      });
    }
  };
}

/** Decrypts a secret of an account. Throws `UnreadableSecret`. */
type OpenSecret = (accountId: string, sealed: string, place: SealedPlace) => Uint8Array;

/** Decrypts the root secret of an account, from which its signing secrets are derived. Throws if there is no account. */
type RootSecretOf = (accountId: string) => Promise<Uint8Array>;

const ROOT_SECRETS_REMEMBERED_MAX = 10_000;

/** Caches decrypted root secrets, which never change. */
export function createRootSecretOf(accounts: AccountStore, openSecret: OpenSecret): RootSecretOf {
  const opened = new Map<string, Uint8Array>();
  return async (accountId) => {
    const known = opened.get(accountId);
    if (known !== undefined) return known;
    const account = await accounts.find(accountId);
    if (account === null) throw new Error(`Account ${accountId} has no row.`);
    const place = { table: "accounts", row: accountId, column: "sealed_root_secret" };
    const secret = openSecret(accountId, account.sealedRootSecret, place);
    if (opened.size >= ROOT_SECRETS_REMEMBERED_MAX) opened.clear();
    opened.set(accountId, secret);
    return secret;
  };
}
