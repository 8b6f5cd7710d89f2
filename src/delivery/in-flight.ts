import { DRAIN_WRITE_MS, LARGE_GARBAGE_BYTES_MAX } from "../config/limits.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Candidate } from "./lanes.ts";
import { FREE_FACTOR } from "./slots.ts";

/** How the loop and an attempt of it speak to each other. */
export interface Run {
  /** Ends the attempt early, as interrupted. */
  readonly stop: AbortSignal;
  /** Called once, when nothing is with the target any more; the end may still have to be written down. */
  readonly releaseSlot: () => void;
}

/** One attempt of a row that was claimed for it. */
export type Attempt<Row> = (row: Row, flight: Run) => Promise<void>;

/** Everything that the loop has set going: attempts by their row, and whatever else a stop must wait for. */
export class RunsInFlight<Row extends { readonly id: string }> {
  readonly #clock: Clock;
  readonly #attempt: Attempt<Row>;
  /** How many attempts of each row: one whose end is still to be written may be followed by the next. */
  readonly #inFlight = new Map<string, number>();
  readonly #work = new Set<Promise<unknown>>();
  readonly #interrupt = new AbortController();

  constructor(clock: Clock, attempt: Attempt<Row>) {
    this.#clock = clock;
    this.#attempt = attempt;
  }

  /** Attempts that are not recorded yet. */
  get count(): number {
    return this.#inFlight.size;
  }

  has(id: string): boolean {
    return this.#inFlight.has(id);
  }

  /** Lets an attempt run; `landed` is called once, as soon as nothing is with the target any more. */
  start(row: Row, releaseSlot: () => void, onError: (error: unknown, id: string) => void): void {
    let isLanded = false;
    const landOnce = () => {
      if (isLanded) return;
      isLanded = true;
      releaseSlot();
    };
    this.#inFlight.set(row.id, (this.#inFlight.get(row.id) ?? 0) + 1);
    const run = async () => {
      try {
        await this.#attempt(row, { stop: this.#interrupt.signal, releaseSlot: landOnce });
      } catch (error) {
        onError(error, row.id);
      } finally {
        const left = (this.#inFlight.get(row.id) ?? 1) - 1;
        if (left === 0) this.#inFlight.delete(row.id);
        else this.#inFlight.set(row.id, left);
        landOnce();
      }
    };
    this.keep(run());
  }

  /** Has `drain` wait for this too. It must not reject. */
  keep(work: Promise<unknown>): void {
    const kept = work.finally(() => this.#work.delete(kept));
    this.#work.add(kept);
  }

  /**
   * Resolves when all of it has ended. What is in flight after `limitMs` is interrupted, and has `DRAIN_WRITE_MS` more to be
   * written down; then this resolves in any case.
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

/** What a large row holds while it is claimed. */
interface Held {
  readonly bytes: number;
  readonly account: string;
  readonly lane: string;
}

/**
 * Large due rows that have a slot and wait for memory. Bytes are shared as slots are: an account goes on while it holds
 * less than `FREE_FACTOR` times what is free, and a lane while it holds less than what is free, so that the large bodies of
 * one slow host never take the room of all others.
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

  /** Takes out the first that fits; null: none does now. Its bytes are held until `release`. */
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

  /** Gives back the bytes of a row, if it holds any; tells whether it did. */
  release(id: string): boolean {
    this.#garbageBytes += this.#held.get(id)?.bytes ?? 0;
    return this.#held.delete(id);
  }

  /** Whether so much was released since this was last true that it should be collected. */
  takeGarbage(): boolean {
    if (this.#garbageBytes < LARGE_GARBAGE_BYTES_MAX) return false;
    this.#garbageBytes = 0;
    return true;
  }

  /** One always fits, however large. No more than some dozen are held at a time, so that they are simply added up. */
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
