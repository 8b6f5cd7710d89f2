import { accountStopped, type Caller, unauthorized, hasScope } from "./roles.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Secrets } from "../crypto/types.ts";
import type { AccountStore, ApiKey } from "../../db/account-store.ts";
import { StoreUnavailable } from "../../db/store.ts";

interface AuthenticateDeps {
  readonly accounts: Pick<AccountStore, "keyByHash" | "keyUsed" | "replacedBy">;
  /** Whether the keys of an account are refused because nobody has allowed it. */
  readonly isStopped: (accountId: string) => boolean;
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
  readonly readAtMs: number;
  usedAtMs: number;
}

/** One header, the scheme in any case, a token of printable characters (RFC 6750). */
const BEARER = /^bearer +([!-~]{20,200})$/i;

const KEYS_REMEMBERED_MAX = 10_000;

/** A row is read again after so long: what a hand or another process has changed counts by then. */
const KEY_FRESH_MS = 5_000;

/** Signals of keys that were seen; the oldest ends whatever is still open by it, and its caller comes back. */
const REVOCATIONS_MAX = 100_000;

/** `last_used_at` is for people: to the minute is enough, and a write per request would be the dearest part of it. */
const USED_EVERY_MS = 60_000;

/**
 * Turns an Authorization header into a caller. Every failure is the same `unauthorized`, and its sentence says how to
 * get a key; of an account that is stopped it is `forbidden`, and says who allows it. Keys are looked up by hash and remembered for a few seconds; the process that revokes one forgets it at once.
 */
export function createAuthenticate({ accounts, isStopped, secrets, clock }: AuthenticateDeps): Authenticate {
  const remembered = new Map<string, Remembered>();
  // Apart from the rows: a key that is no longer remembered may still have streams open, which its end must reach.
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
      // Not for a key that nobody knows: strangers would have every key that is being read meanwhile read again.
      if (revocations.has(hash)) end(hash);
      throw unauthorized();
    }
    const replaced = key.replaces === null ? [] : await accounts.replacedBy(key.id);
    // Something was forgotten while this was read, perhaps this: what was read may be of the time before.
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

/** A full disk refuses no reader: all that is lost is the time of a use. */
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
