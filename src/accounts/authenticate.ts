import type { Authenticate } from "../core/session.ts";
import { accountStopped, type Caller, hasScope, isLimited, keyLimits, unauthorized } from "../core/roles.ts";
import { hasEnded, type ApiKey } from "../core/account-store.ts";
import { KEYS_READ_AT_ONCE_MAX, SHARED_FRESH_MS } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { RecentMap } from "../core/maps.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { TokenKey } from "../core/oauth-store.ts";
import { StoreUnavailable } from "../core/store.ts";
import type { AppPart } from "../runtime/app-context.ts";

interface AuthenticateNeeds {
  /** Whether the keys of an account are refused because the operator has not allowed it. */
  readonly isStopped: (accountId: string) => boolean;
  /** The key of an access token; null: it is no valid token. Left out: there are no tokens. */
  readonly keyOfToken?: (token: string) => Promise<TokenKey | null>;
  readonly secrets: Pick<Secrets, "hash">;
}

/** A token of printable characters, with the scheme in any case (RFC 6750). */
const BEARER = /^bearer +([!-~]{20,200})$/i;

/** 256 bits in base64url, as access tokens of OAuth are made. */
const ACCESS_TOKEN = /^[\w-]{43}$/;

const KEYS_CACHED_MAX = 10_000;

/** How many revocation signals are kept. Beyond, the oldest is aborted: its streams and waits end, and clients reconnect. */
const REVOCATIONS_MAX = 100_000;

/** `last_used_at` is exact to the minute: a write per request would be the most expensive part of a request. */
const USED_EVERY_MS = 60_000;

const EXPIRY_TIMER_MS_MAX = 3_600_000;

interface CachedKey {
  readonly id: string;
  readonly caller: Caller;
  /** When the token by which it was found expires; null: it was found by the key itself. */
  readonly until: Date | null;
  readonly readAtMs: number;
  usedAtMs: number;
}

/**
 * Turns an Authorization header into a caller. Every failure is the same `unauthorized`, except `forbidden` for a stopped
 * account. Keys are looked up by hash and cached for `SHARED_FRESH_MS`; the process that revokes one drops it at once.
 */
