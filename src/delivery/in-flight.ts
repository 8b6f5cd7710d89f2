import { DRAIN_WRITE_MS, LARGE_GARBAGE_BYTES_MAX } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Candidate } from "./lanes.ts";
import { FREE_FACTOR } from "./slots.ts";

/** What the loop gives an attempt. */
export interface Run {
  /** Aborts when the attempt must end early. */
  readonly stop: AbortSignal;
  /** Call it once, as soon as the target is done with the request. The result may still have to be written. */
  readonly releaseSlot: () => void;
}

/** One attempt of a row that was claimed for it. */
export type Attempt<Row> = (row: Row, run: Run) => Promise<void>;

/** Everything the loop has started: attempts by row, and other work that a stop must wait for. */
export class RunsInFlight<Row extends { readonly id: string }> {
  readonly #clock: Clock;
  readonly #attempt: Attempt<Row>;
  /** Attempts per row. The next attempt may start while the result of the last one is still being written. */
  readonly #inFlight = new Map<string, number>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #interrupt = new AbortController();

  constructor(clock: Clock, attempt: Attempt<Row>) {
    this.#clock = clock;
    this.#attempt = attempt;
  }

  /** Rows with an attempt whose result is not recorded yet. */
  get count(): number {
    return this.#inFlight.size;
  }

  has(id: string): boolean {
    return this.#inFlight.has(id);
  }

  /** Starts an attempt. `releaseSlot` is called exactly once, as soon as the target is done with the request. */
  start(row: Row, releaseSlot: () => void, onError: (error: unknown, id: string) => void): void {
    let isReleased = false;
    const releaseOnce = () => {
      if (isReleased) return;
      isReleased = true;
      releaseSlot();
    };
    this.#inFlight.set(row.id, (this.#inFlight.get(row.id) ?? 0) + 1);
    const run = async () => {
      try {
        await this.#attempt(row, { stop: this.#interrupt.signal, releaseSlot: releaseOnce });
      } catch (error) {
        onError(error, row.id);
      } finally {
        const left = (this.#inFlight.get(row.id) ?? 1) - 1;
        if (left === 0) this.#inFlight.delete(row.id);
        else this.#inFlight.set(row.id, left);
        releaseOnce();
      }
    };
    this.keep(run());
  }

  /** Makes `drain` wait for this too. It must not reject. */
  keep(work: Promise<unknown>): void {
    const kept = work.finally(() => this.#work.delete(kept));
    this.#work.add(kept);
  }

  /**
   * Resolves when all work has ended. After `limitMs` the attempts in flight are interrupted and have `DRAIN_WRITE_MS`
   * to be recorded; then this resolves in any case.
   */
  async drain(limitMs: number): Promise<void> {
    const over = Promise.withResolvers<void>();
    let isOver = false;
    const cancels = [
      this.#clock.after(limitMs, () => this.#interrupt.abort()),
      this.#clock.after(limitMs + DRAIN_WRITE_MS, () => {
        isOver = true;
        over.resolve();
      }),
    ];
    while (this.#work.size > 0 && !isOver) await Promise.race([Promise.allSettled(this.#work), over.promise]);
    for (const cancel of cancels) cancel();
  }
}

/** Memory that a large row takes while it is claimed. */
interface Held {
  readonly bytes: number;
  readonly account: string;
  readonly lane: string;
}

/**
 * Large due rows that have a slot and wait for memory. Bytes are shared as slots are: an account may claim more while
 * it holds less than `FREE_FACTOR` times the free bytes, and a lane while it holds less than the free bytes, so that
 * one slow host with large bodies never takes the room of all others.
 */
export class LargeRows {
  readonly #bytesMax: number;
  readonly #waiting = new Set<Candidate>();
  readonly #held = new Map<string, Held>();
  #garbageBytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  add(candidate: Candidate): void {
    this.#waiting.add(candidate);
  }

  /** Removes and returns the first that fits; null when none does. Its bytes are held until `release`. */
  next(): Candidate | null {
    for (const candidate of this.#waiting) {
      const { due, lane } = candidate;
      const held: Held = { bytes: due.largeBytes ?? 0, account: lane.accountId, lane: lane.name };
      if (!this.#fits(held)) continue;
      this.#waiting.delete(candidate);
      this.#held.set(due.id, held);
      return candidate;
    }
    return null;
  }

  /** Releases the bytes of a row. False: it held none. */
  release(id: string): boolean {
    this.#garbageBytes += this.#held.get(id)?.bytes ?? 0;
    return this.#held.delete(id);
  }

  /** Whether enough bytes were released to be worth a garbage collection. Resets the count when true. */
  takeGarbage(): boolean {
    if (this.#garbageBytes < LARGE_GARBAGE_BYTES_MAX) return false;
    this.#garbageBytes = 0;
    return true;
  }

  /** One row always fits, however large. Few rows are held at a time, so adding them up is cheap. */
  #fits({ bytes, account, lane }: Held): boolean {
    if (this.#held.size === 0) return true;
    const [all, ofAccount, ofLane] = [{ bytes: 0 }, { bytes: 0 }, { bytes: 0 }];
    for (const held of this.#held.values()) {
      all.bytes += held.bytes;
      if (held.account === account) ofAccount.bytes += held.bytes;
      if (held.lane === lane) ofLane.bytes += held.bytes;
    }
    const free = this.#bytesMax - all.bytes;
    return bytes <= free && ofAccount.bytes < FREE_FACTOR * free && (ofLane.bytes < free || ofLane.bytes === 0);
  }
}
