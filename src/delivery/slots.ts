import { HOST_RESERVE_SHARE } from "../config/limits.ts";
import type { LaneName } from "../../db/store.ts";
import type { Action } from "../actions/action.ts";
import type { Claimed } from "../actions/settle.ts";

/** How many attempts may be in flight. */
export interface SlotLimits {
  /** In total (`DISPATCH_CONCURRENCY`). */
  readonly total: number;
  /** From one account to one host, whatever the key (`DISPATCH_PER_HOST`): a promise to the target. */
  readonly perHost: number;
}

/**
 * An account may take another slot while it holds fewer than this many times the free slots. One account alone gets
 * three quarters, two get three sevenths each, and some slots are always free for the next account (the dynamic
 * threshold of shared-memory switches: Choudhury and Hahne, 1998).
 */
export const FREE_FACTOR = 3;

/**
 * One key may take all slots of its account. So that another key need not wait until some of those calls end, a key
 * that holds few slots may exceed the account's share, up to this many times the free slots.
 */
const SECOND_KEY_FREE_FACTOR = FREE_FACTOR + 1;

/** How much of a shared resource is free, and how much each holds. */
interface Shares {
  readonly free: number;
  readonly ofAccount: number;
  /** Held by the key. */
  readonly ofKey: number;
}

/** Whether the key may take one more. */
export function mayTake({ free, ofAccount, ofKey }: Shares): boolean {
  // A single free one is enough for whoever holds none, however small the total is.
  if (free <= 0) return false;
  if (ofAccount < Math.max(1, FREE_FACTOR * free)) return true;
  const beyond = SECOND_KEY_FREE_FACTOR * free - ofAccount;
  return free > 1 && SECOND_KEY_FREE_FACTOR * ofKey < beyond;
}

/**
 * Counts what is in flight, so that one slow host, key or account never takes all slots. `Lanes` decides which key gets
 * a free slot: the one that holds the fewest.
 */
export class Slots {
  readonly #limits: SlotLimits;
  /** Slots of a host that are reserved for keys that hold none there. */
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

  /** Attempts in flight of this lane. */
  ofLane(lane: LaneName): number {
    return this.#byLane.get(laneNameOf(lane)) ?? 0;
  }

  /** Attempts in flight of a key, to all hosts. */
  ofKey(accountId: string, keyId: string): number {
    return this.#byKey.get(`${accountId} ${keyId}`) ?? 0;
  }

  /** Whether the lane's key may call the host once more. */
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

/** Names an account's use of a host, whatever the key. */
export function hostNameOf({ accountId, host }: LaneName): string {
  return `${accountId} ${host}`;
}

/** Unambiguous: only the last part may contain spaces. */
export function laneNameOf({ accountId, host, keyId }: LaneName): string {
  return `${accountId} ${keyId} ${host}`;
}

function add(counts: Map<string, number>, name: string, by: number): void {
  const count = (counts.get(name) ?? 0) + by;
  if (count === 0) counts.delete(name);
  else counts.set(name, count);
}

/**
 * Whose place an account frees when all its places are taken and another holder asks for one: the holder with the most,
 * if that is at least two more than the asking one has; null otherwise. So one holder may have all places, and when
 * others come each ends up with an equal share, without two of them taking the same place from each other in turn.
 */
export function whoMakesRoom(held: ReadonlyMap<string, number>, asker: string): string | null {
  const own = held.get(asker) ?? 0;
  let most: { readonly holder: string; readonly count: number } | null = null;
  for (const [holder, count] of held) if (count > (most?.count ?? own + 1)) most = { holder, count };
  return most?.holder ?? null;
}

/** Counts places by holder. */
export function countByHolder(all: Iterable<{ readonly holder: string }>): ReadonlyMap<string, number> {
  const held = new Map<string, number>();
  for (const { holder } of all) held.set(holder, (held.get(holder) ?? 0) + 1);
  return held;
}

/** A slot reserved for an action that is about to be stored: the commit that creates it claims it too. */
export interface Reservation {
  readonly claim: Claimed;
  /** The action was stored and claimed: publishes both changes and sends it. */
  commit(created: Action, claimed: Action): void;
  /** Nothing was claimed: releases the slot. */
  release(): void;
  /** The response of the store was lost: releases the slot, and asks the store later whether the action is claimed. */
  fail(action: Action): void;
}

/** What the action service needs of the delivery loop. */
export interface Dispatcher {
  /**
   * Reserves a slot for this action. Null when other rows of its lane come first, nothing is free, the action is large,
   * or nothing is being claimed now.
   */
  reserve(action: LaneName & { readonly id: string }, largeBytes: number | undefined): Reservation | null;
  /** Call it when a pause of an account began or ended. */
  pauseChanged(accountId: string): void;
}
