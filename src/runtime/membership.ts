import { NODE_BEAT_MS, NODE_JOIN_BEAT_MS, NODE_LIVES_MS } from "../core/limits.ts";
import { type ClusterStore, type LiveNode, type NodeRow, StoreUnavailable } from "../core/store.ts";
import type { Log } from "../observability/log.ts";
import type { NodeClock } from "./node-clock.ts";

interface MembershipDeps {
  readonly cluster: Pick<ClusterStore, "beat" | "leave">;
  readonly self: NodeRow;
  readonly clock: Pick<NodeClock, "now" | "after" | "isSure" | "onSure">;
  readonly log: Pick<Log, "info" | "warn">;
}

/**
 * Which nodes live, and whether this one may claim. A node that comes, or comes back after the others took it for dead,
 * claims only when every other one has said that it lives since, since only then do they all share with it what one
 * target may get at a time. A node that dies is missed after `NODE_LIVES_MS`; one that could not say for so long that
 * it lives claims nothing, since by then the others have taken over its share.
 */
export class NodeMembership {
  readonly #deps: MembershipDeps;
  #nodes: readonly string[];
  /** When the last beat that succeeded began. */
  #beatAtMs = Number.NEGATIVE_INFINITY;
  /** The database's time at which this node came. */
  #cameAtMs = Number.POSITIVE_INFINITY;
  #isJoined = false;
  #isStopped = false;
  #cancel: () => void = () => {};
  #beating: Promise<void> = Promise.resolve();
  #onChange: () => void = () => {};

  constructor(deps: MembershipDeps) {
    this.#deps = deps;
    this.#nodes = [deps.self.id];
    // Nothing was claimed meanwhile, and no timer was set for what became due.
    deps.clock.onSure(() => this.#onChange());
  }

  get id(): string {
    return this.#deps.self.id;
  }

  /** The ids of the nodes that live, in order; this one is always among them. */
  get nodes(): readonly string[] {
    return this.#nodes;
  }

  /** Sets the one listener, called when nodes came or went, and when this one may claim. */
  onChange(listener: () => void): void {
    this.#onChange = listener;
  }

  /** Whether this node may claim rows now. */
  mayClaim(): boolean {
    const { clock } = this.#deps;
    return this.#isJoined && !this.#isStopped && clock.isSure && this.#isFresh(clock.now().getTime());
  }

  /** Registers the node and keeps saying that it lives. Never rejects: while the database is away nothing is claimed. */
  async start(): Promise<void> {
    await this.#beatOrWarn();
    this.#beatLater();
  }

  /** Leaves, so that the others share its part at their next beat. Call it when nothing is in flight any more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    await this.#beating;
    await this.#deps.cluster.leave(this.id).catch(() => {
      // They notice it after `NODE_LIVES_MS`.
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
      // `Outage` tells that the store is away.
      if (!(error instanceof StoreUnavailable)) this.#deps.log.warn("node.beat_failed", { node: this.id });
    }
  }

  async #beat(): Promise<void> {
    const { cluster, self, clock } = this.#deps;
    const begunAtMs = clock.now().getTime();
    const live = await cluster.beat(self, NODE_LIVES_MS);
    // Also after a suspend: the time has been read again meanwhile, or is in doubt and will be.
    const isBack = !this.#isFresh(clock.now().getTime());
    this.#beatAtMs = begunAtMs;
    if (isBack) this.#cameAtMs = live.find(({ id }) => id === self.id)?.beatAt.getTime() ?? Number.POSITIVE_INFINITY;
    this.#update(live, isBack);
  }

  #update(live: readonly LiveNode[], isBack: boolean): void {
    const { self, log } = this.#deps;
    const others = live.filter(({ id }) => id !== self.id);
    const nodes = [self.id, ...others.map(({ id }) => id)].toSorted();
    const [wasJoined, before] = [this.#isJoined, this.#nodes];
    this.#isJoined = (wasJoined && !isBack) || others.every(({ beatAt }) => beatAt.getTime() > this.#cameAtMs);
    this.#nodes = nodes;
    const isSame = before.length === nodes.length && before.every((id, n) => id === nodes[n]);
    if (isSame && this.#isJoined === wasJoined && !isBack) return;
    log.info("nodes.changed", { node: self.id, count: nodes.length, claims: this.#isJoined });
    this.#onChange();
  }
}

/** What this process may do beside the others on the same database. */
export interface NodeShare {
  /** Whether it may claim rows now. */
  readonly mayClaim: () => boolean;
  /** How many of the slots of a host are this process's; the name is any text that identifies the host. */
  readonly slotsOf: (name: string, slots: number) => number;
  /** How much of a host's calls per second is this process's, where it has slots of this host: an equal part. */
  readonly rateOf: (perSecond: number, slots: number) => number;
}

/** The share of the only process of a database. */
export const WHOLE_SHARE: NodeShare = {
  mayClaim: () => true,
  slotsOf: (_name, slots) => slots,
  rateOf: (perSecond) => perSecond,
};

/**
 * How many of the slots of a host one of several nodes has. Each has as many as go into all evenly; of those that are left
 * over the nodes with the highest rank for this name have one each, so that all together have exactly `slots`, and with
 * fewer slots than nodes only some nodes call the host. When a node comes, no other one's share grows, and when one goes
 * none shrinks (rendezvous hashing): nodes that don't know of the change yet never have more than all slots together
 * with those that do.
 */
export function shareOfHost(name: string, slots: number, self: string, nodes: readonly string[]): number {
  if (nodes.length <= 1) return slots;
  const each = Math.floor(slots / nodes.length);
  const left = slots - each * nodes.length;
  if (left === 0) return each;
  const own = rankOf(self, name);
  const before = nodes.filter((node) => node !== self && isBefore([rankOf(node, name), node], [own, self])).length;
  return each + (before < left ? 1 : 0);
}

/** The part of a rate that each node has that calls the host: with fewer slots than nodes only as many nodes do. */
export function shareOfRate(perSecond: number, slots: number, nodes: number): number {
  return perSecond / Math.max(1, Math.min(slots, nodes));
}

type Ranked = readonly [rank: bigint, node: string];

function isBefore([rank, node]: Ranked, [otherRank, otherNode]: Ranked): boolean {
  return rank === otherRank ? node < otherNode : rank < otherRank;
}

/** A hash with a fixed definition: nodes of different versions have to agree. */
function rankOf(node: string, name: string): bigint {
  return Bun.hash.xxHash64(`${node} ${name}`);
}
