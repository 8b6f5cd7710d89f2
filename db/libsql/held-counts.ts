import type { Action } from "../../src/domain/action.ts";
import { HELD_PER_KEY_MAX } from "../../src/domain/limits.ts";

/** Keys that are remembered; the rows of any other are counted anew. */
const KEYS_MAX = 10_000;

interface Count {
  /** No more of the key's actions wait than this, what is being written counted in. */
  atMost: number;
  /** Being written just now: the rows may have them or not. */
  inFlight: number;
  /** Fewer may wait than `atMost` says. */
  isStale: boolean;
  counting: Promise<void> | null;
}

/**
 * How many actions of each key await approval at most, so that a create need not count them: with ten thousand of them that
 * would be its dearest part. The rows are counted where the bound is reached and something has been decided since.
 */
export class HeldCounts {
  readonly #counts = new Map<string, Count>();
  readonly #countRows: (accountId: string, keyId: string) => Promise<number>;

  constructor(countRows: (accountId: string, keyId: string) => Promise<number>) {
    this.#countRows = countRows;
  }

  /**
   * Runs the insert of an action that is held, unless its key has as many waiting as it may: then null. `insert` resolves
   * with whether there is a row more by it.
   */
  async insert(action: Action, insert: () => Promise<boolean>): Promise<boolean | null> {
    const count = this.#of(action);
    // Whoever counts lets all that wait for it go on at once, and there may be room for some of them only.
    while (count.atMost >= HELD_PER_KEY_MAX) {
      if (count.counting === null && !count.isStale) return null;
      await (count.counting ??= this.#recount(action, count));
    }
    count.atMost += 1;
    count.inFlight += 1;
    try {
      const isInserted = await insert();
      if (!isInserted) count.atMost -= 1;
      return isInserted;
    } catch (error) {
      // It may have been written all the same.
      count.isStale = true;
      throw error;
    } finally {
      count.inFlight -= 1;
    }
  }

  /** Hears of a change that was written. */
  changed(before: Action, after: Action): void {
    const isHeld = after.status === "awaiting_approval";
    if (isHeld === (before.status === "awaiting_approval")) return;
    const count = this.#counts.get(nameOf(after));
    if (count === undefined) return;
    if (isHeld) count.atMost += 1;
    else count.isStale = true;
  }

  async #recount({ accountId, keyId }: Action, count: Count): Promise<void> {
    count.isStale = false;
    // Nothing begins to be written before this ends.
    const { inFlight } = count;
    try {
      count.atMost = inFlight + (await this.#countRows(accountId, keyId));
    } catch (error) {
      count.isStale = true;
      throw error;
    } finally {
      count.counting = null;
    }
  }

  #of(action: Action): Count {
    const name = nameOf(action);
    const known = this.#counts.get(name);
    if (known !== undefined) return known;
    const count = { atMost: Number.POSITIVE_INFINITY, inFlight: 0, isStale: true, counting: null };
    this.#counts.set(name, count);
    if (this.#counts.size > KEYS_MAX) this.#forgetOne(name);
    return count;
  }

  #forgetOne(newest: string): void {
    for (const [name, { inFlight, counting }] of this.#counts) {
      if (name === newest || inFlight > 0 || counting !== null) continue;
      this.#counts.delete(name);
      return;
    }
  }
}

function nameOf({ accountId, keyId }: Action): string {
  return `${accountId} ${keyId}`;
}
