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
