import type { AppPart } from "../runtime/app-context.ts";
import Type from "typebox";
import { auditEntry } from "../core/audit.ts";
import { authorize, type Caller } from "../core/roles.ts";
import { DomainError } from "../core/domain-error.ts";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { createApiRoutes, operation, optionalBody } from "../http/operation.ts";
import { jsonResponse } from "../http/response.ts";
import { type Secrets, UnreadableSecret } from "../crypto/secrets.ts";
import { RecentMap } from "../core/maps.ts";
import { normalTarget } from "../core/target.ts";
import {
  type SigningSeed,
  SIGNING_USES,
  type SigningUse,
  type SealedPlace,
  type UsedOrigins,
} from "../core/account-store.ts";
import { KNOWN_ORIGINS_MAX, ORIGIN_CHARS_MAX, SIGNING_OVERLAP_MS } from "../core/limits.ts";

/** A secret that signs calls or callbacks to an origin, or did. */
export interface OriginSecret {
  readonly secret: string;
  /** When it stops signing; null: it is the current one. */
  readonly endsAt: Date | null;
}

type OriginSecrets = readonly [current: OriginSecret, ...previous: OriginSecret[]];

interface CachedSecrets {
  readonly found: OriginSecrets;
  readonly readAtMs: number;
  /** The account's last rotation when the read began; undefined: none by this process. */
  readonly rotation: string | undefined;
}

/** How many origins, root secrets and rotations are remembered, each. */
const REMEMBERED_MAX = 10_000;

/** Takes origins that `checkOrigin` returned. */
export type SigningService = ReturnType<typeof createSigningService>;

/** As it is shown. */
export type SigningSecrets = Awaited<ReturnType<SigningService["read"]>>;

/**
 * Derives signing secrets, and caches those that sign, since every attempt does. A rotation drops them at once in this process;
 * another process notices it within `freshMs`, and until then the previous secret verifies what it signs. What owners read comes
 * from the store: somebody who reads, on another node, whether a rotation was done must not repeat it, which ends the oldest secret.
 */
