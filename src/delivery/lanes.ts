import { CLAIM_AHEAD_MS, CREATE_WAIT_MS, CREATE_WAIT_MS_MAX, LANES_MAX, LARGE_ROW_BYTES } from "../core/limits.ts";
import { type HostLimits, NO_LIMITS } from "../core/host-settings.ts";
import type { LaneHead, LaneName, NextRow } from "../core/store.ts";
import { type NodeShare, WHOLE_SHARE } from "../runtime/membership.ts";
import { Alarms, NEVER } from "./alarms.ts";
import { Group, HostGroup, accountHostName, accountKeyName, Lane, laneName } from "./lane.ts";
import { forgetIdle, TokenBucket } from "./token-bucket.ts";

/** Share of a host's slots, rounded down, reserved for the account's keys without a slot there: two of 64. */
const HOST_RESERVE_SHARE = 1 / 32;

/** How much may be in flight at a time. */
export interface SlotLimits {
  /** Attempts of this process in total (`DISPATCH_CONCURRENCY`). */
  readonly total: number;
  /**
   * Attempts from one account to one host, whatever the key (`DISPATCH_PER_HOST`): a promise to the target. All nodes of
   * a database share them.
   */
  readonly perHost: number;
  readonly largeBytes: number;
}

/** What restricts lanes besides the slots of this process. */
export interface LaneRules {
  /** Whether nothing of the lane may be sent now. Call `pauseChanged` when that changes. */
  readonly isPaused: (lane: LaneName) => boolean;
  /** What the account sets for the host. Call `limitsChanged` when that changes. */
  readonly findLimits: (lane: LaneName) => HostLimits;
  readonly share: Pick<NodeShare, "isSettled" | "slotsFor" | "rateFor">;
  /** How long a call of the lane would wait to leave, if its host has a rate. */
  readonly beginWaitMs: (lane: LaneName) => number;
  /** The monotonic clock, for rates. */
  readonly monotonicMs: () => number;
}

const NO_RULES: LaneRules = {
  isPaused: () => false,
  findLimits: () => NO_LIMITS,
  share: WHOLE_SHARE,
  beginWaitMs: () => 0,
  monotonicMs: () => 0,
};

/** Slots that are taken in a lane for a claim. */
export interface LaneClaim {
  readonly lane: Lane;
  /** The number of slots. */
  limit: number;
  /** `addedCount` and `refreshCount` when the claim began: it may not see rows that were stored or became due later. */
  readonly addedBefore: number;
  readonly refreshesBefore: number;
  /** More rows may be due than slots were taken for. */
  readonly mayHaveMore: boolean;
  /** `lateCount` when the claim began. */
  readonly lateBefore: number;
}

interface ClaimTimes {
  /** The time of the claim, by which its rows were due. */
  readonly claimMs: number;
  readonly nowMs: number;
}

/** How long a row may be due before another node, whose clock may differ, has stored it. The sweep finds later ones. */
const COMMIT_MS = 2_000;

/**
 * Decides how many rows each lane may claim. Accounts take turns; within an account, the key with the fewest calls in flight
 * goes first; the hosts of that key take turns, none beyond its slots. If several keys of an account wait for one host, the
 * key with the fewest calls in flight there goes first. A full lane leaves the rotation, so that 100,000 rows behind one slow
 * host cost the others nothing.
 *
 * All of this is a hint: the sweep finds what is missing here, and a claim finds nothing if this is wrong.
 */
export class Lanes {
  readonly #limits: SlotLimits;
  readonly #rules: LaneRules;
  readonly #lanes = new Map<string, Lane>();
  readonly #accounts = new Map<string, Group>();
  readonly #keys = new Map<string, Group>();
  readonly #hosts = new Map<string, HostGroup>();
  /** Lanes that have a due row and a free slot, by the size of that row. */
  readonly #small = new LaneRotation();
  readonly #large = new LaneRotation();
  readonly #alarms = new Alarms<Lane>();
  /** Also kept for hosts that have no lanes now: a new bucket would be full. */
  readonly #buckets = new Map<string, TokenBucket>();
  /** When hosts that wait for a token get one, by the monotonic clock. */
  readonly #tokenAlarms = new Alarms<HostGroup>();
  #taken = 0;
  #largeBytes = 0;

  constructor(limits: SlotLimits, rules: Partial<LaneRules> = {}) {
    this.#limits = limits;
    this.#rules = { ...NO_RULES, ...rules };
  }

  get hasFreeSlot(): boolean {
    return this.#taken < this.#limits.total;
  }

