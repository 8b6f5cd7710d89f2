import { CLOCK_DOUBT_MS, CLOCK_READ_EVERY_MS, CLOCK_READS, CLOCK_TOLERANCE_MS } from "../core/limits.ts";
import type { ClusterStore } from "../core/store.ts";
import type { Clock } from "../core/clock.ts";

/** One reading of the database's clock. */
export interface ClockReading {
  /** The database's clock minus the monotonic clock of this process. */
  readonly offsetMs: number;
  /** By how much it may be wrong, which is half of the round trip. */
  readonly errorMs: number;
  /** When it was taken, by the monotonic clock. */
  readonly atMs: number;
}

/** How far two good clocks may drift apart, as a share of the time between two readings. */
const DRIFT = 0.000_1;

/**
 * Whether the newer reading replaces the older one: if it is at least as exact, or if both can't be right, since the database's
 * clock was set or the machines' clocks drifted. So a slow answer moves no clock.
 */
export function replacesReading(older: ClockReading, newer: ClockReading): boolean {
  const olderErrorMs = older.errorMs + DRIFT * (newer.atMs - older.atMs);
  const apartMs = Math.abs(newer.offsetMs - older.offsetMs);
  return newer.errorMs <= olderErrorMs || apartMs > newer.errorMs + olderErrorMs;
}

interface NodeClockDeps {
  readonly cluster: Pick<ClusterStore, "now">;
  /** The clocks of this machine. Its wall clock is only a hint that the process was suspended. */
  readonly machine: Clock;
  /** Called when the database's clock could not be read; the last reading stays in force. */
  readonly onError: (error: unknown) => void;
}

/**
 * The clock of a node among several: the database's time at the last reading, and the monotonic clock since. All nodes
 * agree on it within half a round trip, whatever their machines' wall clocks say.
 */
export class NodeClock implements Clock {
  readonly #deps: NodeClockDeps;
  #reading: ClockReading;
  /** The machine's wall clock minus its monotonic clock, at the last reading. */
  #wallAheadMs: number;
  /** When the database's clock was last found to have been set, by the monotonic clock. */
  #setAtMs = Number.NEGATIVE_INFINITY;
  /** The read under way; null: none. */
  #reads: Promise<boolean> | null = null;
  #isStopped = false;
  #cancel: () => void = () => {};
  #onSure: () => void = () => {};

  private constructor(deps: NodeClockDeps, reading: ClockReading) {
    this.#deps = deps;
    this.#reading = reading;
    this.#wallAheadMs = wallAheadMs(deps.machine);
  }

  /** Reads the database's clock and keeps following it until `stop`. Rejects if it can't be read. */
  static async start(deps: NodeClockDeps): Promise<NodeClock> {
    const clock = new NodeClock(deps, await readClock(deps));
    clock.#readLater();
    return clock;
  }

  now(): Date {
    return new Date(Math.round(this.#reading.offsetMs + this.#deps.machine.monotonicMs()));
  }

  monotonicMs(): number {
    return this.#deps.machine.monotonicMs();
  }

  after(delayMs: number, run: () => void): () => void {
    return this.#deps.machine.after(delayMs, run);
  }

  /**
   * False while the time may be wrong, since the machine's two clocks have moved apart: after a suspend, for example, during which the
   * monotonic clock stops. It then reads the database's clock at once. If only the wall clock was set, nothing else changes.
   */
  get isSure(): boolean {
    const { machine } = this.#deps;
    if (Math.abs(wallAheadMs(machine) - this.#wallAheadMs) <= CLOCK_DOUBT_MS) return true;
    this.#readNow();
    return false;
  }

  /**
   * Whether the database's clock was set within this time, such as by a move to another server. Leases taken before then seem to
   * end too early, or far too late.
   */
  wasSet(withinMs: number): boolean {
    return this.#deps.machine.monotonicMs() - this.#setAtMs < withinMs;
  }

  /** Sets the one listener, called when a doubt has ended, so that what paused because of it can continue. */
  onSure(listener: () => void): void {
    this.#onSure = listener;
  }

  /** Reads the database's clock again. Never rejects. False: it could not be read. */
  read(): Promise<boolean> {
    this.#reads ??= this.#read().finally(() => (this.#reads = null));
    return this.#reads;
  }

  async #read(): Promise<boolean> {
    if (this.#isStopped) return false;
    try {
      const aheadMs = wallAheadMs(this.#deps.machine);
      const newer = await readClock(this.#deps);
      const isDoubtful = Math.abs(aheadMs - this.#wallAheadMs) > CLOCK_DOUBT_MS;
      if (isDoubtful || replacesReading(this.#reading, newer)) {
        if (Math.abs(newer.offsetMs - this.#reading.offsetMs) > CLOCK_TOLERANCE_MS) this.#setAtMs = newer.atMs;
        this.#reading = newer;
      }
      this.#wallAheadMs = aheadMs;
      if (isDoubtful) this.#onSure();
      return true;
    } catch (error) {
      this.#deps.onError(error);
      return false;
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  #readNow(onEnd: () => void = () => {}): void {
    this.read().then(onEnd, onEnd);
  }

  #readLater(): void {
    this.#cancel = this.#deps.machine.after(CLOCK_READ_EVERY_MS, () => {
      this.#readNow(() => {
        if (!this.#isStopped) this.#readLater();
      });
    });
  }
}

/** The best of `CLOCK_READS` readings. */
async function readClock({ cluster, machine }: Pick<NodeClockDeps, "cluster" | "machine">): Promise<ClockReading> {
  let best: ClockReading | null = null;
  for (let reads = 0; reads < CLOCK_READS; reads += 1) {
    const sentMs = machine.monotonicMs();
    const nowMs = (await cluster.now()).getTime();
    const atMs = machine.monotonicMs();
    const errorMs = (atMs - sentMs) / 2;
    if (best === null || errorMs < best.errorMs) best = { offsetMs: nowMs - sentMs - errorMs, errorMs, atMs };
  }
  if (best === null) throw new Error("The database's clock was not read.");
  return best;
}

function wallAheadMs(machine: Clock): number {
  return machine.now().getTime() - machine.monotonicMs();
}
