import { LANE_READY_MAX, LANES_MAX } from "../config/limits.ts";
import type { DueRow, LaneName } from "../../db/store.ts";
import { Alarms } from "./timers.ts";
import { hostNameOf, laneNameOf, mayTake, type Slots } from "./slots.ts";

/** A queue in memory: what one key of an account sends to one host. The store has all rows, this has the next few. */
export interface Lane extends LaneName {
  readonly name: string;
  /** All lanes of the account for this host, this one included: they share the slots of the host. */
  readonly sameHost: Set<Lane>;
  /** Due rows by id, oldest first. */
  readonly ready: DueRow[];
  /** The store may have due rows that are not in `ready`. */
  hasMore: boolean;
  /** When the earliest row that is not yet due will be due, in milliseconds. */
  wakesAtMs: number;
  isLoading: boolean;
  /** A row was stored while the lane was being loaded, so the result may lack it. */
  isStale: boolean;
}

/** A slot that is taken in a lane. */
export interface TakenSlot {
  readonly lane: Lane;
}

/** A due row and the lane whose slot it takes. */
export interface Candidate extends TakenSlot {
  readonly due: DueRow;
}

const NEVER = Number.POSITIVE_INFINITY;

/**
 * Decides which due row goes next: accounts in turn; in each the key with the fewest in flight; of that key its hosts
 * in turn, none beyond its slots. Where several keys of an account wait for one host, the key with the fewest in flight
 * there goes first. A full lane leaves the rotation, so that 100,000 rows behind one slow host cost the others nothing.
 *
 * All of it is a hint: the sweep finds what is missing here, and the claim refuses what is wrong.
 */
export class Lanes {
  readonly #slots: Slots;
  readonly #isPaused: (lane: LaneName) => boolean;
  readonly #lanes = new Map<string, Lane>();
  /** Number of lanes of each account, and of each key. */
  readonly #counts = new Map<string, number>();
  readonly #keyCounts = new Map<string, number>();
  /** The lanes of each account and host. */
  readonly #hosts = new Map<string, Set<Lane>>();
  /** Lanes that can send now, by account and key. All three levels rotate. */
  readonly #runnable = new Map<string, Map<string, Set<Lane>>>();
  /** Lanes that have a free slot but must load rows from the store first. */
  readonly #needsLoad = new Set<Lane>();
  readonly #alarms = new Alarms();

  /** `isPaused`: nothing of the lane may be sent now. Call `pauseChanged` whenever that changes. */
  constructor(slots: Slots, isPaused: (lane: LaneName) => boolean = never) {
    this.#slots = slots;
    this.#isPaused = isPaused;
  }

  get earliestMs(): number | null {
    return this.#alarms.earliestMs;
  }

  /** Adds a pending row. */
  add(name: LaneName, due: DueRow, nowMs: number): void {
    const lane = this.#laneOf(name);
    if (lane === null) return;
    const dueAtMs = due.dueAt.getTime();
    if (dueAtMs > nowMs) return this.#wakeAt(lane, dueAtMs);
    // Older rows are in the store only: a new one must not overtake them.
    if (lane.hasMore || lane.ready.length >= LANE_READY_MAX) this.#requestLoad(lane);
    else {
      lane.ready.push(due);
      // Only the first row changes whether the lane can run.
      if (lane.ready.length === 1) this.#update(lane);
    }
  }

  /** Notes that the store has a pending row of this lane that is due at this time. */
  hint(name: LaneName, dueAtMs: number, nowMs: number): void {
    const lane = this.#laneOf(name);
    if (lane === null) return;
    if (dueAtMs > nowMs) return this.#wakeAt(lane, dueAtMs);
    this.#requestLoad(lane);
  }

  /** Marks the lanes that have rows due by now for loading. */
  wake(nowMs: number): void {
    for (const name of this.#alarms.run(nowMs)) {
      const lane = this.#lanes.get(name);
      if (lane === undefined || lane.wakesAtMs > nowMs) continue;
      lane.wakesAtMs = NEVER;
      this.#requestLoad(lane);
    }
  }