export function createSigningService(
  app: AppPart<"clock" | "ids" | "log", "accounts" | "audit" | "signing">,
  secrets: Secrets,
  freshMs: number,
) {
  const { clock, ids, log } = app;
  const { accounts, audit, signing } = app.store;
  const cached = new RecentMap<CachedSecrets>(REMEMBERED_MAX);
  /** The id of the last rotation by this process, by account. What was read before it is stale. */
  const rotations = new RecentMap<string>(REMEMBERED_MAX);
  /** By account. They never change. */
  const rootSecrets = new RecentMap<Uint8Array>(REMEMBERED_MAX);

  const open = (accountId: string, sealed: string, place: SealedPlace): Uint8Array => {
    try {
      return secrets.open(sealed, place);
    } catch (cause) {
      // The error that callers get does not name the row.
      log.error("signing.unreadable", { account_id: accountId, table: place.table, row: place.row });
      throw new UnreadableSecret(`The sealed ${place.column} of ${place.table} ${place.row} can't be opened.`, {
        cause,
      });
    }
  };

  const findRootSecret = async (accountId: string): Promise<Uint8Array> => {
    const known = rootSecrets.get(accountId);
    if (known !== undefined) return known;
    const account = await accounts.find(accountId);
    if (account === null) throw new Error(`Account ${accountId} has no row.`);
    const place = { table: "accounts", row: accountId, column: "sealed_root_secret" };
    const secret = open(accountId, account.sealedRootSecret, place);
    rootSecrets.set(accountId, secret);
    return secret;
  };

  /** Derives a secret from a seed or, without one, from the account's root secret. Throws `UnreadableSecret`. */
  const derive = async (accountId: string, origin: string, use: SigningUse, seed?: SigningSeed): Promise<string> => {
    const from =
      seed === undefined ? await findRootSecret(accountId) : open(accountId, seed.sealedSeed, seedPlace(seed.id));
    return secrets.signingSecret(from, origin, use);
  };

  /** The secret for calls or for callbacks and, after a rotation, the one before it, unless that is unreadable. */
  const findOwn = async (accountId: string, origin: string, use: SigningUse): Promise<OriginSecrets> => {
    const [newest, before] = await signing.seeds(accountId, origin, use);
    const current = { secret: await derive(accountId, origin, use, newest), endsAt: null };
    if (newest === undefined) return [current];
    const previous = await derive(accountId, origin, use, before).catch(nullIfUnreadable);
    return previous === null ? [current] : [current, { secret: previous, endsAt: overlapEnd(newest.rotatedAt) }];
  };

  /**
   * The current secret, then previous ones, which may have ended. For a time, the secrets of calls also sign callbacks, since they did
   * before callbacks had their own. Throws `UnreadableSecret` if the current one can't be decrypted.
   */
  const find = async (accountId: string, origin: string, now: Date, use: SigningUse): Promise<OriginSecrets> => {
    const own = await findOwn(accountId, origin, use);
    const callsUntil = use === "callbacks" ? await signing.callbackOverlap(accountId, origin) : null;
    if (callsUntil === null || now >= callsUntil) return own;
    const calls = (await findOwn(accountId, origin, "calls").catch(nullIfUnreadable)) ?? [];
    const previous = calls.map(({ secret, endsAt }) => {
      return { secret, endsAt: endsAt !== null && endsAt < callsUntil ? endsAt : callsUntil };
    });
    return [...own, ...previous];
  };

  const findCached = async (accountId: string, origin: string, now: Date, use: SigningUse): Promise<OriginSecrets> => {
    const name = `${accountId} ${origin} ${use}`;
    const rotation = rotations.get(accountId);
    const known = cached.get(name);
    // Use the absolute age, so that setting the clock back doesn't extend the cache.
    const isFresh = known !== undefined && Math.abs(now.getTime() - known.readAtMs) < freshMs;
    if (isFresh && known.rotation === rotation) return known.found;
    const found = await find(accountId, origin, now, use);
    // Rotated during the read.
    if (rotations.get(accountId) !== rotation) return findCached(accountId, origin, now, use);
    cached.set(name, { found, readAtMs: now.getTime(), rotation });
    return found;
  };

  return {
    find,

    /** The secrets that sign now, the current one first: two after a recent rotation, more for callbacks that secrets of calls sign too. */
    async inUse(accountId: string, origin: string, now: Date, use: SigningUse): Promise<readonly string[]> {
      const found = await findCached(accountId, origin, now, use);
      return [...new Set(found.filter(({ endsAt }) => endsAt === null || now < endsAt).map(({ secret }) => secret))];
    },

    /** The secret, and the previous one while it signs. `isShown`: audit it. Throws `internal_error` if it is unreadable. */
    async read(caller: Caller, origin: string, use: SigningUse = "calls", isShown = true) {
      authorize(caller, "manage");
      const now = clock.now();
      const [{ secret }, previous] = await find(caller.accountId, origin, now, use).catch(throwExplained);
      // If the audit entry can't be written, the secret is not shown.
      const entry = { kind: "revealed", subject: origin, detail: { what: "signing_secret" } } as const;
      if (isShown) await audit.record(auditEntry(caller, entry, now));
      const expiresAt = previous?.endsAt ?? null;
      const signs = previous !== undefined && expiresAt !== null && now < expiresAt;
      return { origin, secret, previous: signs ? { secret: previous.secret, expiresAt } : null };
    },

    /** The origins with a secret in use, the last used first. Decrypts nothing. */
    async origins(caller: Caller) {
      authorize(caller, "manage");
      return knownOrigins(await signing.origins(caller.accountId), clock.now());
    },

    /** When the secret before the last rotation stops signing; null: no recent rotation. Decrypts nothing. */
    async overlapEnd(caller: Caller, origin: string, use: SigningUse = "calls"): Promise<Date | null> {
      authorize(caller, "manage");
      const [newest] = await signing.seeds(caller.accountId, origin, use);
      return openOverlap(newest, clock.now());
    },

    /**
     * Gives one origin, or all (null), a new secret at once. The previous one also signs for 24 hours. A call has at most two signatures,
     * so another rotation within that time ends the oldest secret immediately. Without `use`, it rotates the secret of calls and, for all
     * origins, also that of callbacks. New secrets come from new random bytes, so that old secrets reveal nothing about them. `shown`: the
     * `overlapEnd` that was shown; throws `validation_error` if it is another one by now.
     */
    async rotate(caller: Caller, origin: string | null, use: SigningUse | null = null, shown?: ShownOverlap) {
      authorize(caller, "manage");
      const rotatedAt = clock.now();
      const { accountId } = caller;
      const [newest] = shown === undefined ? [] : await signing.seeds(accountId, shown.origin, shown.use);
      if (shown !== undefined && openOverlap(newest, rotatedAt)?.getTime() !== shown.end?.getTime())
        throw rotatedSince();
      const id = ids.row(rotatedAt);
      const sealedSeed = secrets.seal(secrets.newRootSecret(), seedPlace(id));
      const entry = auditEntry(caller, { kind: "signing_secret_rotated", subject: origin ?? "" }, rotatedAt);
      const seen = shown && { origin: shown.origin, use: shown.use, id: newest?.id ?? null };
      // Two at once have both read the same.
      if (!(await signing.rotate({ id, accountId, origin, use, sealedSeed, rotatedAt }, entry, seen)))
        throw rotatedSince();
      // After the write, so that a read that starts now finds the new seed.
      rotations.set(accountId, id);
      return { origin, rotatedAt, previousExpiresAt: overlapEnd(rotatedAt) };
    },
  };
}

