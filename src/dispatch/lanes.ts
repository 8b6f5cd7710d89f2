import { LANE_READY_MAX, LANES_MAX } from "../domain/limits.ts";
import type { DueRow, LaneName } from "../ports/store.ts";
import { Alarms } from "./alarms.ts";
import { FREE_FACTOR, type Slots } from "./slots.ts";

/** The queue of one account for one host, as far as memory knows it. The store has the whole. */
export interface Lane extends LaneName {
  readonly name: string;
  /** Due rows by id, oldest first. */
  readonly ready: DueRow[];
  /** The store may hold due actions that are not in `ready`. */
  hasMore: boolean;
  /** When the earliest sleeping action wakes, in milliseconds. */
  wakesAtMs: number;
  isLoading: boolean;
  /** Something came to the store while it was asked, and may not be in its answer. */
  isStale: boolean;
}

/** A slot that is taken in a lane. */
export interface TakenSlot {
  readonly lane: Lane;
}

/** A due action and the lane whose slot it takes. */
export interface Candidate extends TakenSlot {
  readonly due: DueRow;
}

const NEVER = Number.POSITIVE_INFINITY;

/**
 * Which due action goes next: accounts in turn, in each its hosts in turn, none beyond its slots. A full lane is out of
 * the rotation, so that 100,000 actions behind one slow host cost the others nothing. All of it is a hint: what is
 * forgotten or wrong here is found again by the sweep, or refused by the claim.
 */
export class Lanes {
  readonly #slots: Slots;
  readonly #lanes = new Map<string, Lane>();
  /** How many lanes each account has. */
  readonly #counts = new Map<string, number>();
  /** Lanes that could send now, by account; both rotate. */
  readonly #runnable = new Map<string, Set<Lane>>();
  /** Lanes that could send what only the store knows of. */
  readonly #hungry = new Set<Lane>();
  readonly #alarms = new Alarms();

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  get earliestMs(): number | null {
    return this.#alarms.earliestMs;
  }

  /** Hears of a pending action. */
  add(name: LaneName, due: DueRow, nowMs: number): void {
    const lane = this.#laneOf(name);
    if (lane === null) return;
    const dueAtMs = due.dueAt.getTime();
    if (dueAtMs > nowMs) return this.#sleep(lane, dueAtMs);
    // Behind what only the store knows, a newcomer waits its turn there.
    if (lane.hasMore || lane.ready.length >= LANE_READY_MAX) this.#ask(lane);
    else {
      lane.ready.push(due);
      this.#rotate(lane);
    }
  }

  /** Hears that a lane holds a pending action that is due at this time, or was. */
  hint(name: LaneName, dueAtMs: number, nowMs: number): void {
    const lane = this.#laneOf(name);
    if (lane === null) return;
    if (dueAtMs > nowMs) return this.#sleep(lane, dueAtMs);
    this.#ask(lane);
  }

  /** Wakes what was sleeping: the lanes whose time has come have more than memory knows. */
  wake(nowMs: number): void {
    for (const name of this.#alarms.ring(nowMs)) {
      const lane = this.#lanes.get(name);
      if (lane === undefined || lane.wakesAtMs > nowMs) continue;
      lane.wakesAtMs = NEVER;
      this.#ask(lane);
    }
  }