  /** The hosts with a limit of their account that have more attempts than this process has a share in, since they were divided anew. */
  get overHosts(): readonly string[] {
    const over = [...this.#hosts.values()].filter(({ isLimited, inFlight, share }) => isLimited && inFlight > share);
    return over.map(({ name }) => name);
  }

  /** When the next row becomes due, in milliseconds; null: none is known. */
  get earliestMs(): number | null {
    return this.#alarms.earliestMs;
  }

  /** When the next host with a rate gets a token, by the monotonic clock; null: none waits for one. */
  get nextTokenMs(): number | null {
    return this.#tokenAlarms.earliestMs;
  }

  /** Notes a row that was just stored. */
  add(name: LaneName, dueAt: Date, isLarge: boolean, nowMs: number): void {
    const lane = this.#findLane(name);
    if (lane === null) return;
    this.#noteDue(lane, dueAt, nowMs);
    if (dueAt.getTime() > nowMs) return this.#alarms.set(lane, dueAt.getTime());
    if (lane.waiting === 0) lane.isLargeNext = isLarge;
    lane.waiting += 1;
    lane.addedCount += 1;
    // Only the first row changes whether the lane can run.
    if (lane.waiting === 1) this.#update(lane.sameHost);
  }

  /** Notes the earliest rows of lanes as the store has them. */
  found(heads: readonly LaneHead[], nowMs: number): void {
    const due: Lane[] = [];
    for (const head of heads) {
      const lane = this.#findLane(head);
      if (lane === null) continue;
      this.#noteDue(lane, head.dueAt, nowMs);
      if (head.dueAt.getTime() > nowMs) this.#alarms.set(lane, head.dueAt.getTime());
      // If rows are known to wait already, their claim tells whether there are more.
      else if (lane.waiting === 0) due.push(lane);
    }
    this.#open(due);
  }

  /** Opens the lanes whose next row has become due. */
  wake(nowMs: number): void {
    this.#open([...this.#alarms.run(nowMs)]);
  }

  /** Opens the hosts whose rate allows another call now. */
  wakeHosts(): void {
    if (this.#tokenAlarms.earliestMs === null) return;
    for (const host of this.#tokenAlarms.run(this.#rules.monotonicMs())) this.#update(host);
  }

  #noteDue(lane: Lane, dueAt: Date, nowMs: number): void {
    lane.dueFromMs = Math.min(lane.dueFromMs, dueAt.getTime());
    if (dueAt.getTime() < nowMs - COMMIT_MS) lane.lateCount += 1;
  }

  /** Re-evaluates each host once, since all its lanes are read for that, and thousands may become due at the same time. */
  #open(lanes: readonly Lane[]): void {
    for (const lane of lanes) {
      lane.waiting = Number.POSITIVE_INFINITY;
      lane.refreshCount += 1;
    }
    for (const host of new Set(lanes.map(({ sameHost }) => sameHost))) this.#update(host);
  }

  /** Takes at most `slotsMax` slots for small rows. `answered` or `failed` gives back unused ones, `release` the others. */
  take(slotsMax: number): readonly LaneClaim[] {
    return this.#takeFrom(this.#small, slotsMax, () => true);
  }

  /**
   * The same for lanes whose next row is large. Bytes are shared like slots: an account may claim more while it holds less
   * than `FREE_FACTOR` times the free bytes, and a lane while it holds less than the free bytes, so that one slow host with
   * large bodies never takes the room of all others. If no bytes are held, one row fits however large it is.
   */
  takeLarge(slotsMax: number): readonly LaneClaim[] {
    const free = this.#limits.largeBytes - this.#largeBytes;
    if (this.#largeBytes === 0) return this.#takeFrom(this.#large, slotsMax, () => true);
    if (free < LARGE_ROW_BYTES) return [];
    return this.#takeFrom(
      this.#large,
      slotsMax,
      ({ account, largeBytes }) => account.largeBytes < FREE_FACTOR * free && largeBytes < free,
    );
  }

  #takeFrom(rotation: LaneRotation, slotsMax: number, fits: (lane: Lane) => boolean): readonly LaneClaim[] {
    const claims = new Map<Lane, LaneClaim>();
    for (let taken = 0; taken < slotsMax; taken += 1) {
      const lane = rotation.next(this.#hasSlot, fits);
      if (lane === null) break;
      const claim = claims.get(lane) ?? {
        lane,
        limit: 0,
        addedBefore: lane.addedCount,
        refreshesBefore: lane.refreshCount,
        mayHaveMore: lane.waiting === Number.POSITIVE_INFINITY,
        lateBefore: lane.lateCount,
      };
      claims.set(lane, claim);
      claim.limit += 1;
      lane.waiting -= 1;
      this.#take(lane);
      // Move it behind the other lanes of its host, so that they take turns if the host gets one call at a time.
      lane.sameHost.lanes.delete(lane);
      lane.sameHost.lanes.add(lane);
      this.#update(lane.sameHost);
    }
    return [...claims.values()];
  }

  /** Notes that a claim got `got` rows of the lane, whose slots stay taken, and found `next` behind them. */
  answered(claim: LaneClaim, got: number, next: NextRow | undefined, { claimMs, nowMs }: ClaimTimes): void {
    const { lane, limit } = claim;
    // A late row that was stored meanwhile may be due earlier than the one that the claim found next.
    if (lane.lateCount === claim.lateBefore)
      lane.dueFromMs = (next === undefined ? claimMs : Math.min(claimMs, next.dueAt.getTime())) - COMMIT_MS;
    if (next !== undefined && next.dueAt.getTime() <= claimMs) {
      // Otherwise `next` is one of the rows that are counted already, or that another claim takes.
      const isUncounted = lane.waiting === 0 && lane.addedCount === claim.addedBefore;
      if (claim.mayHaveMore || got < limit || isUncounted) lane.waiting = Number.POSITIVE_INFINITY;
      lane.isLargeNext = next.isLarge;
    } else {
      // Nothing is left of what was due when the claim began.
      if (lane.refreshCount === claim.refreshesBefore)
        lane.waiting = Math.min(lane.waiting, lane.addedCount - claim.addedBefore);
      // If a row was stored meanwhile, the claim for that row tells what else is due.
      const isLater = next !== undefined && (next.dueAt.getTime() > nowMs || lane.waiting === 0);
      if (isLater) this.#alarms.set(lane, next.dueAt.getTime());
    }
    this.#notBegun(lane, limit - got);
    this.#update(lane.sameHost);
  }

  /** Notes that a claim failed. Its rows are claimed again at `againAtMs`; null: the sweep finds them. */
  failed({ lane, limit }: LaneClaim, againAtMs: number | null): void {
    [lane.dueFromMs, lane.lateCount] = [Number.MIN_SAFE_INTEGER, lane.lateCount + 1];
    if (lane.waiting === Number.POSITIVE_INFINITY) lane.waiting = 0;
    if (againAtMs !== null) this.#alarms.set(lane, againAtMs);
    this.#notBegun(lane, limit);
    this.#update(lane.sameHost);
  }

  /** Takes a slot for a row that is not stored yet. Null: other rows of its lane come first, or no slot is free. */
  reserve(name: LaneName): Lane | null {
    const lane = this.#findLane(name);
    if (lane === null) return null;
    // If other keys wait for this host, the rotation decides whose turn it is.
    const isReserved = this.#mayReserve(lane) && this.#leastWaiting(lane.sameHost, lane) >= lane.inFlight;
    if (isReserved) {
      this.#take(lane);
      lane.sameHost.createdMs = this.#rules.monotonicMs();
    }
    // Even if nothing was taken: an empty lane must be removed again.
    this.#update(lane.sameHost);
    return isReserved ? lane : null;
  }

  /** Gives back the slot of a row that was not stored. */
  unreserve(lane: Lane): void {
    this.#notBegun(lane, 1);
    this.#update(lane.sameHost);
  }

  /**
   * How long a row that is not stored yet should wait for a slot; 0: not at all. It waits if a create of the same host has
   * just got a slot or begun its call, and the account sets no limit for the host. If commits are slow it waits longer, since
   * rows that are being stored hold their slots for longer.
   */
  waitMs(name: LaneName): number {
    const host = this.#hosts.get(accountHostName(name));
    if (host === undefined || host.isLimited || this.#rules.isPaused(name)) return 0;
    const { createdMs, storingMs } = host;
    const waitMs = Math.min(CREATE_WAIT_MS + storingMs, CREATE_WAIT_MS_MAX);
    return this.#rules.monotonicMs() - createdMs < waitMs ? waitMs : 0;
  }

  /** Notes that a call begins whose slot was reserved at `reservedMs`, by the monotonic clock. */
  began({ sameHost }: Lane, reservedMs: number): void {
    sameHost.createdMs = this.#rules.monotonicMs();
    sameHost.storingMs = sameHost.createdMs - reservedMs;
  }

  /** Gives back the slot of one row. */
  release(lane: Lane): void {
    this.#count(lane, -1);
    this.#update(lane.sameHost);
  }

  /** Adds the bytes of a large row when it is claimed; call it with negative bytes when its result is recorded. */
  holdLarge(lane: Lane, bytes: number): void {
    for (const held of [lane, lane.account]) held.largeBytes += bytes;
    this.#largeBytes += bytes;
    this.#update(lane.sameHost);
  }

  /** Re-evaluates the lanes of an account after a pause began or ended. */
  pauseChanged(accountId: string): void {
    for (const host of this.#accountHosts(accountId)) this.#update(host);
  }

  /**
   * Divides the slots of each host again after a node joined or left. Attempts beyond a smaller share end as usual. Lanes of
   * hosts that only other nodes call now are forgotten; lanes of hosts that are new to this node are found by the sweep.
   */
  sharesChanged(): void {
    for (const host of this.#hosts.values()) this.#divide(host);
  }

  /** Divides the slots of an account's hosts again after it has changed their limits. */
  limitsChanged(accountId: string): void {
    for (const host of this.#accountHosts(accountId)) this.#divide(host);
  }

  #accountHosts(accountId: string): ReadonlySet<HostGroup> {
    return new Set([...(this.#accounts.get(accountId)?.lanes ?? [])].map(({ sameHost }) => sameHost));
  }

  readonly #isBucketIdle = (bucket: TokenBucket, name: string): boolean =>
    !this.#hosts.has(name) && bucket.isFull(this.#rules.monotonicMs());

  #divide(host: HostGroup): void {
    const [lane] = host.lanes;
    if (lane === undefined) return;
    this.#setLimits(host, lane);
    this.#update(host);
  }

  /** Sets the slots and the rate that this process has for a host. */
  #setLimits(host: HostGroup, lane: LaneName): HostGroup {
    const { maxPerSecond, maxConcurrent } = this.#rules.findLimits(lane);
    const slots = Math.min(this.#limits.perHost, maxConcurrent ?? this.#limits.perHost);
    const { share } = this.#rules;
    host.share = share.slotsFor(host.name, slots, maxPerSecond);
    host.slots = maxConcurrent === null || share.isSettled(host.name) ? host.share : 0;
    host.reserve = Math.floor(host.slots * HOST_RESERVE_SHARE);
    host.bucket =
      maxPerSecond === null || host.slots === 0
        ? null
        : this.#findBucket(host.name, share.rateFor(host.name, maxPerSecond, slots));
    if (host.bucket === null) this.#buckets.delete(host.name);
    host.isLimited = maxPerSecond !== null || maxConcurrent !== null;
    return host;
  }

  #findBucket(name: string, perSecond: number): TokenBucket {
    const nowMs = this.#rules.monotonicMs();
    const known = this.#buckets.get(name);
    const bucket = known ?? new TokenBucket(perSecond, nowMs);
    known?.setRate(perSecond, nowMs);
    if (known === undefined) forgetIdle(this.#buckets, this.#isBucketIdle);
    this.#buckets.set(name, bucket);
    return bucket;
  }

  /** Takes the slot and the token of a call. */
  #take(lane: Lane): void {
    const { sameHost } = lane;
    this.#count(lane, 1);
    sameHost.bucket?.take();
  }

  /** Gives back the slots and tokens of calls that do not begin. */
  #notBegun(lane: Lane, calls: number): void {
    const { sameHost } = lane;
    this.#count(lane, -calls);
    sameHost.bucket?.giveBack(calls);
  }

  #count(lane: Lane, by: number): void {
    for (const holder of [lane, lane.account, lane.key, lane.sameHost]) holder.inFlight += by;
    this.#taken += by;
  }

  readonly #hasSlot = ({ account, key }: Lane): boolean =>
    mayTake(this.#limits.total - this.#taken, account.inFlight, key.inFlight);

  /** Whether a row that is about to be stored may have a slot. Rows that wait in its lane go first. */
  #mayReserve(lane: Lane): boolean {
    if (lane.waiting > 0 && lane.isLargeNext) return false;
    return !this.#rules.isPaused(lane) && this.#hasHostSlot(lane, lane.waiting) && this.#hasSlot(lane);
  }

  /** Whether the host has a slot for one more call of the lane, after `others`. */
  #hasHostSlot(lane: Lane, others = 0): boolean {
    const { inFlight, sameHost } = lane;
    const { slots, reserve, bucket } = sameHost;
    if (sameHost.inFlight + others >= slots - (inFlight === 0 ? 0 : reserve)) return false;
    if (bucket === null) return true;
    return bucket.has(this.#rules.monotonicMs()) && this.#rules.beginWaitMs(lane) <= CLAIM_AHEAD_MS;
  }

  /** Sets an alarm for when the host has a token again, and a call would soon leave. */
  #awaitToken(lane: Lane, bucket: TokenBucket): void {
    const nowMs = this.#rules.monotonicMs();
    const atMs = Math.max(bucket.nextMs(nowMs), nowMs + this.#rules.beginWaitMs(lane) - CLAIM_AHEAD_MS);
    if (atMs > nowMs) this.#tokenAlarms.set(lane.sameHost, atMs);
  }

  /** Finds or adds a lane. Null: only other nodes call its host, or there is no room for a new lane. */
  #findLane(row: LaneName): Lane | null {
    const known = this.#lanes.get(laneName(row));
    if (known !== undefined) return known.sameHost.slots === 0 ? null : known;
    const { accountId } = row;
    const [keyName, hostName] = [accountKeyName(row), accountHostName(row)];
    const sameHost = this.#hosts.get(hostName) ?? this.#setLimits(new HostGroup(hostName), row);
    if (sameHost.slots === 0) return null;
    const account = this.#accounts.get(accountId) ?? new Group();
    const key = this.#keys.get(keyName) ?? new Group();
    // As with slots, no account or key may take the room of all others, even with rows that are not yet due.
    if (!mayTake(LANES_MAX - this.#lanes.size, account.lanes.size, key.lanes.size)) return null;
    this.#accounts.set(accountId, account);
    this.#keys.set(keyName, key);
    this.#hosts.set(hostName, sameHost);
    const lane = new Lane(row, { account, key, sameHost });
    this.#lanes.set(lane.name, lane);
    return lane;
  }

  /** Re-evaluates all lanes of a host, since their order depends on what each has in flight. */
  #update(sameHost: HostGroup): void {
    for (const lane of sameHost.slots === 0 ? sameHost.lanes : []) {
      lane.waiting = 0;
      // A lane that is made again for the host has one of its own.
      this.#alarms.remove(lane);
    }
    const least = this.#leastWaiting(sameHost);
    for (const lane of sameHost.lanes) {
      const isNext =
        lane.waiting > 0 && lane.inFlight <= least && !this.#rules.isPaused(lane) && this.#hasHostSlot(lane);
      if (sameHost.bucket !== null && lane.waiting > 0 && !isNext) this.#awaitToken(lane, sameHost.bucket);
      this.#small.set(lane, isNext && !lane.isLargeNext);
      this.#large.set(lane, isNext && lane.isLargeNext);
      const isIdle = lane.waiting === 0 && lane.wakesAtMs === NEVER;
      if (isIdle && lane.inFlight === 0 && lane.largeBytes === 0) this.#forget(lane);
    }
  }

  /** The fewest calls in flight of any lane, except `but`, that waits only for a slot. */
  #leastWaiting({ lanes }: Group, but: Lane | null = null): number {
    let least = Number.POSITIVE_INFINITY;
    for (const lane of lanes) {
      if (lane !== but && lane.waiting > 0 && !lane.isLargeNext && !this.#rules.isPaused(lane))
        least = Math.min(least, lane.inFlight);
    }
    return least;
  }

  #forget(lane: Lane): void {
    this.#lanes.delete(lane.name);
    leave(this.#accounts, lane.accountId, lane);
    leave(this.#keys, accountKeyName(lane), lane);
    leave(this.#hosts, lane.sameHost.name, lane);
    const { name, bucket } = lane.sameHost;
    if (bucket !== null && this.#isBucketIdle(bucket, name)) this.#buckets.delete(name);
  }
}

function leave(groups: Map<string, Group>, name: string, lane: Lane): void {
  const lanes = groups.get(name)?.lanes;
  lanes?.delete(lane);
  if (lanes?.size === 0) groups.delete(name);
}

/** Lanes by account and key, in the order of their next turns. */
class LaneRotation {
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
const FREE_FACTOR = 3;

/**
 * One key may take all slots of its account. So that another key need not wait for those calls to end, a key that holds few
 * slots may exceed the account's share, up to this many times the free slots.
 */
const SECOND_KEY_FREE_FACTOR = FREE_FACTOR + 1;

/** Whether an account and its key, which hold this much of a shared resource, may have one more of what is free. */
function mayTake(free: number, ofAccount: number, ofKey: number): boolean {
  // One free slot is enough for an account that holds none, however small the total is.
  if (ofAccount < FREE_FACTOR * free) return true;
  const beyond = SECOND_KEY_FREE_FACTOR * free - ofAccount;
  return free > 1 && SECOND_KEY_FREE_FACTOR * ofKey < beyond;
}