/** What an owner can do about a secret that can't be decrypted. Throws any other error as it is. */
export function throwExplained(error: unknown): never {
  if (!(error instanceof UnreadableSecret)) throw error;
  const message =
    "This signing secret can't be decrypted: its row in the database was altered. Rotate it, or restore a backup; the log names the row.";
  throw new DomainError("internal_error", message);
}

export function nullIfUnreadable(error: unknown): null {
  if (error instanceof UnreadableSecret) return null;
  throw error;
}

/** The `overlapEnd` of an origin as somebody saw it. */
interface ShownOverlap {
  readonly origin: string;
  readonly use: SigningUse;
  readonly end: Date | null;
}

function rotatedSince(): DomainError {
  return new DomainError("validation_error", "It was rotated a moment ago. Nothing else was changed.");
}

/** When the secret before the newest one stops signing; null: it does not sign. */
function openOverlap(newest: SigningSeed | undefined, now: Date): Date | null {
  const end = newest === undefined ? null : overlapEnd(newest.rotatedAt);
  return end === null || now >= end ? null : end;
}

/** When the secret before a rotation stops signing. */
function overlapEnd(rotatedAt: Date): Date {
  return new Date(rotatedAt.getTime() + SIGNING_OVERLAP_MS);
}

function seedPlace(seedId: string): SealedPlace {
  return { table: "signing_seeds", row: seedId, column: "sealed_seed" };
}

