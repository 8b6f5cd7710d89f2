import { LANE_READY_MAX, LANES_MAX } from "../config/limits.ts";
import type { DueRow, LaneName } from "../../db/store.ts";
import { Alarms } from "./timers.ts";
import { hostNameOf, laneNameOf, mayTake, type Slots } from "./slots.ts";

/** The queue of one key of an account for one host, as far as memory knows it. The store has the whole. */
export interface Lane extends LaneName {
  readonly name: string;
  /** The lanes of the account for this host, itself among them: they share the slots of the host. */
  readonly sameHost: Set<Lane>;
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
 * Which due action goes next: accounts in turn, in each the key that has the fewest in flight, of that its hosts in turn,
 * none beyond its slots. Where keys of an account wait for the same host, the one that has the fewest in flight there goes
 * first. A full lane is out of the rotation, so that 100,000 actions behind one slow host cost the others nothing. All of it is a hint: what is
 * forgotten or wrong here is found again by the sweep, or refused by the claim.
 */
export class Lanes {
  readonly #slots: Slots;
  readonly #isPaused: (lane: LaneName) => boolean;
  readonly #lanes = new Map<string, Lane>();
  /** How many lanes each account has, and each key of it. */
  readonly #counts = new Map<string, number>();
  readonly #keyCounts = new Map<string, number>();
  /** The lanes of each account and host. */
  readonly #hosts = new Map<string, Set<Lane>>();
  /** Lanes that could send now, by account and key; all three rotate. */
  readonly #runnable = new Map<string, Map<string, Set<Lane>>>();
  /** Lanes that could send what only the store knows of. */
  readonly #needsLoad = new Set<Lane>();
  readonly #alarms = new Alarms();

  /** `isPaused`: nothing of the lane may be sent now. Whenever that changes `pauseChanged` has to be called. */
  constructor(slots: Slots, isPaused: (lane: LaneName) => boolean = never) {
    this.#slots = slots;
    this.#isPaused = isPaused;
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
      // Nothing else than its first one changes who may go.
      if (lane.ready.length === 1) this.#update(lane);
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
    for (const name of this.#alarms.run(nowMs)) {
      const lane = this.#lanes.get(name);
      if (lane === undefined || lane.wakesAtMs > nowMs) continue;
      lane.wakesAtMs = NEVER;
      this.#ask(lane);
    }
  }

  /** Takes the next due action with its slot, or null when nothing may go now. */
  next(): Candidate | null {
    for (const [account, keys] of this.#runnable) {
      const key = this.#leastBusy(account, keys);
      if (!this.#slots.accountHasRoom(account, key)) continue;
      const lanes = keys.get(key);
      const [lane] = lanes ?? [];
      const due = lane?.ready.shift();
      if (lanes === undefined || lane === undefined || due === undefined) return null;
      this.#slots.take(lane);
      // To the end of all rotations.
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

  /** The key with the fewest in flight; of equals the one that has waited for its turn longest. */
  #leastBusy(account: string, keys: ReadonlyMap<string, unknown>): string {
    let least = { key: "", held: Number.POSITIVE_INFINITY };
    for (const key of keys.keys()) {
      const held = this.#slots.ofKey(account, key);
      if (held < least.held) least = { key, held };
      if (held === 0) break;
    }
    return least.key;
  }

  /** Takes out at most so many lanes that have nothing ready although the store has, to be `loaded`. */
  takeNeedingLoad(count: number): readonly Lane[] {
    if (this.#needsLoad.size === 0) return [];
    const lanes = [...this.#needsLoad.values().take(count)];
    for (const lane of lanes) {
      lane.isLoading = true;
      this.#needsLoad.delete(lane);
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
    this.#update(lane);
  }

  /** Takes a slot for an action that the store does not have yet, unless others of its lane are before it. */
  reserve(name: LaneName): TakenSlot | null {
    const lane = this.#laneOf(name);
    if (lane === null) return null;
    const isFirst = !this.#isPaused(lane) && lane.ready.length === 0 && !lane.hasMore && !lane.isLoading;
    // Where other keys wait for this host, whose turn it is shows in the rotation.
    const isFree =
      this.#slots.hostHasRoom(lane) &&
      this.#slots.accountHasRoom(lane.accountId, lane.keyId) &&
      this.#leastHeldReady(lane.sameHost) >= this.#slots.ofLane(lane);
    if (isFirst && isFree) this.#slots.take(lane);
    // Also where nothing was taken: a lane that was made for the question would stay for ever.
    this.#update(lane);
    return isFirst && isFree ? { lane } : null;
  }

  /** What is paused of an account has changed. */
  pauseChanged(accountId: string): void {
    for (const lane of this.#lanes.values()) if (lane.accountId === accountId) this.#update(lane);
  }

  /** Gives a slot back. */
  release({ lane }: TakenSlot): void {
    this.#slots.give(lane);
    this.#update(lane);
  }

  /** Has the store asked for what is due, once more if it is being asked already. */
  #ask(lane: Lane): void {
    lane.hasMore = true;
    lane.isStale = lane.isLoading;
    this.#place(lane, this.#leastHeldReady(lane.sameHost));
  }

  #sleep(lane: Lane, atMs: number): void {
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
    // As with slots: nobody takes the room of all others, whether the lanes are due or asleep.
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

  /** The lane, or what its host has in flight, has changed: so has who may go among all that wait for this host. */
  #update({ sameHost }: Lane): void {
    const least = this.#leastHeldReady(sameHost);
    for (const lane of sameHost) this.#place(lane, least);
  }

  /** The fewest in flight of any lane that has something ready. */
  #leastHeldReady(lanes: ReadonlySet<Lane>): number {
    let least = Number.POSITIVE_INFINITY;
    // One that is paused waits for nothing here.
    for (const lane of lanes)
      if (lane.ready.length > 0 && !this.#isPaused(lane)) least = Math.min(least, this.#slots.ofLane(lane));
    return least;
  }

  /** Puts a lane where its state belongs, and forgets it when nothing is left of it. */
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
