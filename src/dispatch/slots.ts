/** How many attempts may be in flight. */
export interface SlotLimits {
  /** In all (`DISPATCH_CONCURRENCY`). */
  readonly total: number;
  /** In one lane, that is from one account to one host (`DISPATCH_PER_HOST`). */
  readonly perLane: number;
}

/**
 * An account may take another slot while it holds fewer than this many times the slots that are free. Alone it gets three
 * quarters, two get three sevenths each, and some are always free for whoever comes next (the dynamic threshold that
 * switches share their memory by: Choudhury and Hahne, 1998).
 */
export const FREE_FACTOR = 3;

/** Counts what is in flight, so that one slow host or account never takes the place of all others. */
export class Slots {
  readonly #limits: SlotLimits;
  readonly #byAccount = new Map<string, number>();
  readonly #byLane = new Map<string, number>();
  #taken = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
  }

  get taken(): number {
    return this.#taken;
  }

  get free(): number {
    return this.#limits.total - this.#taken;
  }

  laneHasRoom(lane: string): boolean {
    return (this.#byLane.get(lane) ?? 0) < this.#limits.perLane;
  }

  accountHasRoom(account: string): boolean {
    // A free slot is enough for whoever has none, however small the whole is.
    return this.free > 0 && (this.#byAccount.get(account) ?? 0) < Math.max(1, FREE_FACTOR * this.free);
  }

  laneIsIdle(lane: string): boolean {
    return !this.#byLane.has(lane);
  }

  take(account: string, lane: string): void {
    this.#taken += 1;
    add(this.#byAccount, account, 1);
    add(this.#byLane, lane, 1);
  }

  give(account: string, lane: string): void {
    this.#taken -= 1;
    add(this.#byAccount, account, -1);
    add(this.#byLane, lane, -1);
  }
}

function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}
