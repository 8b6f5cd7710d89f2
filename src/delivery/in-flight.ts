import { ATTEMPTS_PER_TURN_MAX, DRAIN_WRITE_MS } from "../core/limits.ts";
import type { Clock } from "../core/clock.ts";
import { Counts } from "../core/counts.ts";

/** What the scheduler gives an attempt. */
interface AttemptControls {
  /** Aborts when the attempt must end early. */
  readonly stop: AbortSignal;
  /** Call it once, as soon as the target is done with the request. The result may still have to be written. */
  readonly releaseSlot: () => void;
}

export type RunAttempt<Row> = (row: Row, controls: AttemptControls) => Promise<void>;

/** Spreads attempts over turns of the event loop: a claim can start many at once, and many targets can answer at once. */
export class Turns {
  #left = ATTEMPTS_PER_TURN_MAX;
  readonly #waiting: (() => void)[] = [];

  /** Resolves in a turn that has room, in the order of the calls. Null: this turn has room. */
  wait(): Promise<void> | null {
    if (this.#left === ATTEMPTS_PER_TURN_MAX) setImmediate(this.#begin);
    if (this.#left === 0) return new Promise((resolve) => void this.#waiting.push(resolve));
    this.#left -= 1;
    return null;
  }

  readonly #begin = (): void => {
    const ready = this.#waiting.splice(0, ATTEMPTS_PER_TURN_MAX);
    this.#left = ATTEMPTS_PER_TURN_MAX - ready.length;
    if (ready.length > 0) setImmediate(this.#begin);
    for (const go of ready) go();
  };
}

/** Everything that a scheduler has started: attempts by row, and other work that a stop must wait for. */
export class WorkInFlight {
  readonly #clock: Clock;
  /** Attempts by row. The next attempt may start while the result of the last one is still being written. */
  readonly attempts = new Counts();
  readonly #work = new Set<Promise<unknown>>();
  readonly #interrupt = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Aborts when attempts must end early. */
  get stop(): AbortSignal {
    return this.#interrupt.signal;
  }

  /** Makes `drain` wait for this work, too. It must not reject. */
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