const secretText = (description: string) =>
  Type.String({ pattern: "^whsec_", description, examples: ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"] });

export const SigningSecretJson = t.answerObject(
  "SigningSecret",
  "The secret that signs the calls, or the callbacks, to one origin.",
  {
    origin: t.url("Scheme, host and port.", "https://api.example.com"),
    secret: secretText("Verifies the calls, or the callbacks, to this origin (Standard Webhooks)."),
    previous: t.nullable(
      Type.Object(
        { secret: secretText("The secret before it."), expires_at: t.dateTime("When it stops signing.") },
        {
          description:
            "After a rotation both secrets sign for 24 hours; null: no recent rotation. For callbacks it may be the secret of calls, for 30 days after callbacks got secrets of their own.",
        },
      ),
    ),
  },
);

export const RotationJson = t.answerObject("Rotation", "A rotation of signing secrets.", {
  origin: t.nullable(t.url("The origin that has a new secret; null: all origins.", "https://api.example.com")),
  rotated_at: t.dateTime("When the new secret began to sign."),
  previous_expires_at: t.dateTime("When the previous secret stops signing; another rotation ends it earlier."),
});

const originMember = Type.String({
  description: "Scheme, host and port of the target, without a path.",
  examples: ["https://api.example.com"],
  ...t.describedOnly({ pattern: String.raw`^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\\@\s]+$` }),
});

const useMember = (description: string) => Type.Optional(t.choice(SIGNING_USES, description, "callbacks"));

export const SigningSecretParameters = t.closedObject({
  origin: originMember,
  for: useMember("What the secret signs. Default: calls. Callbacks have secrets of their own."),
});

const RotateQuery = t.closedObject({
  origin: Type.Optional(originMember),
  for: useMember("Which secret to rotate. Default: that of calls, or without an origin those of calls and callbacks."),
});

/** Nothing may follow the authority, not even a slash, so that no origin has two spellings. */
const ORIGIN = /^https?:\/\/[^/?#\\@\s]+$/i;

/** The normalized origin. Throws `invalid_query`. */
export function checkOrigin(text: string): string {
  const target = ORIGIN.test(text) ? normalTarget(text) : null;
  if (target !== null && target.origin.length <= ORIGIN_CHARS_MAX) return target.origin;
  const message = "Must be scheme, host and port of a target, without a path, like https://api.example.com.";
  throw new DomainError("invalid_query", "The query is not valid.", [{ field: "origin", message }]);
}

/** The origins that calls and callbacks have used or that were rotated, the last used first. */
export function knownOrigins(used: UsedOrigins, now: Date) {
  const known = SIGNING_USES.flatMap((use) => {
    const uses = new Map(used[use].map(({ origin, lastUsedAt }) => [origin, lastUsedAt]));
    const own = used.rotations.filter((rotation) => rotation.use === use && rotation.origin !== null);
    const all = used.rotations.filter(({ origin, use: of }) => origin === null && (of === null || of === use));
    const origins = new Set([...uses.keys(), ...own.flatMap(({ origin }) => origin ?? [])]);
    return [...origins].slice(0, KNOWN_ORIGINS_MAX).map((origin) => {
      const times = [...all, ...own.filter((rotation) => rotation.origin === origin)].map(({ rotatedAt }) => rotatedAt);
      const rotatedAt = times.toSorted((one, other) => one.getTime() - other.getTime()).at(-1) ?? null;
      const end = rotatedAt && overlapEnd(rotatedAt);
      const previousExpiresAt = end !== null && end > now ? end : null;
      return { origin, use, lastUsedAt: uses.get(origin) ?? null, rotatedAt, previousExpiresAt };
    });
  });
  return known.toSorted((one, other) => {
    const byTime = (other.lastUsedAt?.getTime() ?? 0) - (one.lastUsedAt?.getTime() ?? 0);
    return byTime === 0 ? one.origin.localeCompare(other.origin) : byTime;
  });
}

const SigningOriginJson = t.answerObject("SigningOrigin", "An origin that has a signing secret in use.", {
  origin: t.url("Scheme, host and port.", "https://api.example.com"),
  for: t.choice(SIGNING_USES, "What its secret signs.", "calls"),
  last_used_at: t.nullable(t.dateTime("When the newest call, or callback, to it was caused; null: none is left.")),
  rotated_at: t.nullable(t.dateTime("When its secret was rotated last, alone or with all others; null: never.")),
  previous_expires_at: t.nullable(t.dateTime("Until when the previous secret signs too; null: it doesn't.")),
});

export const SigningOriginListJson = t.answerObject(
  "SigningOriginList",
  "Where an account's calls and callbacks went.",
  {
    data: Type.Array(SigningOriginJson, {
      description: `The origins, the last used first: at most ${KNOWN_ORIGINS_MAX} of calls and ${KNOWN_ORIGINS_MAX} of callbacks.`,
    }),
  },
);

export function signingSecretRoutes({ signingService }: { readonly signingService: SigningService }) {
  return createApiRoutes()
    .get(
      "/v1/signing-origins",
      async ({ caller }) => {
        const origins = await signingService.origins(caller);
        return jsonResponse(toJson(SigningOriginListJson, { data: origins.map((one) => ({ ...one, for: one.use })) }));
      },
      operation({
        operationId: "listSigningOrigins",
        permission: "manage",
        summary: "List the origins whose signing secrets are in use",
        description:
          "Lists where calls and callbacks of the account went, with the newest origin of each host name, and what was rotated.",
        notes: ["It shows no secret: read one with `getSigningSecret`."],
        answers: { 200: { description: "The origins.", schema: SigningOriginListJson } },
      }),
    )
    .get(
      "/v1/signing-secret",
      async ({ context, caller, query: { origin, for: use } }) => {
        const isShown = context.request.method !== "HEAD";
        const secret = await signingService.read(caller, checkOrigin(origin), use, isShown);
        return jsonResponse(toJson(SigningSecretJson, secret), 200, { "cache-control": "no-store" });
      },
      operation({
        operationId: "getSigningSecret",
        permission: "manage",
        summary: "Get the secret that signs calls, or callbacks, to an origin",
        description: "Returns the secret that signs calls to this origin (Standard Webhooks).",
        notes: [
          "For 24 hours after a rotation the previous one comes too.",
          "Callbacks have a separate secret: read it with `for=callbacks`.",
        ],
        query: SigningSecretParameters,
        answers: { 200: { description: "The secret.", schema: SigningSecretJson, headers: ["Cache-Control"] } },
      }),
    )
    .post(
      "/v1/signing-secret/rotate",
      async ({ caller, query: { origin, for: use } }) => {
        const checked = origin === undefined ? null : checkOrigin(origin);
        return jsonResponse(toJson(RotationJson, await signingService.rotate(caller, checked, use)));
      },
      operation({
        operationId: "rotateSigningSecret",
        permission: "manage",
        summary: "Rotate the signing secret of an origin, or of all origins",
        description: "Makes a new signing secret. Takes no body.",
        notes: [
          "Both secrets sign for 24 hours; a second rotation within that time ends the oldest at once.",
          "Without the parameter `origin` every origin gets new secrets, for calls and for callbacks.",
          "With an `origin` it rotates the secret for calls, or with `for=callbacks` the one for callbacks.",
        ],
        query: RotateQuery,
        body: optionalBody(t.NoBody),
        answers: {
          200: { description: "The rotation. Read the new secret with getSigningSecret.", schema: RotationJson },
        },
      }),
    );
}
