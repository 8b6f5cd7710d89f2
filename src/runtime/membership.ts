import { NODE_BEAT_MS, NODE_JOIN_BEAT_MS, NODE_LIVES_MS } from "../core/limits.ts";
import { type ClusterStore, type LiveNode, type NodeRow, StoreUnavailable } from "../core/store.ts";
import type { Log } from "../observability/log.ts";
import type { NodeClock } from "./node-clock.ts";

export interface MembershipDeps {
  readonly cluster: Pick<ClusterStore, "beat" | "leave">;
  readonly self: NodeRow;
  readonly clock: Pick<NodeClock, "now" | "after" | "isSure" | "onSure">;
  /** Runs each time that the node joins or returns, before it may claim, after the others count it. If it rejects, the node is not back. */
  readonly onBack: () => Promise<void>;
  readonly log: Pick<Log, "info" | "warn">;
}

/**
 * Which nodes live, and whether this one may claim. A node that joins, or returns after the others took it for dead, claims
 * only once every other node has reported since, since only then do all divide a target's slots with it. A dead node is noticed
 * after `NODE_LIVES_MS`. A node that could not report for so long claims nothing, since the others have taken over its share.
 *
 * Calls that the others began before may be more than their new shares. Until these have ended, their hosts are left to them if
 * these have a limit of their own: see `isSettled`.
 */
export class NodeMembership {
  readonly #deps: MembershipDeps;
  #nodes: readonly string[];
  /** When the last successful beat began. */
  #beatAtMs = Number.NEGATIVE_INFINITY;
  /** The database's time when this node joined. */
  #cameAtMs = Number.POSITIVE_INFINITY;
  #isJoined = false;
  /** The database's time by which all others counted this node; Infinity: not yet. */
  #joinedAtMs = Number.POSITIVE_INFINITY;
  /** The hosts, as hashes, that are left to the others. Null: all, since not all others have reported which are. */
  #left: ReadonlySet<string> | null = null;
  #isStopped = false;
  #cancel: () => void = () => {};
  #beating: Promise<void> = Promise.resolve();
  #onChange: () => void = () => {};
  #overHosts: () => readonly string[] = () => [];

