import type { ClusterStore, LiveNode } from "../../src/core/store.ts";

interface Lease {
  readonly holder: string;
  readonly endsAtMs: number;
}

/** What nodes share, in memory: the database's clock is any function of the test. It tells of no changes. */
export class MemoryCluster implements ClusterStore {
  readonly #nowMs: () => number;
  readonly #nodes = new Map<string, LiveNode>();
  readonly #jobs = new Map<string, Lease>();
  /** Set it to let every call fail, as while the database is away. */
  isAway = false;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  now(): Promise<Date> {
    return this.#call(() => new Date(this.#nowMs()));
  }

  beat(...[node, livesMs, overHosts = []]: Parameters<ClusterStore["beat"]>): Promise<readonly LiveNode[]> {
    return this.#call(() => {
      const nowMs = this.#nowMs();
      this.#nodes.set(node.id, { ...node, beatAt: new Date(nowMs), overHosts });
      for (const [id, { beatAt }] of this.#nodes)
        if (Math.abs(nowMs - beatAt.getTime()) >= livesMs) this.#nodes.delete(id);
      return [...this.#nodes.values()];
    });
  }

  leave(nodeId: string): Promise<void> {
    return this.#call(() => void this.#nodes.delete(nodeId));
  }

  takeJob(name: string, nodeId: string, lastsMs: number): Promise<boolean> {
    return this.#call(() => {
      const nowMs = this.#nowMs();
      const held = this.#jobs.get(name);
      if (held !== undefined && held.holder !== nodeId && held.endsAtMs > nowMs) return false;
      this.#jobs.set(name, { holder: nodeId, endsAtMs: nowMs + lastsMs });
      return true;
    });
  }

  releaseJob(name: string, nodeId: string): Promise<void> {
    return this.#call(() => {
      if (this.#jobs.get(name)?.holder === nodeId) this.#jobs.delete(name);
    });
  }

  changedSince(position: number): ReturnType<ClusterStore["changedSince"]> {
    return this.#call(() => ({ changes: [], position, isLast: true }));
  }

  findRevisions(): Promise<ReadonlyMap<string, number>> {
    return this.#call(() => new Map());
  }

  listen(): Promise<null> {
    return this.#call(() => null);
  }

  async #call<T>(work: () => T): Promise<T> {
    await Promise.resolve();
    if (this.isAway) throw new Error("The database is away.");
    return work();
  }
}