  /** Takes the next due row and its slot; null when nothing may be sent now. */
  next(): Candidate | null {
    for (const [account, keys] of this.#runnable) {
      const key = this.#leastBusy(account, keys);
      if (!this.#slots.accountHasRoom(account, key)) continue;
      const lanes = keys.get(key);
      const [lane] = lanes ?? [];
      const due = lane?.ready.shift();
      if (lanes === undefined || lane === undefined || due === undefined) return null;
      this.#slots.take(lane);
      // Move the lane, its key and its account to the end of their rotations.
      lanes.delete(lane);
      keys.delete(key);
      if (lanes.size > 0) keys.set(key, lanes);
      this.#runnable.delete(account);
      if (keys.size > 0) this.#runnable.set(account, keys);
      this.#update(lane);
      return { lane, due };
    }
    return null;
  }

  /** The key with the fewest in flight; of equals the one that has waited longest. */
  #leastBusy(account: string, keys: ReadonlyMap<string, unknown>): string {
    let least = { key: "", held: Number.POSITIVE_INFINITY };
    for (const key of keys.keys()) {
      const held = this.#slots.ofKey(account, key);
      if (held < least.held) least = { key, held };
      if (held === 0) break;
    }
    return least.key;
  }

  /** Removes and returns at most `count` lanes that must be loaded. Call `loaded` for each. */
  takeNeedingLoad(count: number): readonly Lane[] {
    if (this.#needsLoad.size === 0) return [];
    const lanes = [...this.#needsLoad.values().take(count)];
    for (const lane of lanes) {
      lane.isLoading = true;
      this.#needsLoad.delete(lane);
    }
    return lanes;
  }

  /** Adds the rows the store returned for a lane: its earliest pending ones, at most `limit`. */
  loaded(lane: Lane, found: readonly DueRow[], limit: number, nowMs: number): void {
    const due = found.filter(({ dueAt }) => dueAt.getTime() <= nowMs);
    const firstLater = found[due.length];
    lane.hasMore = due.length === limit || lane.isStale;
    lane.isLoading = false;
    lane.isStale = false;
    lane.ready.push(...due);
    if (firstLater !== undefined) this.#wakeAt(lane, firstLater.dueAt.getTime());
    this.#update(lane);
  }

  /**
   * Takes a slot for an action that is not stored yet; null when other rows of its lane come first or nothing is free.
   */
  reserve(name: LaneName): TakenSlot | null {
    const lane = this.#laneOf(name);
    if (lane === null) return null;
    const isFirst = !this.#isPaused(lane) && lane.ready.length === 0 && !lane.hasMore && !lane.isLoading;
    // If other keys wait for this host, the rotation decides whose turn it is.
    const isFree =
      this.#slots.hostHasRoom(lane) &&
      this.#slots.accountHasRoom(lane.accountId, lane.keyId) &&
      this.#leastHeldReady(lane.sameHost) >= this.#slots.ofLane(lane);
    if (isFirst && isFree) this.#slots.take(lane);
    // Also when nothing was taken: an empty lane must be removed again.
    this.#update(lane);
    return isFirst && isFree ? { lane } : null;
  }

  /** Re-evaluates the lanes of an account after a pause began or ended. */
  pauseChanged(accountId: string): void {
    for (const lane of this.#lanes.values()) if (lane.accountId === accountId) this.#update(lane);
  }

  /** Releases a slot. */
  release({ lane }: TakenSlot): void {
    this.#slots.give(lane);
    this.#update(lane);
  }

  /** Marks a lane for loading; if it is being loaded already, for loading once more. */
  #requestLoad(lane: Lane): void {
    lane.hasMore = true;
    lane.isStale = lane.isLoading;
    this.#place(lane, this.#leastHeldReady(lane.sameHost));
  }

  #wakeAt(lane: Lane, atMs: number): void {
    if (atMs >= lane.wakesAtMs) return;
    lane.wakesAtMs = atMs;
    this.#alarms.set(lane.name, atMs);
  }

  #laneOf(laneName: LaneName): Lane | null {
    const { accountId, host, keyId } = laneName;
    const name = laneNameOf(laneName);
    const known = this.#lanes.get(name);
    if (known !== undefined) return known;
    const keyName = `${accountId} ${keyId}`;
    const ofAccount = this.#counts.get(accountId) ?? 0;
    const ofKey = this.#keyCounts.get(keyName) ?? 0;
    // As with slots: no account or key may take the room of all others, whether its rows are due or not.
    if (!mayTake({ free: LANES_MAX - this.#lanes.size, ofAccount, ofKey })) return null;
    const hostName = hostNameOf(laneName);
    const sameHost = this.#hosts.get(hostName) ?? new Set();
    const lane: Lane = {
      accountId,
      host,
      keyId,
      name,
      sameHost,
      ready: [],
      hasMore: false,
      wakesAtMs: NEVER,
      isLoading: false,
      isStale: false,
    };
    this.#lanes.set(name, lane);
    this.#hosts.set(hostName, sameHost.add(lane));
    this.#counts.set(accountId, ofAccount + 1);
    this.#keyCounts.set(keyName, ofKey + 1);
    return lane;
  }

  /** Re-evaluates all lanes of the host, since their order depends on what each has in flight. */
  #update({ sameHost }: Lane): void {
    const least = this.#leastHeldReady(sameHost);
    for (const lane of sameHost) this.#place(lane, least);
  }

  /** The smallest number in flight of any lane that has a row ready. */
  #leastHeldReady(lanes: ReadonlySet<Lane>): number {
    let least = Number.POSITIVE_INFINITY;
    // Paused lanes don't count.
    for (const lane of lanes)
      if (lane.ready.length > 0 && !this.#isPaused(lane)) least = Math.min(least, this.#slots.ofLane(lane));
    return least;
  }

  /** Puts a lane into the sets that its state belongs to, and removes it when it is empty. */
  #place(lane: Lane, leastHeld: number): void {
    const held = this.#slots.ofLane(lane);
    const hasRoom = !this.#isPaused(lane) && this.#slots.hostHasRoom(lane);
    if (hasRoom && lane.ready.length > 0 && held <= leastHeld) this.#addRunnable(lane);
    else this.#deleteRunnable(lane);

    if (hasRoom && lane.ready.length === 0 && lane.hasMore && !lane.isLoading) this.#needsLoad.add(lane);
    else this.#needsLoad.delete(lane);

    const isQuiet = lane.ready.length === 0 && !lane.hasMore && !lane.isLoading && lane.wakesAtMs === NEVER;
    if (isQuiet && held === 0) this.#forget(lane);
  }

  #addRunnable(lane: Lane): void {
    const keys = this.#runnable.get(lane.accountId) ?? new Map<string, Set<Lane>>();
    this.#runnable.set(lane.accountId, keys);
    keys.set(lane.keyId, (keys.get(lane.keyId) ?? new Set()).add(lane));
  }

  #deleteRunnable(lane: Lane): void {
    const keys = this.#runnable.get(lane.accountId);
    const lanes = keys?.get(lane.keyId);
    if (lanes?.delete(lane) !== true || lanes.size > 0) return;
    keys?.delete(lane.keyId);
    if (keys?.size === 0) this.#runnable.delete(lane.accountId);
  }

  #forget(lane: Lane): void {
    const { accountId, name, sameHost } = lane;
    if (!this.#lanes.delete(name)) return;
    sameHost.delete(lane);
    if (sameHost.size === 0) this.#hosts.delete(hostNameOf(lane));
    countDown(this.#counts, accountId);
    countDown(this.#keyCounts, `${accountId} ${lane.keyId}`);
  }
}

function never(): boolean {
  return false;
}

function countDown(counts: Map<string, number>, name: string): void {
  const left = (counts.get(name) ?? 1) - 1;
  if (left === 0) counts.delete(name);
  else counts.set(name, left);
}