export function createAuthenticate(
  { store: { accounts }, clock }: AppPart<"clock", "accounts">,
  { isStopped, secrets, keyOfToken }: AuthenticateNeeds,
): Authenticate {
  const cached = new RecentMap<CachedKey>(KEYS_CACHED_MAX);
  // Separate from the cached rows, since a key that is no longer cached may have open streams that its revocation must end.
  const revocations = createRevocations(clock, (hash) => forget(hash));
  let forgotten = 0;

  const forget = (hash: string) => {
    forgotten += 1;
    cached.delete(hash);
    revocations.end(hash);
  };

  /** Finds a key by a token; null: by its hash. */
  const find = async (name: string, token: string | null): Promise<CachedKey | null> => {
    const known = cached.get(name);
    const nowMs = clock.monotonicMs();
    // A key found by a token is forgotten by its own hash.
    const isLive = known !== undefined && known.caller.revoked?.aborted !== true;
    if (isLive && nowMs - known.readAtMs < SHARED_FRESH_MS) return known;
    const before = forgotten;
    const byToken = token === null ? null : ((await keyOfToken?.(token)) ?? null);
    const key = token === null ? await accounts.keyByHash(name) : (byToken?.key ?? null);
    const hash = key?.hash ?? name;
    if (key === null || hasEnded(key, clock.now())) {
      // Only once, and not for unknown keys: `forget` restarts concurrent reads, which strangers could cause at will.
      if (revocations.has(hash)) forget(hash);
      return null;
    }
    const replaced = key.replaces === null ? [] : await accounts.replacedBy(key.id);
    // A key was revoked while this was read, perhaps this one: the row may be stale.
    if (forgotten !== before) return find(name, token);
    const caller = callerOfKey(key, replaced, revocations.endSignal(hash, key.expiresAt));
    const usedAtMs = known?.usedAtMs ?? Number.NEGATIVE_INFINITY;
    const fresh = { id: key.id, caller, until: byToken?.expiresAt ?? null, readAtMs: nowMs, usedAtMs };
    cached.set(name, fresh);
    return fresh;
  };

  const authenticate = async (authorization: string | null, takesTokens = false): Promise<Caller> => {
    const secret = BEARER.exec(authorization ?? "")?.[1];
    if (secret === undefined) throw unauthorized();
    const hash = secrets.hash(secret);
    // Cached under a separate name, since /v1 takes no tokens.
    const byToken = takesTokens && ACCESS_TOKEN.test(secret) ? await find(`token ${hash}`, secret) : null;
    const key = byToken ?? (await find(hash, null));
    if (key === null) throw unauthorized();
    const { accountId, limits } = key.caller;
    const ends = [key.until, limits?.expiresAt ?? null];
    if (ends.some((end) => end !== null && clock.now() >= end)) throw unauthorized();
    if (isStopped(accountId)) throw accountStopped(accountId);
    const nowMs = clock.monotonicMs();
    if (nowMs - key.usedAtMs >= USED_EVERY_MS) {
      key.usedAtMs = nowMs;
      await accounts.keyUsed(key.id, clock.now()).catch((error: unknown) => {
        // A full disk must not refuse requests; only `last_used_at` is lost.
        if (!(error instanceof StoreUnavailable)) throw error;
      });
    }
    return key.caller;
  };
  const recheck = async (): Promise<void> => {
    const hashes = revocations.hashes();
    for (let at = 0; at < hashes.length; at += KEYS_READ_AT_ONCE_MAX) {
      const revoked = await accounts.revokedAmong(hashes.slice(at, at + KEYS_READ_AT_ONCE_MAX));
      for (const hash of revoked) forget(hash);
    }
  };
  return Object.assign(authenticate, { forget, recheck });
}

/** The signals that end streams and waits of keys. Calls `onEnd` when a key expires or must make room. */
function createRevocations(clock: Pick<Clock, "after" | "now">, onEnd: (hash: string) => void) {
  const signals = new Map<string, AbortController>();
  const timers = new Map<string, () => void>();
  const watch = (hash: string, expiresAt: Date): void => {
    const leftMs = expiresAt.getTime() - clock.now().getTime();
    if (leftMs <= 0) return onEnd(hash);
    // A timer lasts 24 days at most, and the clock may be set meanwhile.
    const again = () => watch(hash, expiresAt);
    timers.set(hash, clock.after(Math.min(leftMs, EXPIRY_TIMER_MS_MAX), again));
  };
  return {
    has: (hash: string) => signals.has(hash),
    hashes: () => [...signals.keys()],
    endSignal(hash: string, expiresAt: Date | null): AbortSignal {
      const known = signals.get(hash);
      if (known !== undefined) return known.signal;
      // A map keeps insertion order.
      const [oldest = ""] = signals.keys();
      if (signals.size >= REVOCATIONS_MAX) onEnd(oldest);
      const made = new AbortController();
      signals.set(hash, made);
      if (expiresAt !== null) watch(hash, expiresAt);
      return made.signal;
    },
    end(hash: string): void {
      signals.get(hash)?.abort();
      signals.delete(hash);
      timers.get(hash)?.();
      timers.delete(hash);
    },
  };
}

export function callerOfKey(key: ApiKey, replaced: readonly string[], revoked: AbortSignal): Caller {
  return {
    accountId: key.accountId,
    keyId: key.id,
    keyName: key.name,
    role: key.role,
    hold: key.hold,
    ...(isLimited(key) ? { limits: keyLimits(key) } : {}),
    ...(hasScope(key.role) ? { scope: key.scope, replaced: new Set(replaced) } : {}),
    actor: `key:${key.name}`,
    revoked,
  };
}
