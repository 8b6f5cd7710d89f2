import { DomainError } from "../core/domain-error.ts";
import {
  RATE_FLOOD_REFUSALS,
  RATE_OVERSHOOT_MAX,
  RATE_WINDOW_MS,
  REFUSALS_HELD_MAX,
  REFUSAL_HELD_MS,
} from "../core/limits.ts";
import { type Clock, sleep } from "../core/clock.ts";
import type { Caller } from "../core/roles.ts";

type Requester = Pick<Caller, "accountId" | "keyId">;

interface KeyCount {
  requested: number;
  refused: number;
}

interface AccountCount {
  admitted: number;
  readonly keys: Map<string, KeyCount>;
}

const NO_KEYS: ReadonlyMap<string, KeyCount> = new Map();

/**
 * Limits the requests per second of an account, in windows of one second and in this process only; `perSecond` 0 turns it off.
 * A single key may use the account's whole limit. If several keys send requests, each gets an equal share and what the others
 * don't use, who are expected to send as many as in the second before. A key that starts while another floods gets its share at
 * once: in that second, the account may exceed its limit by up to `RATE_OVERSHOOT_MAX`.
 */
export function createRateLimit(clock: Clock, perSecond: number) {
  const windows = new Windows(clock);
  const holdRefusal = createHoldRefusal(clock);
  return {
    /** Counts requests of a key. Throws `rate_limited` if there are too many. Refused requests count, too. */
    count({ accountId, keyId }: Requester, requests: number): void {
      if (perSecond === 0 || requests === 0) return;
      const window = windows.of(accountId);
      const { account } = window;
      const name = keyId ?? "";
      const own = account.keys.get(name) ?? { requested: 0, refused: 0 };
      account.keys.set(name, own);
      own.requested += requests;
      if (isAllowed(name, requests, window, perSecond)) {
        account.admitted += requests;
        return;
      }
      own.refused += 1;
      throw new DomainError("rate_limited", `This account may make ${perSecond} requests per second. Wait a second.`);
    },
    /**
     * Resolves when a 429 may be sent: at once, or after about a second if the key was refused more often than the account's
     * limit within this second. That slows down clients that wait for each response before their next request.
     */
    async slowDown({ accountId, keyId }: Requester): Promise<void> {
      const refused = windows.findCounts(accountId)?.keys.get(keyId ?? "")?.refused ?? 0;
      if (refused > perSecond) await holdRefusal();
    },
  };
}

/** Resolves after about a second, or at once where `REFUSALS_HELD_MAX` wait already. */
export function createHoldRefusal(clock: Pick<Clock, "after">): () => Promise<void> {
  let delayed = 0;
  let delayedTotal = 0;
  return async () => {
    if (delayed >= REFUSALS_HELD_MAX) return;
    delayed += 1;
    delayedTotal += 1;
    // Spread evenly by the golden ratio: if they were answered together, the clients would return in one burst.
    const waitMs = REFUSAL_HELD_MS * (0.5 + ((delayedTotal * 0.618_034) % 1));
    await sleep(clock, waitMs);
    delayed -= 1;
  };
}

/** The counts of each account in this window and in the one before it. */
class Windows {
  readonly #clock: Clock;
  #window = Number.NEGATIVE_INFINITY;
  // One map for all accounts, dropped with its window: nothing to clean up.
  #counts = new Map<string, AccountCount>();
  #before: ReadonlyMap<string, AccountCount> = new Map<string, AccountCount>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The counts in the current window, which begins here if the last one is over. */
  of(accountId: string): { readonly account: AccountCount; readonly before: ReadonlyMap<string, KeyCount> } {
    const now = Math.floor(this.#clock.monotonicMs() / RATE_WINDOW_MS);
    if (now !== this.#window) {
      this.#before = now === this.#window + 1 ? this.#counts : new Map<string, AccountCount>();
      this.#counts = new Map();
      this.#window = now;
    }
    const account = this.#counts.get(accountId) ?? { admitted: 0, keys: new Map<string, KeyCount>() };
    this.#counts.set(accountId, account);
    return { account, before: this.#before.get(accountId)?.keys ?? NO_KEYS };
  }

  findCounts(accountId: string): AccountCount | undefined {
    return this.#counts.get(accountId);
  }
}

/** Whether a key may make some requests, which `requested` already includes. */
function isAllowed(
  name: string,
  requests: number,
  { account, before }: ReturnType<Windows["of"]>,
  perSecond: number,
): boolean {
  const { keys } = account;
  const requested = keys.get(name)?.requested ?? 0;
  const keyCount = new Set([...keys.keys(), ...before.keys()]).size;
  const share = Math.max(1, Math.floor(perSecond / keyCount));
  const admitted = account.admitted + requests;
  if (requested > Math.min(share, perSecond)) {
    return requested <= perSecond && admitted + expectedShare(share, before, keys) <= perSecond;
  }
  return (
    admitted <= perSecond || (admitted <= perSecond * RATE_OVERSHOOT_MAX && (isFlooded(keys) || isFlooded(before)))
  );
}

/** Whether a key keeps sending although it is refused. */
function isFlooded(keys: ReadonlyMap<string, KeyCount>): boolean {
  return keys.values().some(({ refused }) => refused >= RATE_FLOOD_REFUSALS);
}

/**
 * How many requests are still expected within the keys' shares, if they send as many as in the last window. None of a key that is beyond
 * its share.
 */
function expectedShare(
  share: number,
  before: ReadonlyMap<string, KeyCount>,
  now: ReadonlyMap<string, KeyCount>,
): number {
  let expected = 0;
  for (const [key, { requested }] of before) {
    expected += Math.max(0, Math.min(share, requested) - (now.get(key)?.requested ?? 0));
  }
  return expected;
}
