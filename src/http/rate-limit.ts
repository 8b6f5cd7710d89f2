import { DomainError } from "../api/domain-error.ts";
import {
  RATE_FLOOD_REFUSALS,
  RATE_OVERSHOOT_MAX,
  RATE_WINDOW_MS,
  REFUSALS_HELD_MAX,
  REFUSAL_HELD_MS,
} from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";

/** Who asks: a key of an account. */
interface Asking {
  readonly accountId: string;
  readonly keyId: string | null;
}

/** How many requests an account may make (spec "Limits"), and how its keys share them. */
interface RateLimit {
  /** Counts requests of a key; throws `rate_limited` when they are too many. Refused requests count too. */
  count(asking: Asking, requests: number): void;
  /**
   * Resolves when a refusal may go out: at once, or about a second later where the key has been refused as often in this
   * one as its account may ask, and asks on. Who waits for an answer before it asks again is then slow enough for others.
   */
  slowDown(asking: Asking): Promise<void>;
}

interface KeyCount {
  asked: number;
  refused: number;
}

interface AccountCount {
  admitted: number;
  readonly keys: Map<string, KeyCount>;
}

const NO_KEYS: ReadonlyMap<string, KeyCount> = new Map();

/**
 * Windows of one second, of this process alone; `perSecond` 0 turns it off. A key alone may use all of its account's
 * requests. While several keys ask, each may make its equal share of them, and beyond it what the others leave, who are
 * expected to ask as often as in the second before. A key that begins to ask beside one that floods gets its share at once:
 * in that second the account may make up to `RATE_OVERSHOOT_MAX` times its requests.
 */
export function createRateLimit(clock: Clock, perSecond: number): RateLimit {
  const windows = new Windows(clock);
  let held = 0;
  let heldEver = 0;
  return {
    count({ accountId, keyId }, requests) {
      if (perSecond === 0 || requests === 0) return;
      const { account, before } = windows.of(accountId);
      const name = keyId ?? "";
      const own = account.keys.get(name) ?? { asked: 0, refused: 0 };
      account.keys.set(name, own);
      own.asked += requests;
      if (mayAsk({ name, requests, account, before }, perSecond)) {
        account.admitted += requests;
        return;
      }
      own.refused += 1;
      throw new DomainError("rate_limited", `This account may make ${perSecond} requests a second; wait a second.`);
    },
    async slowDown({ accountId, keyId }) {
      const refused = windows.counted(accountId)?.keys.get(keyId ?? "")?.refused ?? 0;
      if (refused <= perSecond || held >= REFUSALS_HELD_MAX) return;
      held += 1;
      heldEver += 1;
      // Spread by the golden ratio: let go together they would come back together, and what is taken of them be one burst.
      const waitMs = REFUSAL_HELD_MS * (0.5 + ((heldEver * 0.618_034) % 1));
      await new Promise<void>((resolve) => void clock.after(waitMs, resolve));
      held -= 1;
    },
  };
}

/** What each account has asked for in this window and in the one before it. */
class Windows {
  readonly #clock: Clock;
  #window = Number.NEGATIVE_INFINITY;
  // One map for all accounts, thrown away with its window: nothing to sweep.
  #counts = new Map<string, AccountCount>();
  #before: ReadonlyMap<string, AccountCount> = new Map<string, AccountCount>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Turns to the window of now. */
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

  counted(accountId: string): AccountCount | undefined {
    return this.#counts.get(accountId);
  }
}

interface Asked {
  readonly name: string;
  /** Of the key's `asked` by now. */
  readonly requests: number;
  readonly account: AccountCount;
  readonly before: ReadonlyMap<string, KeyCount>;
}

function mayAsk({ name, requests, account, before }: Asked, perSecond: number): boolean {
  const { keys } = account;
  const asked = keys.get(name)?.asked ?? 0;
  const keyCount = new Set([...keys.keys(), ...before.keys()]).size;
  const share = Math.max(1, Math.floor(perSecond / keyCount));
  const admitted = account.admitted + requests;
  if (asked > Math.min(share, perSecond)) {
    return asked <= perSecond && admitted + expectedOf(name, share, before, keys) <= perSecond;
  }
  return admitted <= perSecond || (admitted <= perSecond * RATE_OVERSHOOT_MAX && (floods(keys) || floods(before)));
}

/** Whether one of them goes on although it is told to wait. */
function floods(keys: ReadonlyMap<string, KeyCount>): boolean {
  return keys.values().some(({ refused }) => refused >= RATE_FLOOD_REFUSALS);
}

/** What the other keys may still ask for within their shares, if they ask as often as in the window before. */
function expectedOf(
  name: string,
  share: number,
  before: ReadonlyMap<string, KeyCount>,
  now: ReadonlyMap<string, KeyCount>,
): number {
  let expected = 0;
  for (const [key, { asked }] of before) {
    if (key !== name) expected += Math.max(0, Math.min(share, asked) - (now.get(key)?.asked ?? 0));
  }
  return expected;
}
