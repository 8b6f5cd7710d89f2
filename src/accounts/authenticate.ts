import { type Caller, unauthorized } from "../domain/caller.ts";
import type { Clock } from "../ports/clock.ts";
import type { Secrets } from "../ports/secrets.ts";
import type { AccountStore, ApiKey } from "../ports/accounts.ts";
import { StoreUnavailable } from "../ports/store.ts";

export interface AuthenticateDeps {
  readonly accounts: AccountStore;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Clock;
}

/** Whose key a request carries. `forget` makes a revocation count at once, also for whoever came in by it and waits. */
export interface Authenticate {
  (authorization: string | null): Promise<Caller>;
  readonly forget: (keyHash: string) => void;
}

interface Remembered {
  readonly key: ApiKey;
  readonly caller: Caller;
  readonly revoke: () => void;
  usedAtMs: number;
}

/** One header, the scheme in any case, a token of printable characters (RFC 6750; spec "Authentication"). */
const BEARER = /^bearer +([!-~]{20,200})$/i;
const KEYS_REMEMBERED_MAX = 10_000;
/** `last_used_at` is for people: to the minute is enough, and a write per request would be the dearest part of it. */
const USED_EVERY_MS = 60_000;

/**
 * Turns an Authorization header into a caller. Every failure is the same `unauthorized`, and its sentence says how to
 * get a key. Keys are looked up by hash and remembered, since the process that revokes one forgets it in the same turn.
 */
export function createAuthenticate({ accounts, secrets, clock }: AuthenticateDeps): Authenticate {
  const remembered = new Map<string, Remembered>();
  let forgotten = 0;

  const recall = async (hash: string): Promise<Remembered> => {
    const known = remembered.get(hash);
    if (known !== undefined) return known;
    const before = forgotten;
    const key = await accounts.keyByHash(hash);
    if (key === null || key.revokedAt !== null) throw unauthorized();
    // Something was forgotten while this was read, perhaps this: what was read may be of the time before.
    if (forgotten !== before) return recall(hash);
    // Another request has asked for the same key meanwhile; both have to hear of its end.
    const same = remembered.get(hash);
    if (same !== undefined) return same;
    const end = new AbortController();
    const caller = callerOf(key, end.signal);
    const fresh: Remembered = { key, caller, revoke: () => end.abort(), usedAtMs: Number.NEGATIVE_INFINITY };
    // The oldest goes: a map keeps the order in which it was filled.
    if (remembered.size >= KEYS_REMEMBERED_MAX)
      for (const oldest of remembered.keys()) {
        remembered.delete(oldest);
        break;
      }
    remembered.set(hash, fresh);
    return fresh;
  };

  const authenticate = async (authorization: string | null): Promise<Caller> => {
    const token = BEARER.exec(authorization ?? "")?.[1];
    if (token === undefined) throw unauthorized();
    const known = await recall(secrets.hash(token));
    const nowMs = clock.monotonicMs();
    if (nowMs - known.usedAtMs >= USED_EVERY_MS) {
      known.usedAtMs = nowMs;
      await accounts.keyUsed(known.key.id, clock.now()).catch(unlessUnavailable);
    }
    return known.caller;
  };
  const forget = (keyHash: string) => {
    forgotten += 1;
    remembered.get(keyHash)?.revoke();
    remembered.delete(keyHash);
  };
  return Object.assign(authenticate, { forget });
}

/** A full disk refuses no reader: all that is lost is the time of a use. */
function unlessUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error;
}

function callerOf(key: ApiKey, revoked: AbortSignal): Caller {
  return {
    accountId: key.accountId,
    keyId: key.id,
    keyName: key.name,
    role: key.role,
    hold: key.hold,
    actor: `key:${key.name}`,
    revoked,
  };
}