  constructor(deps: MembershipDeps) {
    this.#deps = deps;
    this.#nodes = [deps.self.id];
    // During the doubt, nothing was claimed and no timer was set for rows that became due.
    deps.clock.onSure(() => this.#onChange());
  }

  get id(): string {
    return this.#deps.self.id;
  }

  /** The ids of the live nodes, in order, always including this one. */
  get nodes(): readonly string[] {
    return this.#nodes;
  }

  /** Sets the one listener, called when nodes have joined or left, and when this one may claim. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Sets what tells the others to which hosts this node has more calls in progress than its share. */
  reportOver(overHosts: () => readonly string[]): void {
    this.#overHosts = overHosts;
  }

  /** Whether all others have reported, since this node joined, that their calls to this host are no more than their shares. */
  isSettled(host: string): boolean {
    return this.#left !== null && !this.#left.has(nameHash(host));
  }

  /** Whether this node may claim rows now. */
  mayClaim(): boolean {
    const { clock } = this.#deps;
    return this.#isJoined && !this.#isStopped && clock.isSure && this.#isFresh(clock.now().getTime());
  }

  /** Registers the node and keeps reporting that it lives. Never rejects: during an outage, nothing is claimed. */
  async start(): Promise<void> {
    await this.#beatOrWarn();
    this.#beatLater();
  }

  /** Leaves, so that the others take over its share at their next beat. Call it when nothing is in flight any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    await this.#beating;
    await this.#deps.cluster.leave(this.id).catch(() => {
      // The others notice it after `NODE_LIVES_MS`.
    });
  }

  #isFresh(nowMs: number): boolean {
    return nowMs - this.#beatAtMs < NODE_LIVES_MS;
  }

  #beatLater(): void {
    this.#cancel = this.#deps.clock.after(this.#isJoined ? NODE_BEAT_MS : NODE_JOIN_BEAT_MS, () => {
      this.#beating = this.#beatOrWarn().finally(() => {
        if (!this.#isStopped) this.#beatLater();
      });
    });
  }

  async #beatOrWarn(): Promise<void> {
    try {
      await this.#beat();
    } catch (error) {
      // `Outage` reports that the store is unavailable.
      if (!(error instanceof StoreUnavailable)) this.#deps.log.warn("node.beat_failed", { node: this.id });
    }
  }

  async #beat(): Promise<void> {
    const { cluster, self, clock, onBack } = this.#deps;
    const begunAtMs = clock.now().getTime();
    const live = await cluster.beat(self, NODE_LIVES_MS, [...new Set(this.#overHosts().map(nameHash))]);
    // True after a suspend, too: by now the time was read again, or it is in doubt and will be.
    const isBack = !this.#isFresh(clock.now().getTime());
    if (isBack) await onBack();
    this.#beatAtMs = begunAtMs;
    const seenAtMs = live.find(({ id }) => id === self.id)?.beatAt.getTime() ?? Number.POSITIVE_INFINITY;
    // A later time is from before the database's clock was set back: no other node would report after it for long. Reports from before
    // then may seem to be later than this one.
    if (isBack || seenAtMs < this.#cameAtMs)
      this.#cameAtMs = Math.max(seenAtMs, ...live.map(({ beatAt }) => beatAt.getTime()));
    this.#update(live, isBack);
  }

  /** This node has joined once all others have reported since it came, and its hosts are settled once all have since it joined. */
  #update(live: readonly LiveNode[], isBack: boolean): void {
    const { self, log } = this.#deps;
    const [wasJoined, nodesBefore] = [this.#isJoined, this.#nodes];
    if (isBack) [this.#isJoined, this.#joinedAtMs, this.#left] = [false, Number.POSITIVE_INFINITY, null];
    const others = live.filter(({ id }) => id !== self.id);
    const haveReportedSince = (atMs: number) => others.every(({ beatAt }) => beatAt.getTime() > atMs);
    this.#isJoined ||= haveReportedSince(this.#cameAtMs);
    const leftBefore = this.#left;
    const over = new Set(others.flatMap(({ overHosts }) => overHosts));
    if (leftBefore !== null) this.#left = leftBefore.intersection(over);
    else if (this.#isJoined && haveReportedSince(this.#joinedAtMs)) this.#left = over;
    // Set after it was compared: a report by which a node showed that it counts this one was written before it did. All reports are
    // earlier only once the database's clock was set back.
    const newestMs = Math.max(...live.map(({ beatAt }) => beatAt.getTime()));
    if (this.#isJoined) this.#joinedAtMs = Math.min(this.#joinedAtMs, newestMs);
    this.#nodes = [self.id, ...others.map(({ id }) => id)].toSorted();
    const isAsBefore = !isBack && this.#isJoined === wasJoined && Bun.deepEquals(this.#nodes, nodesBefore);
    if (isAsBefore && this.#left?.size === leftBefore?.size) return;
    if (!isAsBefore) log.info("nodes.changed", { node: self.id, count: this.#nodes.length, claims: this.#isJoined });
    this.#onChange();
  }
}

/** What this process may do as one of several on the same database. */
export interface NodeShare {
  /** Whether it may claim rows now. */
  readonly mayClaim: () => boolean;
  /** Whether the calls to a host that other processes began before they shared with this one are within their shares. */
  readonly isSettled: (name: string) => boolean;
  /** How many of a host's slots this process has. `name` is any text that identifies the host; `perSecond`: its rate, if any. */
  readonly slotsFor: (name: string, slots: number, perSecond: number | null) => number;
  /** How many of a host's calls per second this process may make, if it has slots of the host. */
  readonly rateFor: (name: string, perSecond: number, slots: number) => number;
}

/** The share of the only process of a database. */
export const WHOLE_SHARE: NodeShare = {
  mayClaim: () => true,
  isSettled: () => true,
  slotsFor: (_name, slots) => slots,
  rateFor: (_name, perSecond) => perSecond,
};

/**
 * How many of a host's slots one of several nodes has. All get an equal number, and the nodes with the highest rank for this
 * name get one more each, so that together they have exactly `slots`; with fewer slots than nodes, only some nodes call the
 * host. When a node joins, no other share grows, and when one leaves, none shrinks (rendezvous hashing). So nodes that know of
 * a change and nodes that don't never have more than all slots together. Of more than `callersMax` nodes, the others get none.
 */
export function shareOfHost(
  name: string,
  slots: number,
  self: string,
  nodes: readonly string[],
  callersMax = nodes.length,
): number {
  const callers = Math.min(nodes.length, callersMax);
  const each = Math.floor(slots / callers);
  const own = [nodeRank(self, name), self] as const;
  const before = nodes.filter((node) => isBefore([nodeRank(node, name), node], own)).length;
  if (before >= callers) return 0;
  return each + (before < slots - each * callers ? 1 : 0);
}

/** How many nodes may call a host with a rate: each makes whole calls a second, since two halves may fall into one second. */
export function callersOfRate(perSecond: number): number {
  return Math.max(1, Math.floor(perSecond));
}

/** The part of a rate of a node that has slots of the host. Several nodes share whole calls, like slots. */
export function shareOfRate(
  name: string,
  { perSecond, slots }: { readonly perSecond: number; readonly slots: number },
  self: string,
  nodes: readonly string[],
): number {
  const callers = Math.min(slots, nodes.length, callersOfRate(perSecond));
  return callers === 1 ? perSecond : shareOfHost(name, Math.floor(perSecond), self, nodes, callers);
}

type Ranked = readonly [rank: bigint, node: string];

function isBefore([rank, node]: Ranked, [otherRank, otherNode]: Ranked): boolean {
  return rank === otherRank ? node < otherNode : rank < otherRank;
}

/** A hash with a fixed definition, since nodes of different versions must agree. */
function nodeRank(node: string, name: string): bigint {
  return Bun.hash.xxHash64(`${node} ${name}`);
}

/** Names are long, and a report may have one for each call in progress. */
function nameHash(name: string): string {
  return Bun.hash.xxHash64(name).toString(36);
}
