import { accountStopped, type Caller, unauthorized, hasScope } from "./roles.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Secrets } from "../crypto/types.ts";
import type { AccountStore, ApiKey } from "../../db/account-store.ts";
import { StoreUnavailable } from "../../db/store.ts";

interface AuthenticateDeps {
  readonly accounts: Pick<AccountStore, "keyByHash" | "keyUsed" | "replacedBy">;
  /** Whether the keys of an account are refused because the operator has not allowed it. */
  readonly isStopped: (accountId: string) => boolean;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Clock;
}

/** Identifies the caller of a request. `forget` applies a revocation at once, also to open streams and waits of the key. */
export interface Authenticate {
  (authorization: string | null): Promise<Caller>;
  readonly forget: (keyHash: string) => void;
}

interface Remembered {
  readonly key: ApiKey;
  readonly caller: Caller;
  readonly readAtMs: number;
  usedAtMs: number;
}

/** One header, the scheme in any case, a token of printable characters (RFC 6750). */
const BEARER = /^bearer +([!-~]{20,200})$/i;

const KEYS_REMEMBERED_MAX = 10_000;

/** After this a row is read again, so that changes by other processes take effect. */
const KEY_FRESH_MS = 5_000;

/** Revocation signals that are kept. Beyond it the oldest is aborted: its streams and waits end, and clients reconnect. */
const REVOCATIONS_MAX = 100_000;

/** `last_used_at` is exact to the minute: a write per request would be the most expensive part of a request. */
const USED_EVERY_MS = 60_000;

/**
 * Turns an Authorization header into a caller. Every failure is the same `unauthorized`, except `forbidden` for a stopped
 * account. Keys are looked up by hash and cached for `KEY_FRESH_MS`; the process that revokes one drops it at once.
 */
export function createAuthenticate({ accounts, isStopped, secrets, clock }: AuthenticateDeps): Authenticate {
  const remembered = new Map<string, Remembered>();
  // Apart from the cached rows: a key that is no longer cached may still have open streams, which its revocation must end.
  const revocations = new Map<string, AbortController>();
  let forgotten = 0;

  const revocationOf = (hash: string): AbortController => {
    const known = revocations.get(hash);
    if (known !== undefined) return known;
    if (revocations.size >= REVOCATIONS_MAX) end(oldestOf(revocations));
    const made = new AbortController();
    revocations.set(hash, made);
    return made;
  };
  const end = (hash: string) => {
    forgotten += 1;
    remembered.delete(hash);
    revocations.get(hash)?.abort();
    revocations.delete(hash);
  };

  const recall = async (hash: string): Promise<Remembered> => {
    const known = remembered.get(hash);
    const nowMs = clock.monotonicMs();
    if (known !== undefined && nowMs - known.readAtMs < KEY_FRESH_MS) return known;
    const before = forgotten;
    const key = await accounts.keyByHash(hash);
    if (key === null || key.revokedAt !== null) {
      // Not for unknown keys: `end` makes concurrent reads start again, and strangers could cause that at will.
      if (revocations.has(hash)) end(hash);
      throw unauthorized();
    }
    const replaced = key.replaces === null ? [] : await accounts.replacedBy(key.id);
    // A key was revoked while this was read, perhaps this one: the row may be stale.
    if (forgotten !== before) return recall(hash);
    const caller = callerOf(key, new Set(replaced), revocationOf(hash).signal);
    const fresh: Remembered = { key, caller, readAtMs: nowMs, usedAtMs: known?.usedAtMs ?? Number.NEGATIVE_INFINITY };
    if (known === undefined && remembered.size >= KEYS_REMEMBERED_MAX) remembered.delete(oldestOf(remembered));
    remembered.set(hash, fresh);
    return fresh;
  };

  const authenticate = async (authorization: string | null): Promise<Caller> => {
    const token = BEARER.exec(authorization ?? "")?.[1];
    if (token === undefined) throw unauthorized();
    const known = await recall(secrets.hash(token));
    if (isStopped(known.key.accountId)) throw accountStopped(known.key.accountId);
    const nowMs = clock.monotonicMs();
    if (nowMs - known.usedAtMs >= USED_EVERY_MS) {
      known.usedAtMs = nowMs;
      await accounts.keyUsed(known.key.id, clock.now()).catch(unlessUnavailable);
    }
    return known.caller;
  };
  return Object.assign(authenticate, { forget: end });
}

/** A map keeps the order in which it was filled. */
function oldestOf(map: ReadonlyMap<string, unknown>): string {
  const [oldest = ""] = map.keys();
  return oldest;
}

/** A full disk must not refuse requests; only `last_used_at` is lost. */
function unlessUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error;
}

function callerOf(key: ApiKey, replaced: ReadonlySet<string>, revoked: AbortSignal): Caller {
  return {
    accountId: key.accountId,
    keyId: key.id,
    keyName: key.name,
    role: key.role,
    hold: key.hold,
    ...(hasScope(key.role) ? { scope: key.scope, replaced } : {}),
    actor: `key:${key.name}`,
    revoked,
  };
}
