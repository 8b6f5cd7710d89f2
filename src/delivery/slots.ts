import { HOST_RESERVE_SHARE } from "../config/limits.ts";
import type { LaneName } from "../../db/store.ts";
import type { Action } from "../actions/action.ts";
import type { Claimed } from "../actions/settle.ts";

/** How many attempts may be in flight. */
export interface SlotLimits {
  /** In all (`DISPATCH_CONCURRENCY`). */
  readonly total: number;
  /** From one account to one host, by whichever of its keys (`DISPATCH_PER_HOST`): a promise to the target. */
  readonly perHost: number;
}

/**
 * An account may take another slot while it holds fewer than this many times the slots that are free. Alone it gets three
 * quarters, two get three sevenths each, and some are always free for whoever comes next (the dynamic threshold that
 * switches share their memory by: Choudhury and Hahne, 1998).
 */
export const FREE_FACTOR = 3;

/**
 * One key alone may take all slots of its account. So that another key of the account need not wait until some of those
 * calls end, a key that holds few may go beyond the account's share, up to this many times the slots that are free.
 */
const SECOND_KEY_FREE_FACTOR = FREE_FACTOR + 1;

/** What there is of something, and who has how much of it. */
export interface Shares {
  readonly free: number;
  readonly ofAccount: number;
  /** Of a key of the account. */
  readonly ofKey: number;
}

/** Whether a key may take another one of what is free. */
export function mayTake({ free, ofAccount, ofKey }: Shares): boolean {
  // One that is free is enough for whoever has none, however small the whole is.
  if (free <= 0) return false;
  if (ofAccount < Math.max(1, FREE_FACTOR * free)) return true;
  const beyond = SECOND_KEY_FREE_FACTOR * free - ofAccount;
  return free > 1 && SECOND_KEY_FREE_FACTOR * ofKey < beyond;
}

/**
 * Counts what is in flight, so that one slow host, key or account never takes the place of all others. Which of the keys
 * of an account gets a slot that is free is decided in `Lanes`: the one that holds the fewest.
 */
export class Slots {
  readonly #limits: SlotLimits;
  /** The last slots of a host, for keys that hold none there. */
  readonly #hostReserve: number;
  readonly #byAccount = new Map<string, number>();
  readonly #byKey = new Map<string, number>();
  readonly #byHost = new Map<string, number>();
  readonly #byLane = new Map<string, number>();
  #taken = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
    this.#hostReserve = Math.floor(limits.perHost * HOST_RESERVE_SHARE);
  }

  get taken(): number {
    return this.#taken;
  }

  get free(): number {
    return this.#limits.total - this.#taken;
  }

  /** In flight of what this lane's key sends to its host. */
  ofLane(lane: LaneName): number {
    return this.#byLane.get(laneNameOf(lane)) ?? 0;
  }

  /** In flight of what a key sends anywhere. */
  ofKey(accountId: string, keyId: string): number {
    return this.#byKey.get(`${accountId} ${keyId}`) ?? 0;
  }

  /** Whether the host may be called once more for this key. */
  hostHasRoom(lane: LaneName): boolean {
    const held = this.#byHost.get(hostNameOf(lane)) ?? 0;
    return held < this.#limits.perHost - (this.ofLane(lane) === 0 ? 0 : this.#hostReserve);
  }

  accountHasRoom(accountId: string, keyId: string): boolean {
    const ofAccount = this.#byAccount.get(accountId) ?? 0;
    return mayTake({ free: this.free, ofAccount, ofKey: this.ofKey(accountId, keyId) });
  }

  take(lane: LaneName): void {
    this.#count(lane, 1);
  }

  give(lane: LaneName): void {
    this.#count(lane, -1);
  }

  #count(lane: LaneName, by: number): void {
    this.#taken += by;
    add(this.#byAccount, lane.accountId, by);
    add(this.#byKey, `${lane.accountId} ${lane.keyId}`, by);
    add(this.#byHost, hostNameOf(lane), by);
    add(this.#byLane, laneNameOf(lane), by);
  }
}

/** The host of an account, whichever of its keys calls it. */
export function hostNameOf({ accountId, host }: LaneName): string {
  return `${accountId} ${host}`;
}

/** Ids have no space in them, and what comes last may have. */
export function laneNameOf({ accountId, host, keyId }: LaneName): string {
  return `${accountId} ${keyId} ${host}`;
}

function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}

/**
 * Who gives up one of an account's places when all of them are taken and another key asks for one: whoever holds the most,
 * if that is at least two more than the one who asks holds. Null: nobody has to. So one alone may hold all of them, and
 * when others come each of them ends up with an equal share, without two taking the same place from each other in turn.
 */
export function whoMakesRoom(held: ReadonlyMap<string, number>, asking: string): string | null {
  const own = held.get(asking) ?? 0;
  let most: { readonly holder: string; readonly count: number } | null = null;
  for (const [holder, count] of held) if (count > (most?.count ?? own + 1)) most = { holder, count };
  return most?.holder ?? null;
}

/** How many of these each holder has. */
export function countByHolder(all: Iterable<{ readonly holder: string }>): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const { holder } of all) held.set(holder, (held.get(holder) ?? 0) + 1);
  return held;
}

/** A slot held for an action that is about to be stored: it is claimed in the commit that creates it. */
export interface Reservation {
  readonly claim: Claimed;
  /** The action was stored and claimed: tells the bus of both and sends it. */
  commit(created: Action, claimed: Action): void;
  /** Nothing was claimed; the slot is free again. */
  release(): void;
  /** The store did not say whether the action is there and claimed; the slot is free again. */
  fail(action: Action): void;
}

/** What a create may ask of the engine. */
export interface Dispatcher {
  /**
   * A slot in the lane of this action, or null when others are before it, it is full, the action is large, or nothing is being
   * claimed now.
   */
  reserve(action: LaneName & { readonly id: string }, largeBytes: number | undefined): Reservation | null;
  /** Hears that what is paused of an account has changed. */
  pauseChanged(accountId: string): void;
}