  /** Takes the next due action with its slot, or null when nothing may go now. */
  next(): Candidate | null {
    for (const [account, lanes] of this.#runnable) {
      if (!this.#slots.accountHasRoom(account)) continue;
      const [lane] = lanes;
      const due = lane?.ready.shift();
      if (lane === undefined || due === undefined) return null;
      this.#slots.take(account, lane.name);
      // To the end of both rotations.
      lanes.delete(lane);
      this.#runnable.delete(account);
      if (lanes.size > 0) this.#runnable.set(account, lanes);
      this.#rotate(lane);
      return { lane, due };
    }
    return null;
  }

  /** Takes out at most so many lanes that have nothing ready although the store has, to be `loaded`. */
  takeHungry(count: number): readonly Lane[] {
    if (this.#hungry.size === 0) return [];
    const lanes = [...this.#hungry.values().take(count)];
    for (const lane of lanes) {
      lane.isLoading = true;
      this.#hungry.delete(lane);
    }
    return lanes;
  }

  /** Takes in what the store had of a lane: its earliest pending actions, `asked` at most. */
  loaded(lane: Lane, found: readonly DueRow[], asked: number, nowMs: number): void {
    const due = found.filter(({ dueAt }) => dueAt.getTime() <= nowMs);
    const sleeping = found[due.length];
    lane.hasMore = due.length === asked || lane.isStale;
    lane.isLoading = false;
    lane.isStale = false;
    lane.ready.push(...due);
    if (sleeping !== undefined) this.#sleep(lane, sleeping.dueAt.getTime());
    this.#rotate(lane);
  }

  /** Takes a slot for an action that the store does not have yet, unless others of its lane are before it. */
  reserve(name: LaneName): TakenSlot | null {
    const lane = this.#laneOf(name);
    if (lane === null) return null;
    const isFirst = lane.ready.length === 0 && !lane.hasMore && !lane.isLoading;
    const isFree = this.#slots.laneHasRoom(lane.name) && this.#slots.accountHasRoom(lane.accountId);
    if (isFirst && isFree) this.#slots.take(lane.accountId, lane.name);
    // Also where nothing was taken: a lane that was made for the question would stay for ever.
    this.#rotate(lane);
    return isFirst && isFree ? { lane } : null;
  }

  /** Gives a slot back. */
  release({ lane }: TakenSlot): void {
    this.#slots.give(lane.accountId, lane.name);
    this.#rotate(lane);
  }

  /** Has the store asked for what is due, once more if it is being asked already. */
  #ask(lane: Lane): void {
    lane.hasMore = true;
    lane.isStale = lane.isLoading;
    this.#rotate(lane);
  }

  #sleep(lane: Lane, atMs: number): void {
    if (atMs >= lane.wakesAtMs) return;
    lane.wakesAtMs = atMs;
    this.#alarms.set(lane.name, atMs);
  }

  #laneOf({ accountId, host }: LaneName): Lane | null {
    const name = `${accountId} ${host}`;
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const count = this.#counts.get(accountId) ?? 0;
    const free = LANES_MAX - this.#lanes.size;
    // As with slots: one account never takes the room of all others, whether its lanes are due or asleep.
    if (free <= 0 || count >= Math.max(1, FREE_FACTOR * free)) return null;
    const lane = {
      accountId,
      host,
      name,
      ready: [],
      hasMore: false,
      wakesAtMs: NEVER,
      isLoading: false,
      isStale: false,
    };
    this.#lanes.set(name, lane);
    this.#counts.set(accountId, count + 1);
    return lane;
  }

  /** Puts a lane where its state belongs, and forgets it when nothing is left of it. */
  #rotate(lane: Lane): void {
    const hasRoom = this.#slots.laneHasRoom(lane.name);
    const lanes = this.#runnable.get(lane.accountId) ?? new Set();
    if (hasRoom && lane.ready.length > 0) this.#runnable.set(lane.accountId, lanes.add(lane));
    else if (lanes.delete(lane) && lanes.size === 0) this.#runnable.delete(lane.accountId);

    if (hasRoom && lane.ready.length === 0 && lane.hasMore && !lane.isLoading) this.#hungry.add(lane);
    else this.#hungry.delete(lane);

    const isQuiet = lane.ready.length === 0 && !lane.hasMore && !lane.isLoading && lane.wakesAtMs === NEVER;
    if (isQuiet && this.#slots.laneIsIdle(lane.name)) this.#forget(lane);
  }

  #forget({ accountId, name }: Lane): void {
    if (!this.#lanes.delete(name)) return;
    const left = (this.#counts.get(accountId) ?? 1) - 1;
    if (left === 0) this.#counts.delete(accountId);
    else this.#counts.set(accountId, left);
  }
}
