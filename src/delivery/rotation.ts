import type { Group, Lane } from "./lane.ts";

/** Lanes by account and key, in the order of their next turns. */
export class LaneRotation {
  readonly #accounts = new Map<Group, Map<Group, Set<Lane>>>();

  /** Adds or removes a lane. */
  set(lane: Lane, isIn: boolean): void {
    const keys = this.#accounts.get(lane.account);
    const lanes = keys?.get(lane.key);
    if (isIn) this.#put(lane.account, keys ?? new Map<Group, Set<Lane>>(), lane.key, (lanes ?? new Set()).add(lane));
    else if (keys !== undefined && lanes?.delete(lane) === true && lanes.size === 0) {
      keys.delete(lane.key);
      if (keys.size === 0) this.#accounts.delete(lane.account);
    }
  }

  #put(account: Group, keys: Map<Group, Set<Lane>>, key: Group, lanes: Set<Lane>): void {
    this.#accounts.set(account, keys.set(key, lanes));
  }

  /** The next lane that may take a slot; its account, its key and the lane itself move to the end of their turns. */
  next(hasSlot: (lane: Lane) => boolean, fits: (lane: Lane) => boolean): Lane | null {
    for (const [account, keys] of this.#accounts) {
      const lane = leastBusy(keys, hasSlot, fits);
      const lanes = lane === null ? undefined : keys.get(lane.key);
      if (lane === null || lanes === undefined) continue;
      lanes.delete(lane);
      keys.delete(lane.key);
      this.#accounts.delete(account);
      this.#put(account, keys, lane.key, lanes.add(lane));
      return lane;
    }
    return null;
  }
}

/**
 * The first fitting lane of the key with the fewest calls in flight; among equal keys, of the one that has waited longest.
 * `hasSlot` is the same for all lanes of a key.
 */
function leastBusy(
  keys: ReadonlyMap<Group, ReadonlySet<Lane>>,
  hasSlot: (lane: Lane) => boolean,
  fits: (lane: Lane) => boolean,
): Lane | null {
  let least: Lane | null = null;
  for (const [key, lanes] of keys) {
    if (least !== null && key.inFlight >= least.key.inFlight) continue;
    const [first] = lanes;
    if (first === undefined || !hasSlot(first)) continue;
    least = lanes.values().find(fits) ?? least;
    if (least?.key.inFlight === 0) break;
  }
  return least;
}

/**
 * An account may take another slot while it holds fewer than this many times the free slots. One account alone gets three
 * quarters of all, two get three sevenths each, and some slots are always free for the next account (the dynamic threshold
 * of shared-memory switches: Choudhury and Hahne, 1998).
 */
export const FREE_FACTOR = 3;

/**
 * One key may take all slots of its account. So that another key need not wait for those calls to end, a key that holds few
 * slots may exceed the account's share, up to this many times the free slots.
 */
const SECOND_KEY_FREE_FACTOR = FREE_FACTOR + 1;

/** Whether an account and its key, which hold this much of a shared resource, may have one more of what is free. */
export function mayTake(free: number, ofAccount: number, ofKey: number): boolean {
  // One free slot is enough for an account that holds none, however small the total is.
  if (ofAccount < FREE_FACTOR * free) return true;
  const beyond = SECOND_KEY_FREE_FACTOR * free - ofAccount;
  return free > 1 && SECOND_KEY_FREE_FACTOR * ofKey < beyond;
}
