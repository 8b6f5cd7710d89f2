import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { HistoryRows } from "../faults/history.ts";
import { type FaultReport, withMore } from "../faults/report.ts";
import { Balancer } from "./balancer.ts";
import { Follower } from "./follower.ts";
import { judgeCluster, judgeStream, positionsOf } from "./judge.ts";
import { Load, type LoadOptions } from "./load.ts";
import { ClusterNode } from "./node.ts";
import { readRows } from "./rows.ts";
import { Witness, type WitnessOptions } from "./witness.ts";

/** Until all is settled after the last fault: a lease, the look for those that have expired, and the delays of a callback. */
const SETTLE_MS_MAX = 120_000;
/** Until a reader of the stream has the last event: more than a poll. */
const CATCH_UP_MS_MAX = 15_000;

const JOIN_MS_MAX = 20_000;

/** Short enough for leases to end within a test. */
const ENV = { ATTEMPT_TIMEOUT_MS: "1000", RETRY_BASE_MS: "50", RETRY_CAP_MS: "500" };

export interface ClusterOptions {
  readonly nodes: number;
  /** The address of the database, as seen from the tests. */
  readonly databaseUrl: string;
  /** What differs for one of the nodes. */
  readonly nodeOf?: (index: number) => {
    readonly databaseUrl?: string;
    readonly env?: Readonly<Record<string, string>>;
  };
  readonly env?: Readonly<Record<string, string>>;
  readonly witness?: WitnessOptions;
  /** Reads the event stream all the time, from whichever node. */
  readonly follows?: boolean;
  readonly load: Omit<LoadOptions, "balancer" | "witness">;
}

/** How much work there is, and in which order things happen. */
export interface Width extends Pick<LoadOptions, "clients" | "pauseMs" | "chance"> {
  /** Whether nobody else uses the machine: only then can it be judged how fast something is. */
  readonly isAlone: boolean;
}

/** How long something may take: much longer where others use the machine, but still not for ever. */
export function boundOf({ isAlone }: Pick<Width, "isAlone">, aloneMs: number): number {
  return isAlone ? aloneMs : Math.max(15_000, 3 * aloneMs);
}

/** Nodes on one database, what stands around them, and the clients that keep them busy. */
export class Cluster implements AsyncDisposable {
  readonly nodes: readonly ClusterNode[];
  readonly balancer: Balancer;
  readonly witness: Witness;
  readonly load: Load;
  #follower: Follower | null = null;
  readonly #databaseUrl: string;
  readonly #folder: string;

  private constructor(nodes: readonly ClusterNode[], folder: string, options: ClusterOptions) {
    this.nodes = nodes;
    this.#folder = folder;
    this.#databaseUrl = options.databaseUrl;
    this.balancer = new Balancer(nodes);
    this.witness = new Witness(options.witness);
    this.load = new Load({ ...options.load, balancer: this.balancer, witness: this.witness });
  }

  /** Starts all nodes at once on what may be an empty database, and resolves when all are ready. */
  static async start(options: ClusterOptions): Promise<Cluster> {
    const folder = mkdtempSync(join(tmpdir(), "outgate-cluster-"));
    const nodes = await Promise.all(
      Array.from({ length: options.nodes }, (_, index) => {
        const own = options.nodeOf?.(index);
        const env = { ...ENV, ...options.env, ...own?.env };
        return ClusterNode.create(`n${index}`, { folder, databaseUrl: own?.databaseUrl ?? options.databaseUrl, env });
      }),
    );
    const cluster = new Cluster(nodes, folder, options);
    try {
      for (const node of nodes) node.start();
      await Promise.all(nodes.map((node) => node.ready()));
      if (options.follows === true) cluster.#follower = await Follower.start(cluster.balancer);
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  node(index: number): ClusterNode {
    const found = this.nodes[index];
    if (found === undefined) throw new Error(`There is no node ${index}.`);
    return found;
  }

  /** Waits until every node takes part: a new one lets the others know it before it claims. */
  async allClaim(): Promise<void> {
    await using reader = readRows(this.#databaseUrl);
    const untilMs = performance.now() + JOIN_MS_MAX;
    while ((await reader.claimantCount()) < this.nodes.length && performance.now() < untilMs) await Bun.sleep(50);
  }

  /** Waits, at most so long, until so many calls are under way at the target. */
  async busy(count: number, withinMs = 5_000): Promise<number> {
    const untilMs = performance.now() + withinMs;
    while (this.witness.inFlight < count && performance.now() < untilMs) await Bun.sleep(5);
    return this.witness.inFlight;
  }

  /** Ends the load, waits until nothing is under way, and holds everything against the promises. */
  async judge(): Promise<FaultReport> {
    await this.load.end();
    await using reader = readRows(this.#databaseUrl);
    const endedMs = performance.now();
    const untilMs = endedMs + SETTLE_MS_MAX;
    let open = await reader.openCount();
    while (open > 0 && performance.now() < untilMs) {
      await Bun.sleep(100);
      open = await reader.openCount();
    }
    const settledMs = Math.round(performance.now() - endedMs);
    const rows = await reader.history();
    const { figures, problems } = judgeCluster({ rows, load: this.load, witness: this.witness });
    const stream = await this.#judgeStream(rows);
    const all = { figures: { ...figures, ...stream?.figures }, problems: [...problems, ...(stream?.problems ?? [])] };
    const work = { "nothing is stuck": open === 0, "it had work": this.witness.arrivals.length > 0 };
    return withMore(all, { stuck: open, settledMs }, work);
  }

  async #judgeStream(rows: HistoryRows): Promise<FaultReport | null> {
    const follower = this.#follower;
    if (follower === null) return null;
    const positions = positionsOf(rows);
    let untilMs = performance.now() + CATCH_UP_MS_MAX;
    for (let before = 0; follower.seen.size < positions.length && performance.now() < untilMs;) {
      // One that is far behind may take longer, as long as it goes on.
      if (follower.seen.size > before) untilMs = performance.now() + CATCH_UP_MS_MAX;
      before = follower.seen.size;
      await Bun.sleep(20);
    }
    return judgeStream(rows, follower);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load.end();
    await this.#follower?.[Symbol.asyncDispose]();
    await Promise.all(this.nodes.map((node) => node.end("SIGKILL")));
    await Promise.all([this.balancer[Symbol.asyncDispose](), this.witness[Symbol.asyncDispose]()]);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
