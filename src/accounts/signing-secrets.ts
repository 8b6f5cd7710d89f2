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

/** What signs the calls to one origin, as its owner reads it. */
export interface SigningSecret extends OriginSecrets {
  readonly origin: string;
}

/** A rotation that was made. */
export interface Rotation {
  /** Null: all origins. */
  readonly origin: string | null;
  readonly rotatedAt: Date;
  readonly previousExpiresAt: Date;
}

/** The use cases of signing secrets, for owners. An `origin` has been checked: scheme, host and port, nothing more. */
export type SigningService = ReturnType<typeof createSigningService>;

/** Puts the verbs on one desk. */
export function createSigningService({ signing, audit, signingSecrets, secrets, ids, clock }: SigningServiceDeps) {
  return {
    /**
     * `previous` is told as long as it signs. `isShown`: somebody gets to see it, which the audit log tells. Throws
     * `internal_error`, with the way out, where it can't be opened.
     */
    async read(caller: Caller, origin: string, use: SigningUse = "calls", isShown = true): Promise<SigningSecret> {
      authorize(caller, "manage");
      const now = clock.now();
      const { secret, previous } = await signingSecrets(caller.accountId, origin, now, use).catch(explain);
      // What can't be written down is not shown.
      if (isShown)
        await audit.record(
          auditOf(caller, { kind: "revealed", subject: origin, detail: { what: "signing_secret" } }, now),
        );
      return { origin, secret, previous: previous === null || now >= previous.expiresAt ? null : previous };
    },

    /** Until when the secret before the last rotation signs; null: there was none lately. It opens no secret. */
    async overlapEnd(caller: Caller, origin: string, use: SigningUse = "calls"): Promise<Date | null> {
      authorize(caller, "manage");
      const [newest] = await signing.seeds(caller.accountId, origin, use);
      const end = newest === undefined ? null : overlapEnd(newest.rotatedAt);
      return end === null || clock.now() >= end ? null : end;
    },

    /**
     * Gives one origin, or all of them, a new secret at once; the one before it signs too for 24 hours. No call has more
     * than two signatures: a second rotation within that time ends the oldest secret there and then. Without `use` it is
     * the secret of calls; of all origins that of callbacks too. The
     * new ones come from fresh chance, so that whoever holds an old one, or what it was derived from, knows nothing.
     */
    async rotate(caller: Caller, origin: string | null, use: SigningUse | null = null): Promise<Rotation> {
      authorize(caller, "manage");
      const rotatedAt = clock.now();
      const { accountId } = caller;
      const id = ids.row(rotatedAt);
      const sealedSeed = secrets.seal(secrets.newRootSecret(), seedPlace(id));
      const meant = origin === null ? use : (use ?? "calls");
      const entry = auditOf(caller, { kind: "signing_secret_rotated", subject: origin ?? "" }, rotatedAt);
      await signing.rotate({ id, accountId, origin, use: meant, sealedSeed, rotatedAt }, entry);
      // After the write: whoever asks the store from now on finds the new seed.
      signingSecrets.forget(accountId, origin);
      return { origin, rotatedAt, previousExpiresAt: overlapEnd(rotatedAt) };
    },
  };
}

function explain(error: unknown): never {
  if (!(error instanceof UnreadableSecret)) throw error;
  const message =
    "This signing secret can't be opened: its row in the database was altered. Rotate it, or restore a backup; the log names the row.";
  throw new DomainError("internal_error", message);
}

/** What signs the calls to one origin, or the callbacks. */
interface OriginSecrets {
  readonly secret: string;
  /**
   * The one before it; null when there was none. It signs as long as its time is not over. Of callbacks it may be that of
   * calls, which signed them before they had a secret of their own.
   */
  readonly previous: { readonly secret: string; readonly expiresAt: Date } | null;
}

/** The signing secrets of an account for an origin, as `URL.origin` spells it. */
interface SigningSecrets {
  (accountId: string, origin: string, now: Date, use?: SigningUse): Promise<OriginSecrets>;
  /** Those that sign now, the newest first: two while a rotation is fresh, else one; and those of calls behind them. */
  readonly inUse: (accountId: string, origin: string, now: Date, use?: SigningUse) => Promise<readonly string[]>;
  /** Makes a rotation count at once; null: of all origins. */
  readonly forget: (accountId: string, origin: string | null) => void;
}

interface SigningSecretsDeps {
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
function overlapEnd(rotatedAt: Date): Date {
  return new Date(rotatedAt.getTime() + SIGNING_OVERLAP_MS);
}

/** Where a seed's sealed text belongs. */
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

/** Says in the log which row it is that does not open, since no caller is told: they could do nothing about it. */
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

/** What opens a sealed secret of an account. Throws `UnreadableSecret`. */
type OpenSecret = (accountId: string, sealed: string, place: SealedPlace) => Uint8Array;

/** Opens the root secret of an account, from which its signing secrets are derived. Throws when there is no account. */
type RootSecretOf = (accountId: string) => Promise<Uint8Array>;

const ROOT_SECRETS_REMEMBERED_MAX = 10_000;

/** Remembers opened secrets: each attempt signs, and a root secret never changes. */
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
